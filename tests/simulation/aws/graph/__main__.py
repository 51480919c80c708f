"""A small GPU cluster on AWS: what the simulated provider must carry through a stack's whole life.

`graph:hops` changes the launch template in place; `graph:nodes` scales; `graph:strategy` replaces the placement group.
"""

import json
from typing import Any

import pulumi
from pulumi import ResourceOptions
from pulumi_aws import cloudwatch, ec2, eks, fsx, iam, vpc
from pulumi_aws.get_caller_identity import get_caller_identity

config = pulumi.Config()
component = pulumi.ComponentResource("graph:index:Cluster", "all")
child = ResourceOptions(parent=component)


def after(*resources: pulumi.Resource) -> ResourceOptions:
    return ResourceOptions(parent=component, depends_on=list(resources))


def trust(service: str) -> Any:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return {"Version": "2012-10-17", "Statement": [statement]}


network = ec2.Vpc("main", cidr_block="10.0.0.0/16", enable_dns_hostnames=True, opts=child)
gateway = ec2.InternetGateway("main", vpc_id=network.id, opts=child)
subnets = [
    ec2.Subnet(
        f"zone-{zone}",
        vpc_id=network.id,
        cidr_block=f"10.0.{16 * index}.0/20",
        availability_zone=f"us-east-1{zone}",
        opts=child,
    )
    for index, zone in enumerate("ab")
]
address = ec2.Eip("nat", domain="vpc", opts=after(gateway))
nat = ec2.NatGateway("nat", subnet_id=subnets[0].id, allocation_id=address.allocation_id, opts=after(gateway))
table = ec2.RouteTable("private", vpc_id=network.id, opts=child)
ec2.Route("out", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", nat_gateway_id=nat.id, opts=child)
ec2.RouteTableAssociation("private", route_table_id=table.id, subnet_id=subnets[1].id, opts=child)

control_role = iam.Role("control-plane", assume_role_policy=trust("eks.amazonaws.com"), opts=child)
control_policy = iam.RolePolicyAttachment(
    "control-plane",
    role=control_role.name,
    policy_arn="arn:aws:iam::aws:policy/AmazonEKSClusterPolicy",
    opts=child,
)
logs = cloudwatch.LogGroup("demo", name="/aws/eks/demo/cluster", retention_in_days=30, opts=child)
cluster = eks.Cluster(
    "demo",
    name="demo",
    role_arn=control_role.arn,
    version="1.35",
    access_config={"authentication_mode": "API", "bootstrap_cluster_creator_admin_permissions": False},
    vpc_config={"subnet_ids": [subnet.id for subnet in subnets], "endpoint_private_access": True},
    opts=after(control_policy, logs),
)
deployer = iam.get_session_context(arn=get_caller_identity().arn).issuer_arn
entry = eks.AccessEntry("deployer", cluster_name=cluster.name, principal_arn=deployer, opts=child)
eks.AccessPolicyAssociation(
    "deployer",
    cluster_name=cluster.name,
    principal_arn=entry.principal_arn,
    policy_arn="arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
    access_scope={"type": "cluster"},
    opts=child,
)
cni = eks.Addon("vpc-cni", cluster_name=cluster.name, addon_name="vpc-cni", opts=child)

group = ec2.SecurityGroup("efa", vpc_id=network.id, description="EFA", opts=child)
rules = [
    rule("self", security_group_id=group.id, referenced_security_group_id=group.id, ip_protocol="-1", opts=child)
    for rule in (vpc.SecurityGroupIngressRule, vpc.SecurityGroupEgressRule)
]
placement = ec2.PlacementGroup("near", strategy=config.get("strategy") or "cluster", opts=child)
template = ec2.LaunchTemplate(
    "gpu",
    instance_type="p5.48xlarge",
    placement={"group_name": placement.name},
    metadata_options={"http_tokens": "required", "http_put_response_hop_limit": config.get_int("hops") or 1},
    user_data=config.require_secret("userData"),
    network_interfaces=[
        {
            "network_card_index": card,
            "device_index": min(card, 1),
            "interface_type": "efa-only" if card else "efa",
            "associate_public_ip_address": "false",
            "security_groups": [group.id, cluster.vpc_config.cluster_security_group_id],
        }
        for card in range(32)
    ],
    opts=child,
)
node_role = iam.Role("node", assume_role_policy=json.dumps(trust("ec2.amazonaws.com")), opts=child)
node_policies = [
    iam.RolePolicyAttachment(policy, role=node_role.name, policy_arn=f"arn:aws:iam::aws:policy/{policy}", opts=child)
    for policy in ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")
]
nodes = eks.NodeGroup(
    "gpu",
    cluster_name=cluster.name,
    node_role_arn=node_role.arn,
    subnet_ids=[subnets[1].id],
    ami_type="AL2023_x86_64_NVIDIA",
    scaling_config={"min_size": 0, "desired_size": config.get_int("nodes") or 2, "max_size": 2},
    launch_template={"id": template.id, "version": template.latest_version.apply(str)},
    taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
    opts=after(cni, *node_policies),
)
cache = fsx.LustreFileSystem(
    "cache",
    subnet_ids=subnets[1].id,
    security_group_ids=[group.id],
    deployment_type="PERSISTENT_2",
    per_unit_storage_throughput=1000,
    storage_capacity=2400,
    file_system_type_version="2.15",
    opts=after(*rules),
)
pulumi.export("clusterSecurityGroup", cluster.vpc_config.cluster_security_group_id)
pulumi.export("certificateAuthority", cluster.certificate_authority.data)
pulumi.export("autoscalingGroup", nodes.resources[0].autoscaling_groups[0].name)
pulumi.export("mount", pulumi.Output.concat(cache.dns_name, "@tcp:/", cache.mount_name))
pulumi.export("templateVersion", template.latest_version)
