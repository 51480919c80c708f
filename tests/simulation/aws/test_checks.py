"""What AWS refuses beyond the schema; each case is one that somebody has met (docs of EKS, EC2 and FSx)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simulation.aws.account import Account
from simulation.aws.errors import AwsError
from simulation.aws.resources import common
from tests.simulation.aws import world

PRIMARY = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "efa"}
SECOND = {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"}
LUSTRE = {"deploymentType": "PERSISTENT_2", "perUnitStorageThroughput": 1000, "storageCapacity": 2400}


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"networkInterfaces": [PRIMARY | {"associatePublicIpAddress": "true"}, SECOND]}, "multiple network"),
        ({"networkInterfaces": [PRIMARY | {"interfaceType": "efa-only"}, SECOND]}, "efa-only is not supported"),
        ({"networkInterfaces": [PRIMARY, PRIMARY]}, "unique device index"),
        ({"networkInterfaces": [SECOND]}, "primary network interface"),
        ({"userData": "not base64!"}, "BASE64"),
        ({"instanceMarketOptions": {"marketType": "capacity-block"}}, "target capacity reservation"),
        ({"placement": {"groupName": "nowhere"}}, "Placement Group 'nowhere' is unknown"),
    ],
)
def test_launch_templates_refused(account: Account, inputs: dict[str, Any], words: str) -> None:
    with pytest.raises(AwsError, match=words):
        world.launch_template(account, **inputs)


def test_launch_template_with_efa_interfaces(account: Account) -> None:
    world.launch_template(account, networkInterfaces=[PRIMARY, SECOND])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scalingConfig": {"minSize": 0, "desiredSize": 0, "maxSize": 0}}, "at least 1"),
        ({"scalingConfig": {"minSize": 1, "desiredSize": 0, "maxSize": 2}}, "between minSize 1 and maxSize 2"),
        ({"scalingConfig": {"minSize": 0, "desiredSize": 3, "maxSize": 2}}, "between minSize 0 and maxSize 2"),
        ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, "NO_SCHEDULE"),
        ({"capacityType": "CAPACITY_BLOCK"}, "capacity block needs both"),
        ({"nodeRoleArn": "arn:aws:iam::000000000000:role/control-plane"}, "failed to join"),
        ({"nodeRoleArn": "arn:aws:iam::000000000000:role/none"}, "does not exist"),
    ],
)
def test_node_groups_refused(account: Account, change: dict[str, Any], words: str) -> None:
    _, subnets = world.cluster(account)
    with pytest.raises(AwsError, match=words):
        account.create(common.NODE_GROUP, "gpu", world.node_group_inputs(account, subnets) | change)


@pytest.mark.parametrize(
    ("template", "change", "words"),
    [
        ({}, {"instanceTypes": ["p5.48xlarge"]}, "Cannot specify instance types in launch template"),
        ({"instanceType": None}, {}, "Neither the launch template nor the node group"),
        ({}, {"diskSize": 200}, "diskSize cannot be specified"),
        ({"iamInstanceProfile": {"name": "x"}}, {}, "should not specify iamInstanceProfile"),
        ({}, {"launchTemplate": {"name": "gpu-1", "version": "7"}}, "specified version 7"),
        ({"placement": {"groupName": "near"}}, {"both": True}, "must be launched in one availability zone"),
        ({"networkInterfaces": [PRIMARY | {"subnet": True}]}, {}, "should not specify a subnet"),
    ],
)
def test_node_groups_with_a_template_refused(
    account: Account, template: dict[str, Any], change: dict[str, Any], words: str
) -> None:
    _, subnets = world.cluster(account)
    account.create(common.PLACEMENT_GROUP, "near", {"name": "near", "strategy": "cluster"})
    for interface in template.get("networkInterfaces", []):
        if interface.pop("subnet", False):
            interface["subnetId"] = subnets[0].id
    made = world.launch_template(account, **template)
    inputs = world.node_group_inputs(account, subnets, made) | change
    if inputs.pop("both", False):
        inputs["subnetIds"] = [item.id for item in subnets]
    with pytest.raises(AwsError, match=words):
        account.create(common.NODE_GROUP, "gpu", inputs)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"perUnitStorageThroughput": 750}, "125, 250, 500, 1000"),
        ({"deploymentType": "SCRATCH_2"}, "not supported for SCRATCH_2"),
        ({"storageCapacity": 3600}, "1200, 2400 or a multiple of 2400"),
        ({"fileSystemTypeVersion": "2.10"}, "2.12, 2.15"),
        ({"efaEnabled": True}, "metadata configuration"),
        ({"efaEnabled": True, "metadataConfiguration": {"mode": "AUTOMATIC"}}, "multiple of 4800"),
    ],
)
def test_file_systems_refused(account: Account, change: dict[str, Any], words: str) -> None:
    home = world.subnet(account, world.vpc(account).id, 0, "a")
    with pytest.raises(AwsError, match=words):
        account.create(world.FILE_SYSTEM, "cache", {"subnetIds": home.id, **LUSTRE, **change})


@pytest.mark.parametrize("rules", [True, False])
def test_file_system_needs_its_port_open_first(account: Account, rules: bool) -> None:
    network = world.vpc(account)
    home = world.subnet(account, network.id, 0, "a")
    group = world.security_group(account, network.id, rules=rules)
    inputs = {"subnetIds": home.id, "securityGroupIds": [group.id], **LUSTRE}
    if rules:
        state = account.create(world.FILE_SYSTEM, "cache", inputs).state
        assert state["vpcId"] == network.id
        return
    with pytest.raises(AwsError, match="do not permit Lustre LNET network traffic on port 988"):
        account.create(world.FILE_SYSTEM, "cache", inputs)


def test_a_rule_for_another_port_does_not_do(account: Account) -> None:
    network = world.vpc(account)
    home = world.subnet(account, network.id, 0, "a")
    group = world.security_group(account, network.id, rules=False)
    https = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIpv4": "10.0.0.0/16"}
    for direction in (common.INGRESS_RULE, common.EGRESS_RULE):
        account.create(direction, "https", https | {"securityGroupId": group.id})
    inputs = {"subnetIds": home.id, "securityGroupIds": [group.id], **LUSTRE}
    with pytest.raises(AwsError, match=r"port 988 \(ingress\)"):
        account.create(world.FILE_SYSTEM, "cache", inputs)


class TestNetwork:
    def test_zone_of_another_region(self, account: Account) -> None:
        inputs = {"vpcId": world.vpc(account).id, "cidrBlock": "10.0.0.0/20", "availabilityZone": "eu-west-1a"}
        with pytest.raises(AwsError, match="us-east-1a, us-east-1b"):
            account.create(common.SUBNET, "s", inputs)

    @pytest.mark.parametrize(
        ("cidr", "code"), [("10.1.0.0/20", "InvalidSubnet.Range"), ("10.0.0.0/24", "InvalidSubnet.Conflict")]
    )
    def test_subnet_ranges(self, account: Account, cidr: str, code: str) -> None:
        network = world.vpc(account)
        world.subnet(account, network.id, 0, "a")
        with pytest.raises(AwsError, match=code):
            account.create(common.SUBNET, "s", {"vpcId": network.id, "cidrBlock": cidr})

    def test_nat_before_internet_gateway(self, account: Account) -> None:
        public = world.subnet(account, world.vpc(account).id, 0, "a")
        address = account.create(common.EIP, "nat", {"domain": "vpc"})
        with pytest.raises(AwsError, match="has no Internet gateway attached"):
            account.create(common.NAT_GATEWAY, "nat", {"subnetId": public.id, "allocationId": address.id})


class TestCluster:
    def test_subnets_of_one_zone(self, account: Account) -> None:
        network = world.vpc(account)
        subnets = [world.subnet(account, network.id, index, "a").id for index in range(2)]
        inputs = {
            "name": "demo",
            "roleArn": world.role(account, "control-plane").state["arn"],
            "vpcConfig": {"subnetIds": subnets},
        }
        with pytest.raises(AwsError, match="at least two different AZs"):
            account.create(common.CLUSTER, "demo", inputs)

    def test_version_does_not_jump(self, account: Account) -> None:
        demo, _ = world.cluster(account)
        with pytest.raises(AwsError, match=r"from 1\.35 to 1\.37"):
            account.update(demo.type, demo.id, demo.inputs | {"version": "1.37"})

    def test_access_policy_needs_its_entry(self, account: Account) -> None:
        world.cluster(account)
        inputs = {
            "clusterName": "demo",
            "principalArn": common.SIMULATED_ROLE,
            "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
            "accessScope": {"type": "cluster"},
        }
        association = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
        with pytest.raises(AwsError, match="depend on its access entry"):
            account.create(association, "me", inputs)
        entry = {"clusterName": "demo", "principalArn": common.SIMULATED_ROLE}
        account.create(common.ACCESS_ENTRY, "me", entry)
        account.create(association, "me", inputs)


@pytest.mark.parametrize(
    ("token", "inputs", "code"),
    [
        (common.ROLE, {"name": "a", "assumeRolePolicy": world.trust("ec2.amazonaws.com")}, "EntityAlreadyExists"),
        (world.LOG_GROUP, {"name": "/aws/eks/demo/cluster"}, "ResourceAlreadyExistsException"),
        (common.PLACEMENT_GROUP, {"name": "a", "strategy": "cluster"}, "InvalidPlacementGroup.Duplicate"),
        (common.LAUNCH_TEMPLATE, {"name": "a"}, "InvalidLaunchTemplateName.AlreadyExistsException"),
        ("aws:s3/bucket:Bucket", {"bucket": "weights"}, "BucketAlreadyOwnedByYou"),
    ],
)
def test_names_are_taken_once(account: Account, token: str, inputs: dict[str, Any], code: str) -> None:
    account.create(token, "first", inputs)
    with pytest.raises(AwsError, match=code):
        account.create(token, "second", inputs)


ACTIONS = ["sts:AssumeRole", "sts:TagSession"]
TRUST = {"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}}


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        (TRUST | {"Action": "sts:AssumeRole"}, "sts:TagSession"),
        (TRUST | {"Action": ACTIONS, "Effect": "Deny"}, "sts:AssumeRole and"),
        (
            TRUST | {"Action": ACTIONS, "Principal": {"Service": "ec2.amazonaws.com"}},
            "sts",
        ),
        (TRUST | {"Action": ACTIONS}, None),
    ],
)
def test_a_pod_identitys_role_trusts_pods(account: Account, statement: dict[str, Any], missing: str | None) -> None:
    world.cluster(account)
    trust = json.dumps({"Version": "2012-10-17", "Statement": statement})
    role = account.create(common.ROLE, "pods", {"name": "pods", "assumeRolePolicy": trust})
    token = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
    inputs = {"clusterName": "demo", "namespace": "kimi", "serviceAccount": "staging", "roleArn": role.state["arn"]}
    if missing is None:
        account.create(token, "staging", inputs)
        return
    with pytest.raises(AwsError, match=f"does not let pods.eks.amazonaws.com .*{missing}"):
        account.create(token, "staging", inputs)
