"""Fabrics, existing clusters and described nodes: what is planned, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from planner import SettingsError, plan
from planner.fabric import default_thresholds
from planner.hardware import GPU_TYPES
from planner.plan import Plan
from planner.platform_settings import EfaFabric
from tests.planner.test_weight_rules import NODE, on_existing_cluster, refused


@pytest.fixture
def infiniband(raw: dict[str, Any]) -> dict[str, Any]:
    """Two described nodes of 8 H100 on an existing cluster over InfiniBand."""
    return on_existing_cluster(raw, {"kind": "nvme"})


def planned(raw: dict[str, Any]) -> Plan:
    return plan(raw, api_key_given=True)


def environment(found: Plan) -> dict[str, str | None]:
    assert found.serving is not None
    return {variable.name: variable.value for variable in found.serving.leader.env}


def test_infiniband_asks_for_its_resource_and_for_no_tcp(infiniband: dict[str, Any]) -> None:
    found = planned(infiniband)
    assert found.fabric.requests == {"rdma/hca_shared_devices_a": "1"}
    assert environment(found)["NCCL_NET"] == "IB"
    assert not {"NCCL_IB_GID_INDEX", "NCCL_IB_HCA", "FI_EFA_USE_HUGE_PAGE"} & set(environment(found))


def test_adapters_are_named_exactly(infiniband: dict[str, Any]) -> None:
    infiniband["fabric"]["hcas"] = "mlx5_0,mlx5_1"
    assert environment(planned(infiniband))["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1"
    infiniband["fabric"]["hcas"] = "^mlx5_bond_0"
    assert environment(planned(infiniband))["NCCL_IB_HCA"] == "^mlx5_bond_0"


def test_each_fabric_has_the_image_with_its_user_space(raw: dict[str, Any], infiniband: dict[str, Any]) -> None:
    assert "deep-learning-containers" in planned(raw).settings.image
    assert planned(infiniband).settings.image == "vllm/vllm-openai:v0.27.1"


def test_a_described_node_is_planned_like_an_instance_type(raw: dict[str, Any], infiniband: dict[str, Any]) -> None:
    ours, theirs = planned(infiniband), planned(raw)
    assert ours.serving is not None
    assert theirs.serving is not None
    assert ours.serving.fit == theirs.serving.fit
    assert ours.placement.gpu_labels == {"pool": "h100"}


def test_an_existing_cluster_has_one_line_on_the_bill(infiniband: dict[str, Any]) -> None:
    assert [part.name for part in planned(infiniband).price.parts] == ["gpuNodes"]
    assert not planned(infiniband).price.complete
    infiniband["prices"] = {"gpuNodes": 20}
    assert planned(infiniband).price.total_per_hour == 40


def test_alternatives_on_an_existing_cluster_are_its_own_nodes(infiniband: dict[str, Any]) -> None:
    infiniband["gpuNodes"]["count"] = 1
    text = refused(infiniband)
    assert "does not fit" in text
    assert "pulumi config set --path 'deployment.gpuNodes.count' 2" in text


@pytest.mark.parametrize(
    ("changes", "said", "typed"),
    [
        ({"fabric": {"kind": "efa"}}, "how many EFA devices", "deployment.fabric.kind' infiniband"),
        ({"fabric": {"kind": "none"}}, "efa or infiniband for 2 nodes", "deployment.fabric.kind' infiniband"),
        (
            {"fabric": {"kind": "infiniband", "resource": "rdma/hca-shared"}},
            "letters, digits and _",
            "deployment.fabric.resource' rdma/hca_shared",
        ),
        (
            {"fabric": {"kind": "infiniband", "resource": "nvidia.com/gpu"}},
            "a resource of the fabric's device plugin",
            "deployment.fabric.resource' rdma/hca_shared_devices_a",
        ),
        (
            {"fabric": {"kind": "infiniband", "resource": "nothing"}},
            "a resource of the fabric's device plugin",
            "deployment.fabric.resource' rdma/hca_shared_devices_a",
        ),
        (
            {"fabric": {"kind": "infiniband", "warnBelow": 100, "failBelow": 200}},
            "warnBelow at least failBelow",
            "rm --path 'deployment.fabric.warnBelow'",
        ),
        (
            {"fabric": {"kind": "infiniband", "warnBelow": 0}},
            "warnBelow at least failBelow",
            "rm --path 'deployment.fabric.warnBelow'",
        ),
        ({"fabric": {"kind": "infiniband", "gate": "maybe"}}, "'skip', 'warn' or 'require'", "deployment.fabric.gate"),
        ({"fabric": {"kind": "ethernet"}}, "efa or infiniband or none", "deployment.fabric.kind' efa"),
        (
            {"gpuNodes": {"instanceType": {**NODE, "gpu": "h300"}, "count": 2}},
            "h200-141gb",
            "gpuNodes.instanceType.gpu",
        ),
        ({"gpuNodes": {"instanceType": {"gpu": "h100-80gb"}, "count": 2}}, "gpuNodes.instanceType.gpus", ""),
    ],
)
def test_what_does_not_agree_is_refused(
    infiniband: dict[str, Any], changes: dict[str, Any], said: str, typed: str
) -> None:
    text = refused(infiniband | changes).replace("\n            ", " ")
    assert said in text
    assert typed in text


def test_a_resource_of_another_plugin_may_have_a_hyphen(infiniband: dict[str, Any]) -> None:
    infiniband["fabric"] |= {"resource": "nvidia.com/host-dev", "quantity": 8, "install": False}
    assert planned(infiniband).fabric.requests == {"nvidia.com/host-dev": "8"}


def test_ec2_has_no_infiniband(raw: dict[str, Any]) -> None:
    raw["fabric"] = {"kind": "infiniband"}
    assert "EC2 has no InfiniBand" in refused(raw)


def test_eks_starts_no_described_node(raw: dict[str, Any]) -> None:
    raw["gpuNodes"]["instanceType"] = NODE
    assert "an instance type that EKS can start" in refused(raw)


def test_one_node_without_efa_serves_without_fabric(raw: dict[str, Any]) -> None:
    raw |= {"model": "llama-3.1-8b-instruct", "gpuNodes": {"instanceType": "g6e.2xlarge", "count": 1}}
    assert "fabric.kind' none" in refused_with_token(raw)
    raw["fabric"] = {"kind": "none"}
    found = plan(raw, api_key_given=True, hub_token_given=True)
    assert found.fabric.requests == {}
    assert "NCCL_NET" not in environment(found)


def refused_with_token(raw: dict[str, Any]) -> str:
    with pytest.raises(SettingsError) as caught:
        plan(raw, api_key_given=True, hub_token_given=True)
    return str(caught.value)


@pytest.mark.parametrize(
    ("instance", "count", "thresholds"),
    [
        ("p5.48xlarge", 2, (352, 150)),
        ("p5en.48xlarge", 2, (352, 150)),
        ("p4d.24xlarge", 2, (44, 19)),
        ("p5en.48xlarge", 1, (400, 0)),
    ],
)
def test_the_expected_bandwidth_follows_from_the_cards(
    instance: str, count: int, thresholds: tuple[float, float]
) -> None:
    assert default_thresholds(EfaFabric(), GPU_TYPES[instance], count) == thresholds


def test_a_toleration_with_a_value_asks_for_that_value(infiniband: dict[str, Any]) -> None:
    infiniband["platform"] = {
        **infiniband["platform"],
        "gpuNodeTolerations": [{"key": "dedicated", "value": "llm"}, {"key": "nvidia.com/gpu", "effect": None}],
    }
    assert planned(infiniband).placement.gpu_tolerations == (
        {"key": "dedicated", "operator": "Equal", "value": "llm", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "operator": "Exists"},
    )


@pytest.mark.parametrize(
    ("platform", "said"),
    [
        ({"gpuNodeTolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "left out it follows from"),
        ({"gpuNodeTolerations": [{"key": ""}]}, "a key of Kubernetes"),
        ({"gpuNodeTolerations": [{"key": "a", "value": "b c"}]}, "a value of Kubernetes"),
        ({"gpuNodeLabels": {"k" * 64: "h100"}}, "at most 63"),
        ({"gpuNodeLabels": {"pool": "v" * 64}}, "at most 63"),
        ({"cpuNodeLabels": {".example.com/pool": "cpu"}}, "a key of Kubernetes"),
    ],
)
def test_what_kubernetes_would_refuse_is_refused_before(
    infiniband: dict[str, Any], platform: dict[str, Any], said: str
) -> None:
    infiniband["platform"] = {**infiniband["platform"], **platform}
    assert said in refused(infiniband).replace("\n            ", " ")
