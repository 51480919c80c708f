"""What names something that does not exist is refused; what others still use stays."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest

from simulation.aws.account import Account
from simulation.aws.errors import AwsError
from simulation.aws.resources import common
from tests.simulation.aws import world
from tests.simulation.aws.conftest import RecordedCluster


def refused(code: str, *words: str) -> AbstractContextManager[object]:
    """An AwsError with that code whose text holds all of `words`."""
    pattern = ".*".join([f"^{code}: ", *words])
    return pytest.raises(AwsError, match=f"(?s){pattern}")


@pytest.mark.parametrize(
    ("token", "inputs", "code"),
    [
        (common.SUBNET, {"vpcId": "vpc-1", "cidrBlock": "10.0.0.0/24"}, "InvalidVpcID.NotFound"),
        (common.NAT_GATEWAY, {"subnetId": "subnet-1"}, "InvalidSubnetID.NotFound"),
        (common.LAUNCH_TEMPLATE, {"name": "a", "vpcSecurityGroupIds": ["sg-1"]}, "InvalidGroup.NotFound"),
        (common.ROLE_POLICY_ATTACHMENT, {"role": "nobody", "policyArn": "x"}, "NoSuchEntity"),
        (world.ADDON, {"clusterName": "none", "addonName": "vpc-cni"}, "ResourceNotFoundException"),
        (world.FILE_SYSTEM, {"subnetIds": "subnet-1"}, "InvalidSubnetID.NotFound"),
    ],
)
def test_unknown_references_are_refused(account: Account, token: str, inputs: dict[str, object], code: str) -> None:
    with refused(code):
        account.create(token, "it", inputs)
    assert account.store.is_empty()


def test_references_hold_at_update_too(account: Account) -> None:
    group = world.security_group(account, world.vpc(account).id)
    template = world.launch_template(account, vpcSecurityGroupIds=[group.id])
    with refused("InvalidGroup.NotFound", "sg-gone"):
        account.update(template.type, template.id, template.inputs | {"vpcSecurityGroupIds": ["sg-gone"]})


class TestDelete:
    def test_subnet_stays_for_its_node_group(self, account: Account) -> None:
        _, subnets = world.cluster(account)
        account.create(common.NODE_GROUP, "gpu", world.node_group_inputs(account, subnets))
        with refused("DependencyViolation", subnets[0].id, "eks:Cluster demo", "eks:NodeGroup gpu"):
            account.delete(common.SUBNET, subnets[0].id)

    def test_cluster_stays_for_its_node_group(self, account: Account, cluster: RecordedCluster) -> None:
        demo, subnets = world.cluster(account)
        group = account.create(common.NODE_GROUP, "gpu", world.node_group_inputs(account, subnets))
        with refused("ResourceInUseException", "nodegroups attached"):
            account.delete(common.CLUSTER, demo.id)
        account.delete(common.NODE_GROUP, group.id)
        account.delete(common.CLUSTER, demo.id)
        assert cluster.calls[-1] == ("stop",)

    def test_clusters_own_group_and_addons_go_with_it(self, account: Account) -> None:
        demo, _ = world.cluster(account)
        account.create(world.ADDON, "cni", {"clusterName": "demo", "addonName": "vpc-cni"})
        own = demo.state["vpcConfig"]["clusterSecurityGroupId"]
        assert account.read(common.SECURITY_GROUP, own)
        account.delete(common.CLUSTER, demo.id)
        types = {row.type for row in account.store.list_resources()}
        assert not types & {common.CLUSTER, world.ADDON}
        assert account.read(common.SECURITY_GROUP, own) is None

    def test_cluster_stays_while_others_use_its_own_group(self, account: Account) -> None:
        demo, _ = world.cluster(account)
        world.launch_template(account, vpcSecurityGroupIds=[demo.state["vpcConfig"]["clusterSecurityGroupId"]])
        with refused("ResourceInUseException", "ec2:LaunchTemplate gpu"):
            account.delete(common.CLUSTER, demo.id)

    def test_vpc_takes_what_it_came_with(self, account: Account) -> None:
        network = world.vpc(account)
        assert len(account.store.list_resources()) == 3
        account.delete(common.VPC, network.id)
        assert account.store.is_empty()

    def test_group_goes_with_rules_about_itself_but_not_with_others(self, account: Account) -> None:
        network = world.vpc(account)
        group = world.security_group(account, network.id)
        other = account.create(common.SECURITY_GROUP, "fsx", {"name": "fsx", "vpcId": network.id})
        peer = {"securityGroupId": other.id, "referencedSecurityGroupId": group.id, "ipProtocol": "-1"}
        rule = account.create(common.INGRESS_RULE, "from-efa", peer)
        with refused("DependencyViolation", "from-efa"):
            account.delete(common.SECURITY_GROUP, group.id)
        account.delete(common.INGRESS_RULE, rule.id)
        account.delete(common.SECURITY_GROUP, group.id)
        assert not [row for row in account.store.list_resources() if row.type == common.INGRESS_RULE]

    def test_role_stays_while_policies_are_attached(self, account: Account) -> None:
        role = world.role(account, "node", "AmazonEKSWorkerNodePolicy")
        with refused("DeleteConflict", "node-AmazonEKSWorkerNodePolicy"):
            account.delete(common.ROLE, role.id)

    def test_policy_stays_attached_while_nodes_need_the_role(self, account: Account) -> None:
        _, subnets = world.cluster(account)
        account.create(common.NODE_GROUP, "gpu", world.node_group_inputs(account, subnets))
        attachment = next(row for row in account.store.list_resources() if row.type == common.ROLE_POLICY_ATTACHMENT)
        with refused("SimulatedDependency", "eks:NodeGroup gpu"):
            account.delete(attachment.type, attachment.id)

    def test_internet_gateway_stays_for_nat(self, account: Account) -> None:
        network = world.vpc(account)
        public = world.subnet(account, network.id, 0, "a")
        gateway = account.create(common.INTERNET_GATEWAY, "igw", {"vpcId": network.id})
        address = account.create(common.EIP, "nat", {"domain": "vpc"})
        nat = account.create(
            common.NAT_GATEWAY, "nat", {"subnetId": public.id, "allocationId": address.state["allocationId"]}
        )
        assert nat.state["publicIp"] == address.state["publicIp"]
        with refused("DependencyViolation", "mapped public address", "ec2:NatGateway nat"):
            account.delete(common.INTERNET_GATEWAY, gateway.id)
        with refused("InvalidIPAddress.InUse"):
            account.delete(common.EIP, address.id)

    def test_what_is_gone_is_no_error(self, account: Account) -> None:
        account.delete(common.VPC, "vpc-gone")
