"""Builds what most tests need in a simulated account: a network, roles, a cluster."""

from __future__ import annotations

import json

from simulation.aws.account import Account
from simulation.aws.resources import common
from simulation.aws.store import Row
from simulation.aws.values import Properties

LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"
ADDON = "aws:eks/addon:Addon"
FILE_SYSTEM = "aws:fsx/lustreFileSystem:LustreFileSystem"
WORKER_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")


def trust(service: str) -> str:
    """A trust policy for an AWS service."""
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def vpc(account: Account) -> Row:
    return account.create(common.VPC, "main", {"cidrBlock": "10.0.0.0/16"})


def subnet(account: Account, vpc_id: str, index: int, zone: str) -> Row:
    cidr = f"10.0.{16 * index}.0/20"
    inputs = {"vpcId": vpc_id, "cidrBlock": cidr, "availabilityZone": f"us-east-1{zone}"}
    return account.create(common.SUBNET, f"subnet-{index}", inputs)


def role(account: Account, name: str, *policies: str) -> Row:
    made = account.create(common.ROLE, name, {"name": name, "assumeRolePolicy": trust("eks.amazonaws.com")})
    for policy in policies:
        attachment = {"role": name, "policyArn": f"arn:aws:iam::aws:policy/{policy}"}
        account.create(common.ROLE_POLICY_ATTACHMENT, f"{name}-{policy}", attachment)
    return made


def security_group(account: Account, vpc_id: str, *, rules: bool = True) -> Row:
    group = account.create(common.SECURITY_GROUP, "efa", {"name": "efa", "vpcId": vpc_id, "description": "EFA"})
    itself = {"securityGroupId": group.id, "referencedSecurityGroupId": group.id, "ipProtocol": "-1"}
    for direction in (common.INGRESS_RULE, common.EGRESS_RULE) if rules else ():
        account.create(direction, "self", itself)
    return group


def cluster(account: Account) -> tuple[Row, list[Row]]:
    """A cluster in two zones; returns it and its subnets."""
    network = vpc(account)
    subnets = [subnet(account, network.id, 0, "a"), subnet(account, network.id, 1, "b")]
    inputs = {
        "name": "demo",
        "roleArn": role(account, "control-plane").state["arn"],
        "version": "1.35",
        "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False},
        "vpcConfig": {"subnetIds": [item.id for item in subnets]},
    }
    return account.create(common.CLUSTER, "demo", inputs), subnets


def launch_template(account: Account, **inputs: object) -> Row:
    return account.create(common.LAUNCH_TEMPLATE, "gpu", {"name": "gpu-1", "instanceType": "p5.48xlarge", **inputs})


def node_group_inputs(account: Account, subnets: list[Row], template: Row | None = None) -> Properties:
    """A valid node group of two nodes in the first subnet."""
    known = {row.name: row for row in account.store.list_resources()}
    node_role = known.get("node") or role(account, "node", *WORKER_POLICIES)
    inputs: Properties = {
        "clusterName": "demo",
        "nodeGroupName": "gpu",
        "nodeRoleArn": node_role.state["arn"],
        "subnetIds": [subnets[0].id],
        "scalingConfig": {"minSize": 0, "desiredSize": 2, "maxSize": 2},
        "labels": {"role": "gpu"},
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
    }
    if template:
        return inputs | {"launchTemplate": {"id": template.id, "version": "1"}}
    return inputs | {"instanceTypes": ["p5.48xlarge"]}
