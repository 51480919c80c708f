"""Refusals about the choices of a stack file, and about keys that only one of the choices has."""

from __future__ import annotations

from typing import Any

import pytest

from planner import plan
from planner.problems import Mend, config_command, dotted
from tests.planner.test_refusals import change, mended, refused
from tests.planner.test_weight_rules import EXISTING, REVISION, on_existing_cluster

CLAIM = {"kind": "existing_claim", "namespace": "models", "claim": "weights"}


@pytest.fixture
def lab(raw: dict[str, Any]) -> dict[str, Any]:
    """Two described nodes over InfiniBand on an existing cluster, weights on their disks."""
    return on_existing_cluster(raw, {"kind": "nvme"})


def without(raw: dict[str, Any], path: str) -> dict[str, Any]:
    changed = change(raw, path, None)
    target: Any = changed
    *sections, key = path.split(".")
    for section in sections:
        target = target[section]
    del target[key]
    return changed


@pytest.mark.parametrize(
    ("path", "typed"),
    [
        ("platform.context", "set --path 'deployment.platform.context' my-cluster"),
        ("platform.gpuNodeLabels", "set --path 'deployment.platform.gpuNodeLabels.gpu-pool' h100"),
        ("gpuNodes.instanceType.gpu", "set --path 'deployment.gpuNodes.instanceType.gpu' h100-80gb"),
        ("gpuNodes.instanceType.gpus", "set --path 'deployment.gpuNodes.instanceType.gpus' 8"),
        ("gpuNodes.instanceType.vcpus", "set --path 'deployment.gpuNodes.instanceType.vcpus' 192"),
        ("gpuNodes.instanceType.memoryGib", "set --path 'deployment.gpuNodes.instanceType.memoryGib' 2048"),
        ("gpuNodes.instanceType.nvmeGb", "set --path 'deployment.gpuNodes.instanceType.nvmeGb' 855"),
    ],
)
def test_what_is_missing_comes_with_an_example_that_mends(lab: dict[str, Any], path: str, typed: str) -> None:
    error = refused(without(lab, path))
    assert f"pulumi config {typed}" in str(error)
    assert "Field required" not in str(error)
    assert plan(mended(without(lab, path), error.problems), api_key_given=True)


@pytest.mark.parametrize("weights", [without({"weights": CLAIM}, f"weights.{key}") for key in ("namespace", "claim")])
def test_a_claim_that_is_not_named_is_named_by_example(raw: dict[str, Any], weights: dict[str, Any]) -> None:
    stack = on_existing_cluster(raw, weights["weights"])
    assert plan(mended(stack, refused(stack).problems), api_key_given=True)


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("platform.kind", "exsting", "existing"),
        ("platform.kind", None, "existing"),
        ("fabric", {"kind": None, "resource": "rdma/ib", "adapters": 4}, "infiniband"),
        ("weights.kind", "disk", "nvme"),
        ("weights.kind", ["nvme"], "nvme"),
    ],
)
def test_an_unknown_kind_is_mended_to_the_one_that_is_meant(
    lab: dict[str, Any], path: str, value: object, kind: str
) -> None:
    lab["weights"]["hostPath"] = "/mnt/nvme"
    stack = change(lab, path, value)
    (problem,) = refused(stack).problems
    assert [mend.value for mend in problem.mends] == [kind]
    assert plan(mended(stack, (problem,)), api_key_given=True)


def test_a_key_of_another_kind_is_told_so(raw: dict[str, Any]) -> None:
    raw["weights"]["hostPath"] = "/mnt/nvme"
    raw["fabric"]["hcas"] = "mlx5_0"
    said = {dotted(problem.path): problem.allowed for problem in refused(raw).problems}
    assert said["weights.hostPath"].startswith("no such key here: it belongs to kind nvme.")
    assert said["fabric.hcas"].startswith("no such key here: it belongs to kind infiniband.")


def test_yaml_reads_labels_as_truth_values_and_numbers_which_they_are_not(lab: dict[str, Any]) -> None:
    lab["platform"] = {
        **EXISTING,
        "gpuNodeLabels": {"nvidia.com/gpu.present": True, "slots": 8},
        "gpuNodeTolerations": [{"key": "gpu", "value": True}],
    }
    placed = plan(lab, api_key_given=True).placement
    assert placed.gpu_labels == {"nvidia.com/gpu.present": "true", "slots": "8"}
    assert placed.gpu_tolerations[0]["value"] == "true"


def test_a_key_with_dots_is_typed_as_pulumi_reads_it() -> None:
    path = ("platform", "gpuNodeLabels", "nvidia.com/gpu.present")
    typed = """pulumi config rm --path 'deployment.platform.gpuNodeLabels["nvidia.com/gpu.present"]'"""
    assert config_command(Mend(path, None)) == typed
    assert "'\\''" in config_command(Mend(("prices", "it's"), None))


def test_a_prefix_may_be_nothing_and_loses_its_slashes(raw: dict[str, Any]) -> None:
    source = {"kind": "s3", "bucket": "models", "prefix": ""}
    raw["weights"] = {"kind": "nvme", "revision": REVISION, "source": source}
    assert plan(raw, api_key_given=True)
    source["prefix"] = "/models/kimi/"
    assert "deployment.weights.source.prefix' models/kimi" in str(refused(raw))


@pytest.mark.parametrize("key", ["vcpus", "memoryGib", "nvmeGb", "networkGbps"])
def test_nodes_beyond_reason_are_refused(lab: dict[str, Any], key: str) -> None:
    (problem,) = refused(change(lab, f"gpuNodes.instanceType.{key}", 10**9)).problems
    assert dotted(problem.path) == f"gpuNodes.instanceType.{key}"
