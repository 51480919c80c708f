"""Rules of the control plane and the way into it."""

from __future__ import annotations

import json
from typing import Any

from tests.components.graph import DEPLOYER, Graph, record

ADMIN = "arn:aws:iam::111122223333:role/platform/admin"


def test_access_is_by_entries_alone_and_names_the_deployer(graph: Graph) -> None:
    access = graph.one("cluster-eks").inputs["accessConfig"]
    assert access == {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}
    assert graph.one("cluster-deployer", "AccessEntry").inputs["principalArn"] == DEPLOYER
    association = graph.one("cluster-deployer", "AccessPolicyAssociation").inputs
    assert association["policyArn"].endswith("AmazonEKSClusterAdminPolicy")


def test_listed_admins_get_entries_and_the_deployer_only_one() -> None:
    def list_admins(deployment: dict[str, Any]) -> None:
        deployment["platform"]["admins"] = [ADMIN, DEPLOYER]

    principals = [entry.inputs["principalArn"] for entry in record(list_admins).all("AccessEntry")]
    assert sorted(principals) == sorted([ADMIN, DEPLOYER])


def test_the_api_is_reached_from_the_configured_addresses_only(graph: Graph) -> None:
    vpc = graph.one("cluster-eks").inputs["vpcConfig"]
    assert vpc["publicAccessCidrs"] == ["203.0.113.0/24"]
    assert vpc["endpointPrivateAccess"] is True


def test_the_log_group_is_made_before_eks_would_make_it(graph: Graph) -> None:
    logs = graph.one("cluster-logs")
    assert logs.inputs["name"] == "/aws/eks/kimi-k25/cluster"
    assert logs.inputs["retentionInDays"] > 0
    assert logs.urn in graph.one("cluster-eks").dependencies


def test_support_never_becomes_the_paid_extended_one(graph: Graph) -> None:
    assert graph.one("cluster-eks").inputs["upgradePolicy"] == {"supportType": "STANDARD"}


def test_network_addons_come_before_every_node_and_outlive_it(graph: Graph) -> None:
    early = {graph.one(f"cluster-{name}").urn for name in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")}
    for group in ("system-nodes-group", "gpu-nodes-group"):
        assert early <= graph.one(group).dependencies


def test_node_policies_outlive_every_node(graph: Graph) -> None:
    policies = {entry.urn for entry in graph.all("RolePolicyAttachment") if entry.name.startswith("cluster-node-")}
    assert len(policies) == 4
    for group in ("system-nodes-group", "gpu-nodes-group"):
        assert policies <= graph.one(group).dependencies


def test_nodes_wait_for_their_way_to_the_internet(graph: Graph) -> None:
    route = graph.one("network-private-default").urn
    for group in ("system-nodes-group", "gpu-nodes-group"):
        assert route in graph.one(group).dependencies


def test_network_policy_is_switched_on(graph: Graph) -> None:
    configuration = json.loads(graph.one("cluster-vpc-cni").inputs["configurationValues"])
    assert configuration == {"enableNetworkPolicy": "true"}


def test_addons_that_run_on_nodes_come_after_the_system_nodes(graph: Graph) -> None:
    group = graph.one("system-nodes-group").urn
    for addon in ("system-nodes-coredns", "system-nodes-aws-fsx-csi-driver"):
        assert group in graph.one(addon).dependencies


def test_system_nodes_stand_in_the_gpu_zone(graph: Graph) -> None:
    assert graph.one("system-nodes-group").inputs["subnetIds"] == ["network-private-near-id"]
    assert graph.one("network-private-near").inputs["availabilityZone"] == "us-east-1a"


def test_the_kubernetes_provider_keeps_its_identity_as_long_as_the_cluster(graph: Graph) -> None:
    provider = graph.one("cluster-kubernetes")
    assert provider.inputs["clusterIdentifier"].endswith("@2026-12-01T00:00:00Z")
    assert graph.one("cluster-deployer", "AccessPolicyAssociation").urn in provider.dependencies


def test_the_kubeconfig_fetches_tokens_and_holds_none(graph: Graph) -> None:
    config = json.loads(graph.one("cluster-kubernetes").inputs["kubeconfig"])
    execution = config["users"][0]["user"]["exec"]
    assert execution["apiVersion"] == "client.authentication.k8s.io/v1beta1"
    assert execution["args"][:2] == ["eks", "get-token"]
    assert set(config["users"][0]["user"]) == {"exec"}
