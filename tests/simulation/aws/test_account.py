"""Outputs, updates, the Kubernetes side, faults on demand and data sources of the account."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulation.aws import faults, invokes
from simulation.aws.account import Account
from simulation.aws.errors import AwsError, SimulationError
from simulation.aws.resources import common
from simulation.control_plane import NodeGroupSpec
from tests.simulation.aws import world
from tests.simulation.aws.conftest import RecordedCluster


class TestOutputs:
    def test_cluster(self, account: Account) -> None:
        state = world.cluster(account)[0].state
        assert state["endpoint"] == "https://127.0.0.1:6443"
        assert state["certificateAuthority"] == {"data": "Q0E="}
        assert state["arn"] == "arn:aws:eks:us-east-1:000000000000:cluster/demo"
        assert state["vpcConfig"]["clusterSecurityGroupId"].startswith("sg-0")
        assert state["vpcConfig"]["vpcId"].startswith("vpc-0")
        assert state["identities"][0]["oidcs"][0]["issuer"].startswith("https://oidc.eks.us-east-1")

    def test_launch_template_versions_rise(self, account: Account) -> None:
        template = world.launch_template(account)
        changed = account.update(template.type, template.id, template.inputs | {"description": "new"})
        assert (template.state["latestVersion"], changed.state["latestVersion"]) == (1, 2)
        assert changed.state["defaultVersion"] == 1

    def test_tags_of_the_provider_are_added(self, account: Account) -> None:
        tagged = replace(account, default_tags={"stack": "demo"})
        row = tagged.create(common.VPC, "main", {"cidrBlock": "10.0.0.0/16", "tags": {"Name": "main"}})
        assert row.state["tags"] == {"Name": "main"}
        assert row.state["tagsAll"] == {"stack": "demo", "Name": "main"}

    def test_an_update_of_something_gone_says_what_to_do(self, account: Account) -> None:
        with pytest.raises(AwsError, match="pulumi refresh"):
            account.update(common.VPC, "vpc-gone", {})

    def test_unknown_types_are_refused_by_file(self, account: Account) -> None:
        with pytest.raises(SimulationError, match=r"aws:ec2/instance:Instance.*resources/network\.py or compute\.py"):
            account.create("aws:ec2/instance:Instance", "x", {})


class TestKubernetes:
    def test_node_group_with_template(self, account: Account, cluster: RecordedCluster) -> None:
        _, subnets = world.cluster(account)
        inputs = world.node_group_inputs(account, subnets, world.launch_template(account))
        group = account.create(common.NODE_GROUP, "gpu", inputs)
        account.update(group.type, group.id, inputs | {"scalingConfig": {"minSize": 0, "desiredSize": 0, "maxSize": 2}})
        account.delete(group.type, group.id)
        nodes = NodeGroupSpec(
            name="gpu",
            instance_type="p5.48xlarge",
            count=2,
            labels={
                "role": "gpu",
                "eks.amazonaws.com/nodegroup": "gpu",
                "eks.amazonaws.com/capacityType": "ON_DEMAND",
            },
            taints=(("nvidia.com/gpu", "present", "NoSchedule"),),
            zone="us-east-1a",
        )
        assert cluster.calls == [
            ("start", "demo", "1.35"),
            ("scale_nodes", nodes),
            ("scale_nodes", replace(nodes, count=0)),
            ("remove_nodes", "gpu"),
        ]

    def test_addons(self, account: Account, cluster: RecordedCluster) -> None:
        world.cluster(account)
        addon = account.create(world.ADDON, "cni", {"clusterName": "demo", "addonName": "vpc-cni"})
        account.delete(addon.type, addon.id)
        assert cluster.calls[1:] == [("install_addon", "vpc-cni"), ("remove_addon", "vpc-cni")]

    def test_a_cluster_with_leftovers_is_not_deleted(self, account: Account, cluster: RecordedCluster) -> None:
        demo, _ = world.cluster(account)
        cluster.left.append("PersistentVolumeClaim serving/weights")
        with pytest.raises(AwsError, match="PersistentVolumeClaim serving/weights"):
            account.delete(demo.type, demo.id)
        assert account.read(demo.type, demo.id)
        assert ("stop",) not in cluster.calls

    def test_nodes_of_a_failed_creation_do_not_stay(
        self, account: Account, cluster: RecordedCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_nodes: NodeGroupSpec) -> None:
            raise TimeoutError

        _, subnets = world.cluster(account)
        inputs = world.node_group_inputs(account, subnets)
        monkeypatch.setattr(cluster, "scale_nodes", fail)
        with pytest.raises(TimeoutError):
            account.create(common.NODE_GROUP, "gpu", inputs)
        assert cluster.calls[-1] == ("remove_nodes", "gpu")
        assert common.NODE_GROUP not in {row.type for row in account.store.list_resources()}

    def test_a_refused_node_group_reaches_no_cluster(self, account: Account, cluster: RecordedCluster) -> None:
        _, subnets = world.cluster(account)
        inputs = world.node_group_inputs(account, subnets) | {"subnetIds": ["subnet-gone"]}
        with pytest.raises(AwsError):
            account.create(common.NODE_GROUP, "gpu", inputs)
        assert len(cluster.calls) == 1


class TestFaults:
    def test_first_calls_fail_and_counts_outlive_the_process(self, account: Account) -> None:
        asked = faults.parse("ec2:Vpc=VpcLimitExceeded:2,ec2:Vpc=delete/ThrottlingException:1")
        for _ in range(2):
            with pytest.raises(AwsError, match="VpcLimitExceeded"):
                world.vpc(replace(account, faults=asked))
        assert account.store.is_empty()
        network = world.vpc(replace(account, faults=asked))
        with pytest.raises(AwsError, match="Rate exceeded"):
            replace(account, faults=asked).delete(network.type, network.id)
        replace(account, faults=asked).delete(network.type, network.id)
        assert account.store.is_empty()

    def test_a_name_spares_the_others_of_its_type(self, account: Account) -> None:
        asked = replace(account, faults=faults.parse("ec2:Vpc/second=VpcLimitExceeded:1"))
        asked.create(common.VPC, "first", {"cidrBlock": "10.0.0.0/16"})
        with pytest.raises(AwsError, match="VpcLimitExceeded"):
            asked.create(common.VPC, "second", {"cidrBlock": "10.1.0.0/16"})

    def test_an_unknown_type_is_refused(self) -> None:
        with pytest.raises(SimulationError, match="no simulated resource type eks:Nope"):
            faults.parse("eks:Nope=Foo:1")

    @pytest.mark.parametrize("text", ["NodeGroup=x:1", "eks:NodeGroup", "eks:NodeGroup=x", "eks:NodeGroup=grow/x:1"])
    def test_unreadable_rules_are_shown_with_an_example(self, text: str) -> None:
        with pytest.raises(SimulationError, match="InsufficientInstanceCapacity:2"):
            faults.parse(text)


class TestInvokes:
    def test_who_deploys(self, account: Account) -> None:
        who = invokes.answer(account, "aws:index/getCallerIdentity:getCallerIdentity", {})
        assert who["arn"] == "arn:aws:sts::000000000000:assumed-role/SIMULATED/laptop"
        context = invokes.answer(account, "aws:iam/getSessionContext:getSessionContext", {"arn": who["arn"]})
        assert context["issuerArn"] == common.SIMULATED_ROLE

    def test_zones_of_the_region(self, account: Account) -> None:
        token = "aws:index/getAvailabilityZones:getAvailabilityZones"
        answer = invokes.answer(replace(account, region="eu-west-1"), token, {"excludeZoneIds": ["euw1-az2"]})
        assert answer["names"] == ["eu-west-1a", "eu-west-1c"]
        assert answer["zoneIds"] == ["euw1-az1", "euw1-az3"]

    def test_image_release(self, account: Account) -> None:
        name = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia/recommended/release_version"
        answer = invokes.answer(account, "aws:ssm/getParameter:getParameter", {"name": name})
        assert answer["value"].startswith("1.34.")
        with pytest.raises(AwsError, match="ParameterNotFound"):
            invokes.answer(account, "aws:ssm/getParameter:getParameter", {"name": "/else"})

    def test_existing_network(self, account: Account) -> None:
        network = world.vpc(account)
        home = world.subnet(account, network.id, 0, "a")
        vpc = invokes.answer(account, "aws:ec2/getVpc:getVpc", {"id": network.id})
        subnet = invokes.answer(account, "aws:ec2/getSubnet:getSubnet", {"id": home.id})
        assert (vpc["cidrBlock"], subnet["vpcId"]) == ("10.0.0.0/16", network.id)
        assert subnet["availableIpAddressCount"] == 4091

    def test_unknown_ones_are_refused_by_name(self, account: Account) -> None:
        with pytest.raises(SimulationError, match=r"aws:ec2/getAmi:getAmi.*invokes\.py"):
            invokes.answer(account, "aws:ec2/getAmi:getAmi", {})
