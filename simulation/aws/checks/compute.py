"""EC2's rules for launch templates and placement groups."""

from __future__ import annotations

import base64
import binascii

from simulation.aws.errors import AwsError
from simulation.aws.schema import Request
from simulation.aws.values import UNKNOWN, Properties, at, values_at

_LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"


def _interfaces(request: Request) -> list[Properties]:
    return [item for item in values_at(request.inputs, "networkInterfaces[]") if isinstance(item, dict)]


def _place(interface: Properties) -> tuple[int, int]:
    return int(at(interface, "networkCardIndex", 0)), int(at(interface, "deviceIndex", 0))


def no_public_address_with_many_interfaces(request: Request) -> None:
    """An instance with several interfaces gets no public address (karpenter PR 5666)."""
    interfaces = _interfaces(request)
    if len(interfaces) > 1 and any(at(item, "associatePublicIpAddress") in ("true", True) for item in interfaces):
        raise AwsError(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple "
            "network interfaces.",
        )


def primary_interface_has_addresses(request: Request) -> None:
    """Card 0, device 0 carries the instance's IP address, so it cannot be `efa-only`."""
    for interface in _interfaces(request):
        if _place(interface) == (0, 0) and at(interface, "interfaceType") == "efa-only":
            raise AwsError(
                "InvalidParameterValue",
                "The interface type efa-only is not supported for the primary network interface "
                "(network card 0, device 0). Use efa or interface there.",
            )


def interfaces_have_own_places(request: Request) -> None:
    """Each interface has a network card and device index of its own, and one is the primary."""
    places = [_place(item) for item in _interfaces(request)]
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice:
        raise AwsError(
            "InvalidParameterValue",
            f"Each network interface requires a unique device index. (card {twice[0]}, device {twice[1]} occurs twice)",
        )
    if places and (0, 0) not in places:
        raise AwsError("InvalidParameterValue", "The primary network interface (card 0, device 0) is missing.")


def security_groups_in_one_place(request: Request) -> None:
    """Security groups stand on the interfaces or on the template, not on both."""
    if _interfaces(request) and at(request.inputs, "vpcSecurityGroupIds"):
        raise AwsError(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level security groups may not be specified on the same request",
        )


def user_data_is_base64(request: Request) -> None:
    """The API takes user data in base64, and at most 16 KiB of it."""
    text = at(request.inputs, "userData")
    if text is None or text == UNKNOWN:
        return
    try:
        size = len(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise AwsError("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from None
    if size > 16384:
        raise AwsError("InvalidUserData.Malformed", f"User data is limited to 16384 bytes, not {size}.")


def capacity_block_is_targeted(request: Request) -> None:
    """The market type capacity-block comes with the instance type and the block's id."""
    if at(request.inputs, "instanceMarketOptions.marketType") != "capacity-block":
        return
    target = "capacityReservationSpecification.capacityReservationTarget.capacityReservationId"
    if not at(request.inputs, target) or not at(request.inputs, "instanceType"):
        raise AwsError(
            "InvalidParameterCombination",
            "The market type capacity-block needs an instance type and a target capacity reservation id.",
        )


def placement_group_is_idle(request: Request) -> None:
    """A placement group stays while instances run in it."""
    templates = [
        row.id
        for row in request.view.rows(_LAUNCH_TEMPLATE)
        if at(row.state, "placement.groupName") == request.inputs["name"]
    ]
    groups = [
        row.title
        for row in request.view.rows(_NODE_GROUP)
        if at(row.state, "launchTemplate.id") in templates and at(row.state, "scalingConfig.desiredSize", 0) > 0
    ]
    if groups:
        raise AwsError(
            "InvalidPlacementGroup.InUse",
            f"The placement group '{request.inputs['name']}' is in use and may not be deleted. Used by: {groups[0]}.",
        )
