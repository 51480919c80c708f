"""The VPC, its subnets and its ways out."""

from __future__ import annotations

import secrets

from simulation.aws.checks import network as checks
from simulation.aws.resources import common
from simulation.aws.resources.common import arn, constant, own_id, owner_id, random_id, random_output
from simulation.aws.schema import Facts, Owned, Reference, ResourceType, Unique
from simulation.aws.values import Json, Properties, at
from simulation.aws.zones import zone_id, zones


def _default_group(vpc: Properties) -> Properties:
    return {"name": "default", "description": "default VPC security group", "vpcId": vpc["id"]}


def _main_route_table(vpc: Properties) -> Properties:
    return {"vpcId": vpc["id"], "routes": []}


def _zone(facts: Facts) -> Json:
    wanted = at(facts.state, "availabilityZoneId")
    return next((zone for zone in zones(facts.region) if zone_id(zone) == wanted), zones(facts.region)[0])


def _zone_id(facts: Facts) -> Json:
    return zone_id(at(facts.state, "availabilityZone") or _zone(facts))


def _public_address(facts: Facts) -> Json:
    taken = {row.state["publicIp"] for row in facts.view.rows(common.EIP)}
    free = (f"203.0.113.{last}" for last in range(1, 255))  # TEST-NET-3: belongs to nobody
    return next(address for address in free if address not in taken)


def _allocated_address(facts: Facts) -> Json:
    allocation = facts.view.get(common.EIP, at(facts.state, "allocationId", ""))
    return allocation.state["publicIp"] if allocation else ""


def _private_address(facts: Facts) -> Json:
    subnet = facts.view.get(common.SUBNET, at(facts.state, "subnetId", ""))
    cidr = str(at(subnet.state, "cidrBlock", "10.0.0.0/16")) if subnet else "10.0.0.0/16"
    return f"{cidr.rpartition('.')[0]}.{4 + secrets.randbelow(250)}"


_VPC = ResourceType(
    token=common.VPC,
    new_id=random_id("vpc"),
    outputs={
        "arn": arn("ec2", "vpc"),
        "ownerId": owner_id,
        "defaultSecurityGroupId": random_output("sg"),
        "defaultNetworkAclId": random_output("acl"),
        "defaultRouteTableId": random_output("rtb"),
        "mainRouteTableId": lambda facts: facts.state["defaultRouteTableId"],
        "dhcpOptionsId": random_output("dopt"),
        "enableNetworkAddressUsageMetrics": constant(False),
        "ipv6AssociationId": constant(""),
        "ipv6CidrBlock": constant(""),
        "ipv6CidrBlockNetworkBorderGroup": constant(""),
    },
    defaults={"enableDnsSupport": True, "enableDnsHostnames": False, "instanceTenancy": "default"},
    forces_replacement=frozenset({"cidrBlock", "instanceTenancy", "ipv4IpamPoolId"}),
    owned=(
        Owned(type=common.SECURITY_GROUP, id_path="defaultSecurityGroupId", inputs=_default_group),
        Owned(type=common.ROUTE_TABLE, id_path="mainRouteTableId", inputs=_main_route_table),
    ),
    checks=(checks.vpc_size,),
    in_use=("DependencyViolation", "The vpc '{id}' has dependencies and cannot be deleted."),
)

_SUBNET = ResourceType(
    token=common.SUBNET,
    new_id=random_id("subnet"),
    outputs={
        "arn": arn("ec2", "subnet"),
        "ownerId": owner_id,
        "availabilityZone": _zone,
        "availabilityZoneId": _zone_id,
        "ipv6CidrBlockAssociationId": constant(""),
        "privateDnsHostnameTypeOnLaunch": constant("ip-name"),
    },
    defaults={
        "assignIpv6AddressOnCreation": False,
        "enableDns64": False,
        "enableResourceNameDnsARecordOnLaunch": False,
        "enableResourceNameDnsAaaaRecordOnLaunch": False,
        "ipv6Native": False,
        "mapPublicIpOnLaunch": False,
    },
    forces_replacement=frozenset({"vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId", "outpostArn"}),
    references=(common.vpc_reference(),),
    checks=(checks.known_zone, checks.subnet_inside_vpc, checks.subnet_overlaps_none),
    in_use=("DependencyViolation", "The subnet '{id}' has dependencies and cannot be deleted."),
)

_INTERNET_GATEWAY = ResourceType(
    token=common.INTERNET_GATEWAY,
    new_id=random_id("igw"),
    outputs={"arn": arn("ec2", "internet-gateway"), "ownerId": owner_id},
    references=(common.vpc_reference(),),
    unique=(
        Unique(
            paths=("vpcId",),
            error=("Resource.AlreadyAssociated", "{} already has an internet gateway attached"),
        ),
    ),
    delete_checks=(checks.no_mapped_addresses,),
)

_EIP = ResourceType(
    token=common.EIP,
    new_id=random_id("eipalloc"),
    outputs={
        "arn": arn("ec2", "elastic-ip"),
        "allocationId": own_id,
        "associationId": constant(""),
        "publicIp": _public_address,
        "publicDns": lambda facts: f"ec2-{facts.id}.compute-1.amazonaws.com",
        "privateIp": constant(""),
        "privateDns": constant(""),
        "ptrRecord": constant(""),
        "carrierIp": constant(""),
        "customerOwnedIp": constant(""),
        "domain": constant("vpc"),
        "networkBorderGroup": lambda facts: facts.region,
        "publicIpv4Pool": constant("amazon"),
        "instance": constant(""),
        "networkInterface": constant(""),
    },
    forces_replacement=frozenset({"domain", "address", "networkBorderGroup", "publicIpv4Pool"}),
    in_use=("InvalidIPAddress.InUse", "Address {id} is in use."),
)

_NAT_GATEWAY = ResourceType(
    token=common.NAT_GATEWAY,
    new_id=random_id("nat"),
    outputs={
        "associationId": random_output("eipassoc"),
        "networkInterfaceId": random_output("eni"),
        "privateIp": _private_address,
        "publicIp": _allocated_address,
        "secondaryPrivateIpAddressCount": constant(0),
        "secondaryPrivateIpAddresses": constant([]),
    },
    defaults={"connectivityType": "public"},
    forces_replacement=frozenset({"allocationId", "connectivityType", "privateIp", "subnetId", "vpcId"}),
    references=(
        common.subnet_reference("subnetId"),
        Reference(
            path="allocationId",
            target=common.EIP,
            missing=("InvalidAllocationID.NotFound", "The allocation ID '{value}' does not exist"),
        ),
    ),
    unique=(
        Unique(
            paths=("allocationId",),
            error=("Resource.AlreadyAssociated", "Elastic IP {} is already associated"),
        ),
    ),
    checks=(checks.nat_has_internet,),
)

TYPES = (_VPC, _SUBNET, _INTERNET_GATEWAY, _EIP, _NAT_GATEWAY)
