"""The commands look for what the program makes under the names that it gives: neither imports the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.launch_template import STACK_TAG as THE_PROGRAM_S
from operations.command import STACK_TAG, stack_of
from operations.findings import ORDER
from operations.search_account import ROLE_NAME
from tests.components.graph import Graph, record

pytestmark = pytest.mark.slow

# As what `operations.leftovers` finds each kind of resource; None is part of another, and goes with it.
FOUND_AS = {
    "aws:cloudwatch/logGroup:LogGroup": "log group",
    "aws:ec2/eip:Eip": "address",
    "aws:ec2/internetGateway:InternetGateway": "internet gateway",
    "aws:ec2/launchTemplate:LaunchTemplate": "launch template",
    "aws:ec2/natGateway:NatGateway": "NAT gateway",
    "aws:ec2/placementGroup:PlacementGroup": "placement group",
    "aws:ec2/route:Route": None,
    "aws:ec2/routeTable:RouteTable": "route table",
    "aws:ec2/routeTableAssociation:RouteTableAssociation": None,
    "aws:ec2/securityGroup:SecurityGroup": "security group",
    "aws:ec2/subnet:Subnet": "subnet",
    "aws:ec2/vpc:Vpc": "VPC",
    "aws:ec2/vpcEndpoint:VpcEndpoint": "VPC endpoint",
    "aws:eks/accessEntry:AccessEntry": None,
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": None,
    "aws:eks/addon:Addon": None,
    "aws:eks/cluster:Cluster": "cluster",
    "aws:eks/nodeGroup:NodeGroup": "node group",
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": None,
    "aws:fsx/lustreFileSystem:LustreFileSystem": "file system",
    "aws:iam/role:Role": "role",
    "aws:iam/rolePolicy:RolePolicy": None,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": None,
    "aws:s3/bucket:Bucket": "bucket",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": None,
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": None,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": "security group rules",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": "security group rules",
}


@pytest.fixture(scope="module")
def graphs() -> tuple[Graph, Graph]:
    """The stack as it comes, and with the weights going through a bucket."""
    return record(), record(lambda deployment: deployment.update(weights={"kind": "nvme", "revision": "0" * 40}))


def test_the_tag_is_the_program_s() -> None:
    assert STACK_TAG == THE_PROGRAM_S


def test_cluster_and_gpu_node_group_have_the_names_that_the_commands_ask_for(graphs: tuple[Graph, Graph]) -> None:
    stack = stack_of(Path("Pulumi.dev.yaml"))
    clusters = [item for item in graphs[0].resources if item.type == "aws:eks/cluster:Cluster"]
    assert [cluster.inputs["name"] for cluster in clusters] == [stack.name]
    groups = graphs[0].all("NodeGroup")
    assert stack.gpu_node_group in [group.inputs.get("nodeGroupName") for group in groups]


def test_every_kind_of_resource_is_looked_for(graphs: tuple[Graph, Graph]) -> None:
    made = {item.type for graph in graphs for item in graph.resources if item.type.startswith("aws:")}
    assert made == set(FOUND_AS), "a new kind of resource needs a look-up in operations/, and its place here"
    assert {kind for kind in FOUND_AS.values() if kind} <= set(ORDER)


def test_roles_have_names_by_which_they_are_picked_from_an_account_s(graphs: tuple[Graph, Graph]) -> None:
    roles = [item for graph in graphs for item in graph.resources if item.type == "aws:iam/role:Role"]
    assert roles
    for role in roles:
        assert "name" not in role.inputs
        assert ROLE_NAME.search(f"{role.name}-0123abc"), role.name
