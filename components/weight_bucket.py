"""The bucket between the Hub and the disks of the nodes: the Hub is asked once, each node reads from the region.

Owns the bucket and what keeps it private and free of half-uploaded parts. It holds the weights that staging brings and
nothing else, so that `pulumi destroy` empties it; with `weights.retain` it stays, and the next `up` adopts it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_aws import s3

from components.retained import PART_TAG, retained_id

DAYS_OF_UNFINISHED_UPLOADS = 2
PART = "weight-bucket"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBucketArgs:
    """`account` and `region` make the name unique: bucket names are one space for all of AWS."""

    deployment: str
    account: str
    region: str
    retain: bool


class WeightBucket(ComponentResource):
    """A private bucket that forgets uploads nobody finished."""

    bucket: Output[str]

    def __init__(self, name: str, args: WeightBucketArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:WeightBucket", name, None, opts)
        bucket = s3.Bucket(
            f"{name}-bucket",
            # A name of its own choosing could not be adopted again: Pulumi would want to replace it.
            bucket=f"{short(args.deployment)}-weights-{args.account}-{args.region}",
            force_destroy=not args.retain,
            tags={PART_TAG: PART},
            opts=ResourceOptions(
                parent=self,
                retain_on_delete=args.retain,
                import_=retained_id("s3:bucket", args.deployment, PART, self) if args.retain else None,
            ),
        )
        s3.BucketPublicAccessBlock(
            f"{name}-private",
            bucket=bucket.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=ResourceOptions(parent=self),
        )
        s3.BucketLifecycleConfiguration(
            f"{name}-lifecycle",
            bucket=bucket.bucket,
            rules=[
                {
                    "id": "unfinished-uploads",
                    "status": "Enabled",
                    "filter": {"prefix": ""},
                    # Parts of an upload that ended half-way bill like objects and are listed nowhere.
                    "abort_incomplete_multipart_upload": {"days_after_initiation": DAYS_OF_UNFINISHED_UPLOADS},
                }
            ],
            opts=ResourceOptions(parent=self),
        )
        self.bucket = bucket.bucket
        self.register_outputs({"bucket": self.bucket})


def short(deployment: str) -> str:
    """At most 20 characters that tell deployments apart: a bucket's name has 63, account and region take 43 of them."""
    if len(deployment) <= 20:
        return deployment
    return f"{deployment[:12].rstrip('-')}-{hashlib.sha256(deployment.encode()).hexdigest()[:7]}"
