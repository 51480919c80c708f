"""Route tables, routes and VPC endpoints: where the VPC's traffic goes."""

from __future__ import annotations

import secrets

from simulation.aws.resources import common
from simulation.aws.resources.common import arn, constant, owner_id, random_id, random_output
from simulation.aws.schema import Facts, OnDelete, Reference, ResourceType, Unique
from simulation.aws.values import Json, at


def _interfaces(facts: Facts) -> Json:
    return [random_id("eni")({}) for _ in at(facts.state, "subnetIds", [])]


_ROUTE_TABLE = ResourceType(
    token=common.ROUTE_TABLE,
    new_id=random_id("rtb"),
    outputs={"arn": arn("ec2", "route-table"), "ownerId": owner_id, "routes": constant([])},
    defaults={"propagatingVgws": []},
    forces_replacement=frozenset({"vpcId"}),
    references=(common.vpc_reference(),),
    in_use=("DependencyViolation", "The routeTable '{id}' has dependencies and cannot be deleted."),
)

_ROUTE = ResourceType(
    token="aws:ec2/route:Route",  # noqa: S106
    new_id=lambda _: f"r-rtb-{secrets.token_hex(8)}",
    outputs={
        "instanceId": constant(""),
        "instanceOwnerId": constant(""),
        "networkInterfaceId": constant(""),
        "origin": constant("CreateRoute"),
        "state": constant("active"),
    },
    forces_replacement=frozenset(
        {"routeTableId", "destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId"}
    ),
    references=(
        common.route_table_reference("routeTableId", OnDelete.FOLLOWS),
        Reference(
            path="gatewayId",
            target=common.INTERNET_GATEWAY,
            missing=("InvalidGatewayID.NotFound", "The gateway ID '{value}' does not exist"),
            on_delete=OnDelete.DANGLES,
            outside=lambda value: value == "local",
        ),
        Reference(
            path="natGatewayId",
            target=common.NAT_GATEWAY,
            missing=("InvalidNatGatewayID.NotFound", "The natGateway ID '{value}' does not exist"),
            on_delete=OnDelete.DANGLES,
        ),
    ),
    unique=(
        Unique(
            paths=("routeTableId", "destinationCidrBlock"),
            error=("RouteAlreadyExists", "Route table {} already has a route to {}."),
        ),
    ),
    tagged=False,
)

_ROUTE_TABLE_ASSOCIATION = ResourceType(
    token="aws:ec2/routeTableAssociation:RouteTableAssociation",  # noqa: S106
    new_id=random_id("rtbassoc"),
    forces_replacement=frozenset({"subnetId", "gatewayId"}),
    references=(common.route_table_reference("routeTableId"), common.subnet_reference("subnetId")),
    unique=(
        Unique(
            paths=("subnetId",),
            error=(
                "Resource.AlreadyAssociated",
                "the specified association for subnet {} conflicts with another",
            ),
        ),
    ),
    tagged=False,
)

_VPC_ENDPOINT = ResourceType(
    token="aws:ec2/vpcEndpoint:VpcEndpoint",  # noqa: S106
    new_id=random_id("vpce"),
    outputs={
        "arn": arn("ec2", "vpc-endpoint"),
        "ownerId": owner_id,
        "cidrBlocks": constant([]),
        "dnsEntries": constant([]),
        "ipAddressType": constant("ipv4"),
        "networkInterfaceIds": _interfaces,
        "policy": constant('{"Statement":[{"Action":"*","Effect":"Allow","Principal":"*","Resource":"*"}]}'),
        "prefixListId": random_output("pl"),
        "privateDnsEnabled": constant(False),
        "requesterManaged": constant(False),
        "routeTableIds": constant([]),
        "securityGroupIds": constant([]),
        "subnetIds": constant([]),
        "state": constant("available"),
    },
    defaults={"vpcEndpointType": "Gateway"},
    forces_replacement=frozenset({"vpcId", "serviceName", "vpcEndpointType", "serviceRegion"}),
    references=(
        common.vpc_reference(),
        common.subnet_reference(),
        common.route_table_reference("routeTableIds[]"),
        common.security_group_reference("securityGroupIds[]"),
    ),
)

TYPES = (_ROUTE_TABLE, _ROUTE, _ROUTE_TABLE_ASSOCIATION, _VPC_ENDPOINT)
