"""S3 buckets and what is set on them."""

from __future__ import annotations

from simulation.aws.checks import s3 as checks
from simulation.aws.resources import common
from simulation.aws.resources.common import constant
from simulation.aws.schema import PARTITION, OnDelete, Reference, ResourceType, Unique

_BUCKET = ResourceType(
    token=common.BUCKET,
    new_id=lambda inputs: str(inputs["bucket"]),
    outputs={
        "arn": lambda facts: f"arn:{PARTITION}:s3:::{facts.id}",
        "bucketDomainName": lambda facts: f"{facts.id}.s3.amazonaws.com",
        "bucketRegion": lambda facts: facts.region,
        "bucketRegionalDomainName": lambda facts: f"{facts.id}.s3.{facts.region}.amazonaws.com",
        "hostedZoneId": constant("Z3AQBSTGFYJSTF"),
        "accelerationStatus": constant(""),
        "acl": constant("private"),
        "grants": constant([]),
        "objectLockEnabled": constant(False),
        "policy": constant(""),
        "requestPayer": constant("BucketOwner"),
        "serverSideEncryptionConfiguration": constant(
            {
                "rule": {
                    "applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"},
                    "bucketKeyEnabled": False,
                }
            }
        ),
        "versioning": constant({"enabled": False, "mfaDelete": False}),
        "websiteDomain": constant(""),
        "websiteEndpoint": constant(""),
    },
    defaults={"forceDestroy": False},
    forces_replacement=frozenset({"bucket", "bucketPrefix", "objectLockEnabled"}),
    unread=frozenset({"forceDestroy"}),
    unique=(
        Unique(
            paths=("bucket",),
            error=("BucketAlreadyOwnedByYou", "The bucket {} already exists and you own it."),
        ),
    ),
    autonamed="bucket",
    checks=(checks.bucket_name,),
    delete_checks=(checks.is_empty_or_may_be_emptied,),
)

_OF_BUCKET = Reference(
    path="bucket",
    target=common.BUCKET,
    missing=("NoSuchBucket", "The specified bucket does not exist: {value}"),
    on_delete=OnDelete.FOLLOWS,
)

_PUBLIC_ACCESS_BLOCK = ResourceType(
    token="aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",  # noqa: S106
    new_id=lambda inputs: str(inputs["bucket"]),
    defaults={
        "blockPublicAcls": False,
        "blockPublicPolicy": False,
        "ignorePublicAcls": False,
        "restrictPublicBuckets": False,
    },
    forces_replacement=frozenset({"bucket"}),
    references=(_OF_BUCKET,),
    tagged=False,
)

_LIFECYCLE = ResourceType(
    token="aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",  # noqa: S106
    new_id=lambda inputs: str(inputs["bucket"]),
    outputs={
        "expectedBucketOwner": constant(""),
        "transitionDefaultMinimumObjectSize": constant("all_storage_classes_128K"),
    },
    forces_replacement=frozenset({"bucket", "expectedBucketOwner"}),
    references=(_OF_BUCKET,),
    checks=(checks.lifecycle_rules_act,),
    tagged=False,
)

TYPES = (_BUCKET, _PUBLIC_ACCESS_BLOCK, _LIFECYCLE)
