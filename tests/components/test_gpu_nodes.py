"""Rules of the GPU nodes: EFA, placement, purchase, replacement."""

from __future__ import annotations

import base64
import json

import pytest

from planner.bill_lines import ROOT_VOLUME_GIB
from planner.hardware import GPU_TYPES
from planner.nodes import network_interfaces, user_data
from tests.components.graph import Graph, record


@pytest.mark.parametrize(
    ("instance", "interfaces", "efa", "first"),
    [
        ("p5.48xlarge", 32, 32, "efa"),
        ("p5en.48xlarge", 16, 16, "efa"),
        ("p6-b200.48xlarge", 8, 8, "efa"),
        ("p6-b300.48xlarge", 17, 16, "interface"),
        ("p4d.24xlarge", 4, 4, "efa"),
    ],
)
def test_every_network_card_has_an_efa_interface(instance: str, interfaces: int, efa: int, first: str) -> None:
    made = network_interfaces(GPU_TYPES[instance])
    assert len(made) == interfaces
    assert sum(interface.kind.startswith("efa") for interface in made) == efa == GPU_TYPES[instance].efa
    assert (made[0].card, made[0].device, made[0].kind) == (0, 0, first)
    assert {(interface.device, interface.kind) for interface in made[1:]} == {(1, "efa-only")}


def test_interfaces_have_no_public_address_and_all_security_groups(graph: Graph) -> None:
    interfaces = graph.one("gpu-nodes-template").inputs["networkInterfaces"]
    assert len(interfaces) == 32
    for interface in interfaces:
        assert interface["associatePublicIpAddress"] == "false"
        assert interface["deleteOnTermination"] == "true"
        assert interface["securityGroups"] == ["gpu-nodes-efa-id", "sg-cluster"]


def test_security_groups_stand_on_the_interfaces_alone(graph: Graph) -> None:
    assert "vpcSecurityGroupIds" not in graph.one("gpu-nodes-template").inputs


def test_efa_security_group_admits_itself_both_ways(graph: Graph) -> None:
    for direction, kind in (("in", "SecurityGroupIngressRule"), ("out", "SecurityGroupEgressRule")):
        rule = graph.one(f"gpu-nodes-efa-{direction}", kind).inputs
        assert rule["securityGroupId"] == rule["referencedSecurityGroupId"] == "gpu-nodes-efa-id"
        assert rule["ipProtocol"] == "-1"
    rules = {rule.urn for rule in graph.resources if rule.name.startswith("gpu-nodes-efa-")}
    assert rules <= graph.one("gpu-nodes-group").dependencies


def test_nodes_are_bought_on_demand(graph: Graph) -> None:
    assert graph.one("gpu-nodes-group").inputs["capacityType"] == "ON_DEMAND"


def test_root_disks_are_as_large_as_the_price_says_and_encrypted(graph: Graph) -> None:
    for template in ("gpu-nodes-template", "system-nodes-template"):
        (disk,) = graph.one(template).inputs["blockDeviceMappings"]
        assert disk["deviceName"] == "/dev/xvda"
        assert (disk["ebs"]["volumeSize"], disk["ebs"]["volumeType"]) == (ROOT_VOLUME_GIB, "gp3")
        assert disk["ebs"]["encrypted"] == disk["ebs"]["deleteOnTermination"] == "true"


def test_launch_template_holds_nothing_that_eks_refuses(graph: Graph) -> None:
    template = graph.one("gpu-nodes-template").inputs
    assert not {"imageId", "iamInstanceProfile", "instanceType", "instanceInitiatedShutdownBehavior"} & set(template)
    assert not [interface for interface in template["networkInterfaces"] if "subnetId" in interface]
    group = graph.one("gpu-nodes-group").inputs
    assert not {"diskSize", "remoteAccess"} & set(group)
    assert group["instanceTypes"] == ["p5.48xlarge"]


def test_instance_metadata_is_version_2_only(graph: Graph) -> None:
    for template in ("gpu-nodes-template", "system-nodes-template"):
        options = graph.one(template).inputs["metadataOptions"]
        assert (options["httpTokens"], options["httpPutResponseHopLimit"]) == ("required", 1)


def test_on_demand_nodes_share_a_cluster_placement_group_in_one_subnet(graph: Graph) -> None:
    assert graph.one("gpu-nodes-placement").inputs["strategy"] == "cluster"
    placement = graph.one("gpu-nodes-template").inputs["placement"]
    assert placement == {"groupName": "gpu-nodes-placement-0123abc"}
    assert graph.one("gpu-nodes-group").inputs["subnetIds"] == ["network-gpu-id"]


def test_node_group_is_deleted_before_it_is_replaced(graph: Graph) -> None:
    assert graph.one("gpu-nodes-group").delete_before_replace


def test_updates_launch_no_further_node(graph: Graph) -> None:
    assert graph.one("gpu-nodes-group").inputs["updateConfig"] == {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}


def test_nodes_are_tainted_labelled_pinned_and_repaired(graph: Graph) -> None:
    group = graph.one("gpu-nodes-group").inputs
    assert group["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    assert group["labels"]["nvidia.com/gpu.present"] == "true"
    assert group["amiType"] == "AL2023_x86_64_NVIDIA"
    assert group["releaseVersion"] == "1.35.6-20260818"
    assert group["nodeRepairConfig"] == {"enabled": True}


def test_desired_size_is_never_ignored(graph: Graph) -> None:
    assert graph.one("gpu-nodes-group").ignore_changes == ()


def test_no_gpu_is_paid_for_before_the_weights_are_staged(graph: Graph) -> None:
    assert graph.one("staging-job").urn in graph.one("gpu-nodes-group").dependencies


def test_user_data_joins_the_disks_with_the_api_version_that_nodes_know() -> None:
    data = user_data()
    head, _, body = data.partition("Content-Type: application/node.eks.aws")
    assert head.startswith("MIME-Version: 1.0")
    config = json.loads(body.rpartition("\n\n--NODE-CONFIG--")[0])
    assert config["apiVersion"] == "node.eks.aws/v1alpha1"
    assert config["spec"]["instance"]["localStorage"] == {"strategy": "RAID0"}


def test_user_data_reaches_the_launch_template(graph: Graph) -> None:
    encoded = graph.one("gpu-nodes-template").inputs["userData"]
    assert base64.b64decode(encoded).decode() == user_data()


def test_another_instance_type_brings_its_own_interfaces() -> None:
    def change(deployment: dict[str, object]) -> None:
        deployment["gpuNodes"] = {"instanceType": "p5en.48xlarge", "count": 2}

    changed = record(change)
    assert len(changed.one("gpu-nodes-template").inputs["networkInterfaces"]) == 16
    assert changed.one("gpu-nodes-group").inputs["instanceTypes"] == ["p5en.48xlarge"]
