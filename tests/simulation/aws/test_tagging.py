"""Finding resources by tag."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from simulation.aws import invokes
from simulation.aws.account import Account
from simulation.aws.errors import AwsError
from simulation.aws.resources import common
from tests.simulation.aws import world

TOKEN = "aws:resourcegroupstaggingapi/getResources:getResources"


@pytest.fixture
def tagged(account: Account) -> dict[str, str]:
    """ARNs of tagged resources by name; a role and an untagged subnet are there too."""
    kimi = replace(account, default_tags={"stack": "kimi"})
    network = kimi.create(common.VPC, "main", {"cidrBlock": "10.0.0.0/16"})
    subnet = world.subnet(account, network.id, 0, "a")
    group = kimi.create(common.SECURITY_GROUP, "fsx", {"name": "fsx", "vpcId": network.id})
    cache = kimi.create(world.FILE_SYSTEM, "cache", {"subnetIds": subnet.id, "tags": {"model": "k2"}})
    bucket = kimi.create(common.BUCKET, "weights", {"bucket": "weights", "tags": {"model": "k2.5"}})
    world.role(kimi, "node")
    elsewhere = replace(kimi, region="eu-west-1")
    elsewhere.create(common.BUCKET, "far", {"bucket": "far"})
    rows = {"vpc": network, "group": group, "cache": cache, "bucket": bucket}
    return {name: row.state["arn"] for name, row in rows.items()}


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({}, {"vpc", "group", "cache", "bucket"}),
        ({"tagFilters": [{"key": "stack", "values": ["kimi"]}]}, {"vpc", "group", "cache", "bucket"}),
        ({"tagFilters": [{"key": "stack", "values": ["other"]}]}, set()),
        ({"tagFilters": [{"key": "model"}]}, {"cache", "bucket"}),
        ({"tagFilters": [{"key": "stack"}, {"key": "model", "values": ["k2", "k3"]}]}, {"cache"}),
        ({"resourceTypeFilters": ["fsx:file-system", "s3"]}, {"cache", "bucket"}),
        ({"resourceTypeFilters": ["s3:bucket"]}, {"bucket"}),
        ({"resourceTypeFilters": ["ec2:security-group"]}, {"group"}),
        ({"resourceTypeFilters": ["ec2"], "tagFilters": [{"key": "stack"}]}, {"vpc", "group"}),
    ],
)
def test_filters(account: Account, tagged: dict[str, str], arguments: dict[str, Any], names: set[str]) -> None:
    answer = invokes.answer(account, TOKEN, arguments)
    assert {found["resourceArn"] for found in answer["resourceTagMappingLists"]} == {tagged[name] for name in names}


def test_tags_come_along_and_an_arn_finds_its_own(account: Account, tagged: dict[str, str]) -> None:
    (found,) = invokes.answer(account, TOKEN, {"resourceArnLists": [tagged["cache"]]})["resourceTagMappingLists"]
    assert found["tags"] == {"stack": "kimi", "model": "k2"}
    with pytest.raises(AwsError, match="cannot be used together"):
        invokes.answer(account, TOKEN, {"resourceArnLists": [tagged["cache"]], "resourceTypeFilters": ["fsx"]})
