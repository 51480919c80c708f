"""What a user writes under `vllm-multinode:deployment` in `Pulumi.<stack>.yaml`.

One frozen tree of models. It checks every value by itself; rules that join several values stand in
`rules.py`, and `problems.py` turns both into one message. Secrets (`apiKey`, `huggingFaceToken`) are
configuration keys of their own: nested in this object they would make all of it secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic.alias_generators import to_camel

from planner import checks, defaults


def _holds_number(annotation: object) -> bool:
    return annotation in (int, float) or any(map(_holds_number, get_args(annotation)))


class Section(BaseModel):
    """Part of the stack file: camelCase keys, unknown keys refused, never changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _no_truth_value_for_a_number(cls, values: object) -> object:
        """Python takes `true` for 1. As text it is refused wherever a number belongs, at its own place."""
        numbers = {
            name
            for field, info in cls.model_fields.items()
            if _holds_number(info.annotation)
            for name in (field, info.alias)
        }
        if not isinstance(values, Mapping):
            return values
        return {key: checks.as_text(value) if key in numbers else value for key, value in values.items()}


ClosedCidr = Annotated[str, AfterValidator(checks.closed_cidr)]
PinnedImage = Annotated[str, AfterValidator(checks.pinned_image)]
GitCommit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Usd = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False), BeforeValidator(checks.as_text)]
Url = Annotated[str, AfterValidator(checks.url)]
PrincipalArn = Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:(role|user)/.+$")]


class NewNetwork(Section):
    """A VPC of the stack's own. `cidr` must hold 4 x /20 and one /22: a /16 does."""

    kind: Literal["new"] = "new"
    cidr: Annotated[str, AfterValidator(checks.vpc_cidr)] = "10.42.0.0/16"


class ExistingNetwork(Section):
    """A VPC that is there already. Its subnets need a route to the internet (NAT) or endpoints of AWS."""

    kind: Literal["existing"]
    vpc_id: Annotated[str, StringConstraints(pattern=r"^vpc-[0-9a-f]{8,17}$")]
    control_plane_subnet_ids: Annotated[tuple[str, ...], Field(min_length=2)]
    gpu_subnet_id: Annotated[str, StringConstraints(pattern=r"^subnet-[0-9a-f]{8,17}$")]


class SystemNodes(Section):
    """CPU nodes for DNS, operators and weight staging (8 CPU, 16 GiB), in the GPU nodes' zone."""

    instance_type: Annotated[str, AfterValidator(checks.system_instance_type)] = "c6in.4xlarge"
    count: Annotated[int, Field(ge=1, le=10)] = 2
    ami_release: Annotated[str, AfterValidator(checks.ami_release)] = defaults.AMI_RELEASE


class EksPlatform(Section):
    """Amazon EKS, created by the stack."""

    kind: Literal["eks"] = "eks"
    region: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]
    availability_zone: str
    kubernetes_version: Annotated[str, AfterValidator(checks.kubernetes_version)] = defaults.KUBERNETES
    public_access_cidrs: Annotated[tuple[ClosedCidr, ...], Field(min_length=1)]
    admins: tuple[PrincipalArn, ...] = ()
    network: Annotated[NewNetwork | ExistingNetwork, Field(discriminator="kind")] = NewNetwork()
    system_nodes: SystemNodes = SystemNodes()


class GpuNodes(Section):
    """The GPU node group. `count: 0` is a paused stack: cluster and weights stay, nothing is served."""

    instance_type: Annotated[str, AfterValidator(checks.gpu_instance_type)]
    count: Annotated[int, Field(ge=0, le=16, strict=True)]
    ami_release: Annotated[str, AfterValidator(checks.ami_release)] = defaults.AMI_RELEASE


class EfaFabric(Section):
    """Elastic Fabric Adapter: AWS's RDMA between nodes of one availability zone."""

    kind: Literal["efa"] = "efa"


class OnDemandPurchase(Section):
    """Billed by the second at the public price, if the zone has capacity, in a cluster placement group."""

    kind: Literal["on_demand"] = "on_demand"


class FsxWeights(Section):
    """FSx for Lustre, PERSISTENT_2 SSD: one copy of the weights for all nodes.

    `capacity_gib` is 1200, 2400 or a multiple of 2400 GiB; `throughput_per_tib` is in MB/s per TiB.
    """

    kind: Literal["fsx"] = "fsx"
    revision: GitCommit
    capacity_gib: Annotated[int, AfterValidator(checks.fsx_capacity)] = 2400
    throughput_per_tib: Literal[125, 250, 500, 1000] = 1000


class Staging(Section):
    """The Job that fills the cache. `package_index`: where its wheels come from, pip's default if unset."""

    image: PinnedImage = (
        "public.ecr.aws/docker/library/python:3.12-slim"
        "@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea"
    )
    package_index: Url | None = None
    hub_endpoint: Url | None = None


class Serving(Section):
    """vLLM. Parallelism left out is chosen by the planner; `max_model_len` counts prompt and answer."""

    image: PinnedImage = defaults.IMAGE
    vllm_version: Annotated[str, AfterValidator(checks.vllm_version)] = defaults.VLLM
    tensor_parallel: Annotated[int, Field(ge=1)] | None = None
    pipeline_parallel: Annotated[int, Field(ge=1)] | None = None
    max_model_len: Annotated[int, Field(ge=1024)] = 131072
    max_num_seqs: Annotated[int, Field(ge=1, le=4096)] = 64
    max_num_batched_tokens: Annotated[int, Field(ge=1024)] = 8192
    gpu_memory_utilization: Annotated[float, Field(ge=0.5, le=0.98)] = 0.90
    kv_cache_dtype: Literal["auto", "fp8"] = "auto"
    expert_parallel: bool = False
    allow_anonymous: bool = False


class Chart(Section):
    """A Helm chart: where it comes from, and whether it is installed or the cluster has it already.

    `chart` may be a folder or an `oci://` reference, for mirrors and clusters without internet; `image`
    replaces the chart's image repository.
    """

    install: bool = True
    chart: str | None = None
    repository: str | None = None
    version: str | None = None
    image: str | None = None


class Charts(Section):
    """The cluster software that the stack brings along, each replaceable and each skippable."""

    nvidia_device_plugin: Chart = Chart()
    efa_device_plugin: Chart = Chart()
    leader_worker_set: Chart = Chart()


class Deployment(Section):
    """The whole of `vllm-multinode:deployment`.

    `model` is a name of the catalogue, or a mapping that describes a checkpoint (`inline_models.KEYS`).
    `prices` replaces a part's price, in USD per unit; `python -m planner price` lists parts and units.
    `max_hourly_price` refuses a stack whose known parts cost more, in USD per hour.
    """

    name: Annotated[str, AfterValidator(checks.deployment_name)]
    model: Annotated[object, AfterValidator(checks.model)]
    platform: EksPlatform
    gpu_nodes: GpuNodes
    fabric: EfaFabric = EfaFabric()
    purchase: OnDemandPurchase = OnDemandPurchase()
    weights: FsxWeights
    staging: Staging = Staging()
    serving: Serving = Serving()
    charts: Charts = Charts()
    prices: dict[str, Usd] = {}
    max_hourly_price: Usd | None = None
