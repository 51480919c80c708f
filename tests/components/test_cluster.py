"""Rules of the control plane and the way into it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.components import graph as recorder
from tests.components.graph import DEPLOYER, Graph, record

ADMIN = "arn:aws:iam::111122223333:role/platform/admin"


def test_access_is_by_entries_alone_and_names_the_deployer(graph: Graph) -> None:
    access = graph.one("cluster-eks").inputs["accessConfig"]
    assert access == {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}
    (entry,) = graph.all("AccessEntry")
    (association,) = graph.all("AccessPolicyAssociation")
    assert entry.inputs["principalArn"] == association.inputs["principalArn"] == DEPLOYER
    assert association.inputs["policyArn"].endswith("AmazonEKSClusterAdminPolicy")
    assert association.inputs["accessScope"] == {"type": "cluster"}
    assert entry.urn in association.dependencies


def test_listed_admins_get_entries_and_the_deployer_only_one() -> None:
    def list_admins(deployment: dict[str, Any]) -> None:
        deployment["platform"]["admins"] = [ADMIN, DEPLOYER]

    principals = [entry.inputs["principalArn"] for entry in record(list_admins).all("AccessEntry")]
    assert sorted(principals) == sorted([ADMIN, DEPLOYER])


def test_who_deploys_next_changes_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def list_both(deployment: dict[str, Any]) -> None:
        deployment["platform"]["admins"] = [ADMIN, DEPLOYER]

    first = {entry.name: entry.inputs["principalArn"] for entry in record(list_both).all("AccessEntry")}
    monkeypatch.setitem(recorder.CALLS, "aws:iam/getSessionContext:getSessionContext", {"issuerArn": ADMIN})
    second = {entry.name: entry.inputs["principalArn"] for entry in record(list_both).all("AccessEntry")}
    assert first == second


def test_roles_of_one_name_in_two_accounts_are_two_entries() -> None:
    def list_twins(deployment: dict[str, Any]) -> None:
        deployment["platform"]["admins"] = [ADMIN, ADMIN.replace("111122223333", "444455556666")]

    names = [entry.name for entry in record(list_twins).all("AccessEntry")]
    assert len(set(names)) == 3


def test_the_api_is_reached_from_the_configured_addresses_only(graph: Graph) -> None:
    vpc = graph.one("cluster-eks").inputs["vpcConfig"]
    assert vpc["publicAccessCidrs"] == ["203.0.113.0/24"]
    assert vpc["endpointPrivateAccess"] is True


def test_the_log_group_is_made_before_eks_would_make_it(graph: Graph) -> None:
    logs = graph.one("cluster-logs")
    assert logs.inputs["name"] == "/aws/eks/kimi-k25/cluster"
    assert logs.inputs["retentionInDays"] > 0
    assert logs.urn in graph.one("cluster-eks").dependencies


def test_the_cluster_outlives_no_policy_of_its_role_and_brings_no_addon_of_its_own(graph: Graph) -> None:
    cluster = graph.one("cluster-eks")
    assert graph.one("cluster-role", "RolePolicyAttachment").urn in cluster.dependencies
    assert cluster.inputs["bootstrapSelfManagedAddons"] is False


def test_nodes_follow_the_clusters_version_with_a_pinned_ami(graph: Graph) -> None:
    for group, ami in (("system-nodes-group", "AL2023_x86_64_STANDARD"), ("gpu-nodes-group", "AL2023_x86_64_NVIDIA")):
        made = graph.one(group).inputs
        assert (made["version"], made["amiType"]) == ("1.35", ami)
        assert made["releaseVersion"].startswith("1.35.")


def test_system_nodes_can_be_made_anew_beside_the_old_ones(graph: Graph) -> None:
    assert "nodeGroupName" not in graph.one("system-nodes-group").inputs


def test_support_never_becomes_the_paid_extended_one(graph: Graph) -> None:
    assert graph.one("cluster-eks").inputs["upgradePolicy"] == {"supportType": "STANDARD"}


def test_network_addons_come_before_every_node_and_outlive_it(graph: Graph) -> None:
    early = {graph.one(f"cluster-{name}").urn for name in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")}
    for group in ("system-nodes-group", "gpu-nodes-group"):
        assert early <= graph.one(group).dependencies


def test_node_policies_outlive_every_node(graph: Graph) -> None:
    policies = {entry.urn for entry in graph.all("RolePolicyAttachment") if entry.name.startswith("cluster-node-")}
    granted = {entry.inputs["policyArn"].rpartition("/")[2] for entry in graph.all("RolePolicyAttachment")}
    assert granted == {
        "AmazonEKSClusterPolicy",
        "AmazonEKSWorkerNodePolicy",
        "AmazonEC2ContainerRegistryPullOnly",
        "AmazonEKS_CNI_Policy",
        "AmazonSSMManagedInstanceCore",
    }
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
    (association,) = graph.all("AccessPolicyAssociation")
    assert association.urn in provider.dependencies


def test_the_kubeconfig_fetches_tokens_and_holds_none(graph: Graph) -> None:
    config = json.loads(graph.one("cluster-kubernetes").inputs["kubeconfig"])
    execution = config["users"][0]["user"]["exec"]
    assert execution["apiVersion"] == "client.authentication.k8s.io/v1beta1"
    assert execution["args"][:2] == ["eks", "get-token"]
    assert execution["args"][execution["args"].index("--region") + 1] == "us-east-1"
    assert set(config["users"][0]["user"]) == {"exec"}
