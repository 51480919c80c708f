"""The example stack in a cluster that is there already, on the stand-in: nothing of AWS, and nothing left behind.

The tests of this file run in order in one cluster, which no stack has made. It proves labels, taints, resources, claims
and order; not InfiniBand, and not what else such a cluster holds.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulation import existing, stackfile
from simulation.control_plane.state import connect
from simulation.existing import plugins
from tests.stack.simulated import SimulatedStack, make

pytestmark = pytest.mark.slow

RDMA = "rdma/hca_shared_devices_a"
CLAIM = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "models"}},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "share"},
            "spec": {
                "capacity": {"storage": "2Ti"},
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "",
                "nfs": {"server": "nfs.example", "path": "/models"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "weights", "namespace": "models"},
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "",
                "volumeName": "share",
                "resources": {"requests": {"storage": "2Ti"}},
            },
        },
    ],
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedStack]:
    """The example stack, not up yet, for a user who has no AWS: neither plugin nor variable nor credentials file."""
    folder: Path = tmp_path_factory.mktemp("existing")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SIMULATION_HOME", str(folder / "home"))
        try:
            made = make(folder / "project", cluster=True, file=stackfile.EXISTING)
            (folder / "user").mkdir()
            made.variables["HOME"] = str(folder / "user")
            yield made
        finally:
            existing.stop()


def gang_pods(stack: SimulatedStack, namespace: str) -> list[dict[str, Any]]:
    return stack.get("pods", "--namespace", namespace, "--selector=leaderworkerset.sigs.k8s.io/name=kimi-k25")


def assert_serves_on_both_gpu_nodes(stack: SimulatedStack, namespace: str) -> None:
    pods = gang_pods(stack, namespace)
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert {pod["spec"]["nodeName"] for pod in pods} == {"gpu-0", "gpu-1"}
    for pod in pods:
        limits = pod["spec"]["containers"][0]["resources"]["limits"]
        assert (limits["nvidia.com/gpu"], limits[RDMA]) == ("8", "1")


def test_a_preview_asks_for_nothing_of_aws(stack: SimulatedStack) -> None:
    assert shutil.which("pulumi-resource-aws", path=stack.variables["PATH"]) is None
    assert [name for name in stack.variables if name.startswith("AWS_")] == []
    text = stack.ok("preview", "--diff")
    assert "kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet: (create)" in text
    assert "aws:" not in text, text


def test_it_comes_up_in_a_cluster_without_device_plugins(stack: SimulatedStack) -> None:
    offered = {kind for node in stack.get("nodes") for kind in node["status"]["allocatable"] if "/" in kind}
    assert offered == set()
    stack.up()
    assert_serves_on_both_gpu_nodes(stack, "kimi-k25")
    (filled,) = stack.get("daemonset", "--namespace=kimi-k25")
    assert filled["status"]["numberReady"] == 2
    stack.ok("up", "--yes", "--skip-preview", "--expect-no-changes")
    assert not [one["type"] for one in stack.state() if one["type"].startswith(("aws:", "pulumi:providers:aws"))]


def test_it_leaves_nothing_in_the_cluster(stack: SimulatedStack) -> None:
    assert "LeaderWorkerSet kimi-k25/kimi-k25" in existing.left()
    done = stack.destroy()
    assert done.status == 0, done.text
    assert existing.left() == []


def test_it_uses_the_plugins_and_the_claim_of_the_owner_and_leaves_them(stack: SimulatedStack) -> None:
    plugins.install(connect(), ("nvidia", "rdma"))
    stack.kubectl("apply", "--filename=-", stdin=json.dumps(CLAIM))
    theirs = existing.left()
    assert "PersistentVolumeClaim models/weights" in theirs
    stack.set("fabric.install", False)
    stack.set("charts.nvidiaDevicePlugin.install", False)
    stack.change("weights", kind="existing_claim", namespace="models", claim="weights", hostPath=None)
    stack.up()
    assert_serves_on_both_gpu_nodes(stack, "models")
    (staged,) = stack.get("pods", "--namespace=models", "--selector=batch.kubernetes.io/job-name=kimi-k25-staging")
    for pod in (staged, *gang_pods(stack, "models")):
        assert claims_of(pod) == {"weights"}
    assert stack.get("daemonset", "--namespace=models") == []
    done = stack.destroy()
    assert done.status == 0, done.text
    assert existing.left() == theirs


def claims_of(pod: dict[str, Any]) -> set[str]:
    volumes = pod["spec"]["volumes"]
    return {volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume}
