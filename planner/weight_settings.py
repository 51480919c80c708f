"""What a user writes under `weights` and `staging`: where the weights come from, and where they are kept."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Tag

from planner import checks
from planner.sections import (
    AbsolutePath,
    BucketName,
    BucketPrefix,
    ClaimName,
    GitCommit,
    Namespace,
    PinnedImage,
    RelativePath,
    Section,
    Url,
    kind_or,
)


class HubSource(Section):
    """The Hugging Face Hub, or `staging.hubEndpoint`, a mirror of it."""

    kind: Literal["hub"] = "hub"


class S3Source(Section):
    """A bucket that holds the model as staging writes it, with its manifest. `endpoint`: an S3 that is not AWS's."""

    kind: Literal["s3"]
    bucket: BucketName
    prefix: BucketPrefix = ""
    endpoint: Url | None = None

    @property
    def url(self) -> str:
        """`s3://bucket/prefix`, or `s3://bucket` without a prefix."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


Source = Annotated[Annotated[HubSource, Tag("hub")] | Annotated[S3Source, Tag("s3")], kind_or("hub")]
Start = Literal["after_staging", "overlap"]


class FsxWeights(Section):
    """FSx for Lustre, PERSISTENT_2 SSD: one copy of the weights for all nodes.

    `capacity_gib` is 1200, 2400 or a multiple of 2400 GiB; `throughput_per_tib` is in MB/s per TiB.
    """

    kind: Literal["fsx"] = "fsx"
    revision: GitCommit
    source: Source = HubSource()
    start: Start | None = None
    retain: bool = False
    capacity_gib: Annotated[int, AfterValidator(checks.fsx_capacity)] = 2400
    throughput_per_tib: Literal[125, 250, 500, 1000] = 1000


class NvmeWeights(Section):
    """The disks of the GPU nodes: each node fills its own, from a bucket in the region or straight from the source.

    `host_path` is the folder of a node under which the weights lie. On EKS a model of the Hub goes through a bucket of
    the stack's own, so that each node has it at the speed of its network and the Hub is asked once.
    """

    kind: Literal["nvme"]
    revision: GitCommit
    source: Source = HubSource()
    start: Start | None = None
    retain: bool = False
    host_path: AbsolutePath = "/mnt/k8s-disks/0"


class ClaimWeights(Section):
    """A claim that the cluster has already, in `namespace`, where the stack then runs.

    `directory`: where in it the checkpoint lies; without it the stack stages the model there.
    """

    kind: Literal["existing_claim"]
    revision: GitCommit
    source: Source = HubSource()
    namespace: Namespace
    claim: ClaimName
    directory: RelativePath | None = None


Weights = Annotated[
    Annotated[FsxWeights, Tag("fsx")]
    | Annotated[NvmeWeights, Tag("nvme")]
    | Annotated[ClaimWeights, Tag("existing_claim")],
    kind_or("fsx"),
]


class Staging(Section):
    """The pods that fill the cache. `package_index`: where their wheels come from, pip's default if unset."""

    image: PinnedImage = (
        "public.ecr.aws/docker/library/python:3.12-slim"
        "@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea"
    )
    package_index: Url | None = None
    hub_endpoint: Url | None = None
