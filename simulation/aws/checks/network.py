"""EC2's rules for networks and security groups."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network

from simulation.aws.errors import AwsError
from simulation.aws.schema import Request
from simulation.aws.values import at
from simulation.aws.zones import zones

_VPC = "aws:ec2/vpc:Vpc"
_SUBNET = "aws:ec2/subnet:Subnet"
_INTERNET_GATEWAY = "aws:ec2/internetGateway:InternetGateway"
_NAT_GATEWAY = "aws:ec2/natGateway:NatGateway"


def vpc_size(request: Request) -> None:
    """A VPC holds /16 to /28."""
    cidr = at(request.inputs, "cidrBlock")
    if cidr and not 16 <= ip_network(cidr).prefixlen <= 28:
        raise AwsError("InvalidVpc.Range", f"The CIDR '{cidr}' is invalid. A VPC is between /16 and /28.")


def known_zone(request: Request) -> None:
    """The availability zone belongs to the region."""
    zone = at(request.inputs, "availabilityZone")
    if zone and zone not in zones(request.region):
        raise AwsError(
            "InvalidParameterValue",
            f"Value ({zone}) for parameter availabilityZone is invalid. "
            f"Subnets can currently only be created in the following availability zones: "
            f"{', '.join(zones(request.region))}.",
        )


def _network(cidr: str) -> IPv4Network:
    return IPv4Network(cidr)


def subnet_inside_vpc(request: Request) -> None:
    """A subnet lies inside its VPC and is between /16 and /28."""
    vpc = request.view.get(_VPC, request.inputs["vpcId"])
    cidr, around = at(request.inputs, "cidrBlock"), at(vpc.state, "cidrBlock") if vpc else None
    if not cidr or not around:
        return
    if not 16 <= _network(cidr).prefixlen <= 28 or not _network(cidr).subnet_of(_network(around)):
        raise AwsError("InvalidSubnet.Range", f"The CIDR '{cidr}' is invalid. (the VPC holds {around}; /16 to /28)")


def subnet_overlaps_none(request: Request) -> None:
    """No two subnets of a VPC overlap."""
    cidr = at(request.inputs, "cidrBlock")
    for other in request.view.rows(_SUBNET):
        if other == request.old or other.state["vpcId"] != request.inputs["vpcId"] or not cidr:
            continue
        if _network(cidr).overlaps(_network(other.state["cidrBlock"])):
            raise AwsError(
                "InvalidSubnet.Conflict",
                f"The CIDR '{cidr}' conflicts with another subnet ({other.name}: {other.state['cidrBlock']})",
            )


def nat_has_internet(request: Request) -> None:
    """A public NAT gateway needs an internet gateway attached to its VPC."""
    subnet = request.view.get(_SUBNET, at(request.inputs, "subnetId", ""))
    if at(request.inputs, "connectivityType", "public") != "public" or subnet is None:
        return
    vpc = subnet.state["vpcId"]
    if not any(at(row.state, "vpcId") == vpc for row in request.view.rows(_INTERNET_GATEWAY)):
        raise AwsError(
            "Gateway.NotAttached",
            f"Network {vpc} has no Internet gateway attached. Make the NAT gateway depend on the internet gateway.",
        )


def no_mapped_addresses(request: Request) -> None:
    """An internet gateway stays while NAT gateways of its VPC hold public addresses."""
    vpc = at(request.inputs, "vpcId")
    subnets = {row.id for row in request.view.rows(_SUBNET) if row.state["vpcId"] == vpc}
    mapped = [row.title for row in request.view.rows(_NAT_GATEWAY) if at(row.state, "subnetId") in subnets]
    if mapped:
        raise AwsError(
            "DependencyViolation",
            f"Network {vpc} has some mapped public address(es). Please unmap those public address(es) before "
            f"detaching the gateway. Still mapped by: {', '.join(mapped)}.",
        )
