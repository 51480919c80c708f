"""Ids, ARNs and references that several tables share."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from simulation.aws.schema import ACCOUNT, PARTITION, Facts, OnDelete, Output, Reference
from simulation.aws.values import Json, Properties, at

VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
INTERNET_GATEWAY = "aws:ec2/internetGateway:InternetGateway"
EIP = "aws:ec2/eip:Eip"
NAT_GATEWAY = "aws:ec2/natGateway:NatGateway"
ROUTE_TABLE = "aws:ec2/routeTable:RouteTable"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS_RULE = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
PLACEMENT_GROUP = "aws:ec2/placementGroup:PlacementGroup"
ROLE = "aws:iam/role:Role"
ROLE_POLICY_ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
POLICY = "aws:iam/policy:Policy"
CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
ACCESS_ENTRY = "aws:eks/accessEntry:AccessEntry"
BUCKET = "aws:s3/bucket:Bucket"

SIMULATED_ROLE = f"arn:{PARTITION}:iam::{ACCOUNT}:role/SIMULATED"
"""The role that the simulated deployer has assumed; it exists without a row."""


def random_id(prefix: str) -> Callable[[Properties], str]:
    """Ids of EC2's form: the prefix, then 17 hexadecimal digits."""
    return lambda _: f"{prefix}-0{secrets.token_hex(8)}"


def own_id(facts: Facts) -> Json:
    """The resource's id."""
    return facts.id


def owner_id(_: Facts) -> Json:
    """The account's number."""
    return ACCOUNT


def constant(value: Json) -> Output:
    """The same value for every resource."""
    return lambda _: value


def random_output(prefix: str) -> Output:
    """An id of EC2's form for something that has no resource of its own."""
    return lambda _: random_id(prefix)({})


def now(_: Facts) -> Json:
    """The time of the call, as AWS writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def arn(service: str, kind: str) -> Output:
    """An ARN that ends in `kind/id`."""
    return lambda facts: f"arn:{PARTITION}:{service}:{facts.region}:{ACCOUNT}:{kind}/{facts.id}"


def iam_arn(kind: str) -> Output:
    """An IAM ARN, which holds path and name but no region."""
    return lambda facts: f"arn:{PARTITION}:iam::{ACCOUNT}:{kind}{at(facts.state, 'path', '/')}{at(facts.state, 'name')}"


def vpc_reference(path: str = "vpcId") -> Reference:
    """A VPC by id."""
    return Reference(path=path, target=VPC, missing=("InvalidVpcID.NotFound", "The vpc ID '{value}' does not exist"))


def subnet_reference(path: str = "subnetIds[]") -> Reference:
    """Subnets by id."""
    return Reference(
        path=path,
        target=SUBNET,
        missing=("InvalidSubnetID.NotFound", "The subnet ID '{value}' does not exist"),
    )


def security_group_reference(path: str, on_delete: OnDelete = OnDelete.BLOCKS) -> Reference:
    """Security groups by id."""
    return Reference(
        path=path,
        target=SECURITY_GROUP,
        missing=("InvalidGroup.NotFound", "The security group '{value}' does not exist"),
        on_delete=on_delete,
    )


def route_table_reference(path: str, on_delete: OnDelete = OnDelete.BLOCKS) -> Reference:
    """Route tables by id."""
    return Reference(
        path=path,
        target=ROUTE_TABLE,
        missing=("InvalidRouteTableID.NotFound", "The routeTable ID '{value}' does not exist"),
        on_delete=on_delete,
    )


def role_reference(path: str, missing: tuple[str, str], key: str = "arn") -> Reference:
    """A role by ARN or name. Roles of other accounts are taken as they are."""
    own = f"arn:{PARTITION}:iam::{ACCOUNT}:"
    return Reference(
        path=path,
        target=ROLE,
        key=key,
        missing=missing,
        outside=lambda value: value == SIMULATED_ROLE or (value.startswith("arn:") and not value.startswith(own)),
    )
