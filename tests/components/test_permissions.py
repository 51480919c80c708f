"""The documented policy of the deployer covers every kind of resource that the stack makes.

It proves that nothing was forgotten, not that AWS asks for nothing more.
"""

from __future__ import annotations

import json

import pytest

from tests.components.graph import ROOT, Graph, record

ACTIONS = {
    "aws:cloudwatch/logGroup:LogGroup": ("logs:CreateLogGroup", "logs:PutRetentionPolicy", "logs:DeleteLogGroup"),
    "aws:ec2/eip:Eip": ("ec2:AllocateAddress", "ec2:ReleaseAddress"),
    "aws:ec2/internetGateway:InternetGateway": ("ec2:CreateInternetGateway", "ec2:AttachInternetGateway"),
    "aws:ec2/launchTemplate:LaunchTemplate": ("ec2:CreateLaunchTemplate", "ec2:CreateLaunchTemplateVersion"),
    "aws:ec2/natGateway:NatGateway": ("ec2:CreateNatGateway", "ec2:DeleteNatGateway"),
    "aws:ec2/placementGroup:PlacementGroup": ("ec2:CreatePlacementGroup", "ec2:DeletePlacementGroup"),
    "aws:ec2/route:Route": ("ec2:CreateRoute", "ec2:DeleteRoute"),
    "aws:ec2/routeTable:RouteTable": ("ec2:CreateRouteTable", "ec2:DeleteRouteTable"),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": ("ec2:AssociateRouteTable", "ec2:DisassociateRouteTable"),
    "aws:ec2/securityGroup:SecurityGroup": ("ec2:CreateSecurityGroup", "ec2:DeleteSecurityGroup"),
    "aws:ec2/subnet:Subnet": ("ec2:CreateSubnet", "ec2:DeleteSubnet"),
    "aws:ec2/vpc:Vpc": ("ec2:CreateVpc", "ec2:ModifyVpcAttribute", "ec2:DeleteVpc"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": ("ec2:CreateVpcEndpoint", "ec2:DeleteVpcEndpoints"),
    "aws:eks/accessEntry:AccessEntry": ("eks:CreateAccessEntry", "eks:DeleteAccessEntry"),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": ("eks:AssociateAccessPolicy",),
    "aws:eks/addon:Addon": ("eks:CreateAddon", "eks:DeleteAddon"),
    "aws:eks/cluster:Cluster": ("eks:CreateCluster", "eks:DeleteCluster", "iam:PassRole"),
    "aws:eks/nodeGroup:NodeGroup": ("eks:CreateNodegroup", "eks:UpdateNodegroupConfig", "ec2:RunInstances"),
    "aws:fsx/lustreFileSystem:LustreFileSystem": ("fsx:CreateFileSystem", "fsx:DeleteFileSystem"),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": (
        "eks:CreatePodIdentityAssociation",
        "eks:DeletePodIdentityAssociation",
    ),
    "aws:iam/rolePolicy:RolePolicy": ("iam:PutRolePolicy", "iam:DeleteRolePolicy"),
    "aws:s3/bucket:Bucket": ("s3:CreateBucket", "s3:DeleteBucket", "s3:DeleteObject", "s3:PutBucketTagging"),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": ("s3:PutLifecycleConfiguration",),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": ("s3:PutBucketPublicAccessBlock",),
    "aws:iam/role:Role": ("iam:CreateRole", "iam:GetRole", "iam:DeleteRole"),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": ("iam:AttachRolePolicy", "iam:DetachRolePolicy"),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": ("ec2:AuthorizeSecurityGroupEgress",),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": ("ec2:AuthorizeSecurityGroupIngress",),
}


@pytest.fixture(scope="module")
def allowed() -> set[str]:
    policy = json.loads((ROOT / "docs/deployer-policy.json").read_text())
    actions = [statement["Action"] for statement in policy["Statement"]]
    return {action for group in actions for action in ([group] if isinstance(group, str) else group)}


def test_every_kind_of_resource_is_allowed(graph: Graph, allowed: set[str]) -> None:
    through_bucket = record(lambda deployment: deployment.update(weights={"kind": "nvme", "revision": "0" * 40}))
    made = (*graph.resources, *through_bucket.resources)
    kinds = {resource.type for resource in made if resource.type.startswith("aws:")}
    assert kinds == set(ACTIONS), "a new kind of resource needs its actions here and in docs/deployer-policy.json"
    assert not {action for kind in kinds for action in ACTIONS[kind]} - allowed


def test_the_policy_grants_no_whole_service(allowed: set[str]) -> None:
    assert not [action for action in allowed if action.endswith(":*")]
