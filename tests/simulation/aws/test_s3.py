"""Buckets, what they hold and what is set on them."""

from __future__ import annotations

from typing import Any

import pytest

from simulation.aws import objects
from simulation.aws.account import Account
from simulation.aws.errors import AwsError, SimulationError
from simulation.aws.resources import common
from simulation.aws.store import Row

PUBLIC_ACCESS = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
LIFECYCLE = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
ABORT = {"id": "abort", "status": "Enabled", "abortIncompleteMultipartUpload": {"daysAfterInitiation": 1}}


def bucket(account: Account, **inputs: Any) -> Row:
    return account.create(common.BUCKET, "weights", {"bucket": "weights"} | inputs)


def test_a_bucket_with_objects_stays(account: Account) -> None:
    made = bucket(account)
    objects.fill("weights", 64)
    with pytest.raises(AwsError, match=r"^BucketNotEmpty: .*weights.*64 objects.*forceDestroy"):
        account.delete(common.BUCKET, made.id)
    objects.fill("weights", 0)
    account.delete(common.BUCKET, made.id)
    assert account.store.is_empty()


def test_a_bucket_that_may_be_emptied_takes_its_objects_along(account: Account) -> None:
    made = bucket(account, forceDestroy=True)
    objects.fill("weights", 64)
    account.delete(common.BUCKET, made.id)
    account.delete(common.BUCKET, bucket(account).id)


def test_objects_go_into_buckets_that_exist(account: Account) -> None:
    bucket(account)
    with pytest.raises(SimulationError, match=r"no simulated bucket 'other'\. There are: weights"):
        objects.fill("other", 1)


@pytest.mark.parametrize(("token", "inputs"), [(PUBLIC_ACCESS, {}), (LIFECYCLE, {"rules": [ABORT]})])
def test_what_is_set_on_a_bucket_needs_it_and_goes_with_it(
    account: Account, token: str, inputs: dict[str, Any]
) -> None:
    with pytest.raises(AwsError, match=r"^NoSuchBucket: .*weights"):
        account.create(token, "weights", {"bucket": "weights"} | inputs)
    made = bucket(account)
    assert account.create(token, "weights", {"bucket": "weights"} | inputs).id == "weights"
    account.delete(common.BUCKET, made.id)
    assert account.store.is_empty()


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([], "at least one rule"),
        ([ABORT | {"status": "enabled"}], "Enabled or Disabled"),
        ([{"id": "idle", "status": "Enabled"}], "At least one action"),
    ],
)
def test_lifecycle_rules_refused(account: Account, rules: list[dict[str, Any]], words: str) -> None:
    bucket(account)
    with pytest.raises(AwsError, match=words):
        account.create(LIFECYCLE, "weights", {"bucket": "weights", "rules": rules})
