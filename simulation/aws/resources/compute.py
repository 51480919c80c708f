"""Launch templates and placement groups."""

from __future__ import annotations

from simulation.aws.checks import compute as checks
from simulation.aws.resources import common
from simulation.aws.resources.common import arn, constant, random_id
from simulation.aws.schema import Facts, OnDelete, Reference, ResourceType, Unique
from simulation.aws.values import Json, at


def _next_version(facts: Facts) -> Json:
    return int(at(facts.old, "latestVersion", 0)) + 1


def _default_version(facts: Facts) -> Json:
    if at(facts.state, "updateDefaultVersion", False):
        return _next_version(facts)
    return at(facts.old, "defaultVersion", 1)


_LAUNCH_TEMPLATE = ResourceType(
    token=common.LAUNCH_TEMPLATE,
    new_id=random_id("lt"),
    outputs={
        "arn": arn("ec2", "launch-template"),
        "latestVersion": _next_version,
        "defaultVersion": _default_version,
    },
    recomputed=frozenset({"latestVersion", "defaultVersion"}),
    forces_replacement=frozenset({"name", "namePrefix"}),
    references=(
        common.security_group_reference("networkInterfaces[].securityGroups[]"),
        common.security_group_reference("vpcSecurityGroupIds[]"),
        common.subnet_reference("networkInterfaces[].subnetId"),
        Reference(
            path="placement.groupName",
            target=common.PLACEMENT_GROUP,
            key="name",
            missing=("InvalidPlacementGroup.Unknown", "The Placement Group '{value}' is unknown."),
            on_delete=OnDelete.DANGLES,
        ),
    ),
    unique=(
        Unique(
            paths=("name",),
            error=(
                "InvalidLaunchTemplateName.AlreadyExistsException",
                "Launch template name {} already in use.",
            ),
        ),
    ),
    autonamed="name",
    checks=(
        checks.no_public_address_with_many_interfaces,
        checks.primary_interface_has_addresses,
        checks.interfaces_have_own_places,
        checks.security_groups_in_one_place,
        checks.user_data_is_base64,
        checks.capacity_block_is_targeted,
    ),
)

_PLACEMENT_GROUP = ResourceType(
    token=common.PLACEMENT_GROUP,
    new_id=lambda inputs: str(inputs["name"]),
    outputs={
        "arn": arn("ec2", "placement-group"),
        "placementGroupId": lambda _: random_id("pg")({}),
        "partitionCount": constant(0),
        "spreadLevel": constant(""),
    },
    forces_replacement=frozenset({"name", "strategy", "partitionCount", "spreadLevel"}),
    unique=(
        Unique(
            paths=("name",),
            error=("InvalidPlacementGroup.Duplicate", "The Placement Group '{}' already exists."),
        ),
    ),
    autonamed="name",
    delete_checks=(checks.placement_group_is_idle,),
)

TYPES = (_LAUNCH_TEMPLATE, _PLACEMENT_GROUP)
