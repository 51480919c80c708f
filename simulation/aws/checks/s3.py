"""S3's rules (S3 user guide; error texts as the service words them)."""

from __future__ import annotations

import re

from simulation.aws.errors import AwsError
from simulation.aws.schema import Request
from simulation.aws.values import at, values_at

_BUCKET = "aws:s3/bucket:Bucket"
_ACTIONS = (
    "abortIncompleteMultipartUpload",
    "expiration",
    "noncurrentVersionExpiration",
    "noncurrentVersionTransitions",
    "transitions",
)


def bucket_name(request: Request) -> None:
    """3 to 63 lower-case letters, digits, dots and hyphens."""
    name = str(request.inputs["bucket"])
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", name):
        raise AwsError("InvalidBucketName", f"The specified bucket is not valid: {name}")


def is_empty_or_may_be_emptied(request: Request) -> None:
    """A bucket with objects is deleted only if `forceDestroy` stood in its state; then they go with it."""
    name = str(request.inputs["bucket"])
    count = request.view.content(_BUCKET, name)
    if count and not at(request.inputs, "forceDestroy", False):
        raise AwsError(
            "BucketNotEmpty",
            f"deleting S3 Bucket ({name}): The bucket you tried to delete is not empty. It holds {count} objects. "
            "Empty it, or set forceDestroy and run `up` before `destroy`.",
        )


def lifecycle_rules_act(request: Request) -> None:
    """At least one rule, each with an id, a status and something to do."""
    rules = values_at(request.inputs, "rules[]")
    if not rules:
        raise AwsError("MalformedXML", "A lifecycle configuration needs at least one rule.")
    for rule in rules:
        if rule.get("status") not in ("Enabled", "Disabled"):
            raise AwsError("MalformedXML", f"Lifecycle rule {rule.get('id')}: status is Enabled or Disabled.")
        if not any(rule.get(action) for action in _ACTIONS):
            raise AwsError(
                "InvalidRequest",
                f"Lifecycle rule {rule.get('id')}: At least one action needs to be specified in a rule.",
            )
