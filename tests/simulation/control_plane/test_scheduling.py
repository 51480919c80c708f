"""Whole GPU nodes, taints and the LeaderWorkerSet controller on the real scheduler."""

from __future__ import annotations

import pytest

from simulation.control_plane.api import Api, ApiError
from tests.simulation.control_plane.objects import (
    ALL_DEVICES,
    GPU_TOLERATION,
    condition,
    container,
    eventually,
    is_ready,
    nodes,
    pod,
    sets,
    workers,
)

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("device_plugins")
def test_group_of_two_takes_both_gpu_nodes(api: Api, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.create(sets(namespace), workers("infer", 2))
    eventually("two pods are Ready", lambda: [is_ready(one) for one in api.items(pods)] == [True, True])
    leader, worker = sorted(api.items(pods), key=lambda one: str(one["metadata"]["name"]))
    assert leader["spec"]["nodeName"] != worker["spec"]["nodeName"]
    assert leader["status"]["podIP"] != worker["status"]["podIP"]
    for index, one in enumerate((leader, worker)):
        injected = {entry["name"]: entry.get("value") for entry in one["spec"]["containers"][0]["env"]}
        assert injected["LWS_LEADER_ADDRESS"] == f"infer-0.infer.{namespace}"
        assert injected["LWS_GROUP_SIZE"] == "2"
        assert injected["LWS_WORKER_INDEX"] == str(index)
    path = f"{sets(namespace)}/infer"
    eventually("the set is Available", lambda: condition(api.get(path), "Available").get("status") == "True")


@pytest.mark.usefixtures("device_plugins")
def test_pod_without_toleration_stays_pending(api: Api, namespace: str) -> None:
    wanted = [container(resources={"limits": {"nvidia.com/gpu": "8"}})]
    path = f"/api/v1/namespaces/{namespace}/pods"
    api.create(path, pod("refused", containers=wanted))
    api.create(path, pod("admitted", containers=wanted, tolerations=[GPU_TOLERATION]))
    eventually("the tolerating pod runs", lambda: is_ready(api.get(f"{path}/admitted")))
    eventually("the scheduler has spoken", lambda: bool(condition(api.get(f"{path}/refused"), "PodScheduled")))
    verdict = condition(api.get(f"{path}/refused"), "PodScheduled")
    assert verdict["reason"] == "Unschedulable"
    assert "untolerated taint" in verdict["message"]


def test_devices_come_and_go_with_their_plugin(api: Api, request: pytest.FixtureRequest) -> None:
    def offered(group: str) -> set[tuple[str, ...]]:
        return {tuple(node["status"]["allocatable"].get(one, "") for one in ALL_DEVICES) for node in nodes(api, group)}

    eventually("nothing without plugins", lambda: offered("gpu") <= {("", ""), ("0", "0")})
    request.getfixturevalue("device_plugins")
    eventually("all devices", lambda: offered("gpu") == {("8", "32")})
    assert offered("system") == {("", "")}
    api.delete("/apis/apps/v1/namespaces/kube-system/daemonsets/nvidia-device-plugin-ctr")
    eventually("no GPU without its plugin", lambda: offered("gpu") == {("0", "32")})


def test_restart_policy_of_newer_operators_is_refused(api: Api, namespace: str) -> None:
    body = workers("infer", 2)
    body["spec"]["leaderWorkerTemplate"]["restartPolicy"] = "RecreateGroupAfterStart"
    with pytest.raises(ApiError, match="restartPolicy"):
        api.create(sets(namespace), body)


def test_pod_with_a_claim_on_a_static_volume_is_scheduled(api: Api, namespace: str) -> None:
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace},
        "spec": {
            "capacity": {"storage": "2400Gi"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "csi": {"driver": "fsx.csi.aws.com", "volumeHandle": "fs-0123456789abcdef0"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "weights"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": namespace,
            "resources": {"requests": {"storage": "2400Gi"}},
        },
    }
    path = f"/api/v1/namespaces/{namespace}"
    api.create("/api/v1/persistentvolumes", volume)
    try:
        api.create(f"{path}/persistentvolumeclaims", claim)
        mounted = [{"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}}]
        api.create(f"{path}/pods", pod("reader", volumes=mounted))
        eventually("the reader runs", lambda: is_ready(api.get(f"{path}/pods/reader")))
    finally:
        api.delete(f"/api/v1/persistentvolumes/{namespace}")
