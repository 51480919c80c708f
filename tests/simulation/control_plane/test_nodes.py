"""Node groups: sizes, labels, taints, drain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from simulation.control_plane import ControlPlaneError, NodeGroupSpec, remove_nodes, scale_nodes
from simulation.control_plane.api import Api
from simulation.control_plane.instance_types import instance_type
from tests.simulation.control_plane.objects import condition, eventually, is_ready, nodes, pod

SPEC = NodeGroupSpec(
    name="extra",
    instance_type="c6in.4xlarge",
    count=2,
    labels={"team": "a", "tier": "cpu"},
    taints=(("dedicated", "extra", "NoSchedule"),),
    zone="us-east-1b",
)


def test_p5_offers_what_was_seen_on_eks() -> None:
    offered = instance_type("p5.48xlarge").allocatable()
    assert (offered["cpu"], offered["hugepages-2Mi"], offered["pods"]) == ("191450m", "42242Mi", "100")
    assert int(offered["memory"].removesuffix("Ki")) == pytest.approx(2052371068, rel=1e-4)


def test_unknown_instance_type_names_the_known_ones() -> None:
    with pytest.raises(ControlPlaneError, match=r"'p9\.huge'.*Known are: p5\.48xlarge"):
        scale_nodes(replace(SPEC, instance_type="p9.huge"))


def test_unknown_effect_is_refused() -> None:
    with pytest.raises(ControlPlaneError, match="'NO_SCHEDULE' is none of NoSchedule"):
        scale_nodes(replace(SPEC, taints=(("dedicated", "extra", "NO_SCHEDULE"),)))


@pytest.fixture
def extra(api: Api) -> Iterator[Api]:
    scale_nodes(SPEC)
    yield api
    remove_nodes("extra")


@pytest.mark.slow
def test_nodes_carry_what_eks_gives_them(extra: Api) -> None:
    first, second = nodes(extra, "extra")
    assert first["metadata"]["name"] != second["metadata"]["name"]
    labels = first["metadata"]["labels"]
    assert labels["node.kubernetes.io/instance-type"] == "c6in.4xlarge"
    assert labels["topology.kubernetes.io/zone"] == "us-east-1b"
    assert labels["topology.kubernetes.io/region"] == "us-east-1"
    assert labels["kubernetes.io/hostname"] == first["metadata"]["name"]
    assert labels["team"] == "a"
    assert first["spec"]["taints"] == [{"key": "dedicated", "value": "extra", "effect": "NoSchedule"}]
    assert is_ready(first)
    assert is_ready(second)


@pytest.mark.slow
def test_labels_and_taints_follow_the_group(extra: Api) -> None:
    before = [node["metadata"]["uid"] for node in nodes(extra, "extra")]
    scale_nodes(replace(SPEC, labels={"team": "b"}, taints=()))
    after = nodes(extra, "extra")
    assert [node["metadata"]["uid"] for node in after] == before
    for node in after:
        assert node["metadata"]["labels"]["team"] == "b"
        assert "tier" not in node["metadata"]["labels"]
        assert "taints" not in node["spec"]


@pytest.mark.slow
def test_scaling_in_takes_pods_away_with_the_node(extra: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    selector = {"eks.amazonaws.com/nodegroup": "extra"}
    tolerate = [{"key": "dedicated", "operator": "Exists"}]
    extra.create(path, pod("tenant", nodeSelector=selector, tolerations=tolerate))
    eventually("the pod runs", lambda: is_ready(extra.get(f"{path}/tenant")))
    scale_nodes(replace(SPEC, count=0))
    assert nodes(extra, "extra") == []
    assert extra.items(path) == []
    extra.create(path, pod("late", nodeSelector=selector, tolerations=tolerate))
    eventually("the scheduler has spoken", lambda: bool(condition(extra.get(f"{path}/late"), "PodScheduled")))
    assert condition(extra.get(f"{path}/late"), "PodScheduled")["reason"] == "Unschedulable"
