"""Kubernetes objects and waits that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulation.control_plane import NodeGroupSpec
from simulation.control_plane.api import Api, Json
from simulation.control_plane.processes import wait_until

CLUSTER = "kimi"
SECONDS = 20

GPU_NODES = NodeGroupSpec(
    name="gpu",
    instance_type="p5.48xlarge",
    count=2,
    labels={"nvidia.com/gpu.present": "true"},
    taints=(("nvidia.com/gpu", "true", "NoSchedule"),),
    zone="us-east-1a",
)
SYSTEM_NODES = NodeGroupSpec(
    name="system", instance_type="m6in.4xlarge", count=2, labels={}, taints=(), zone="us-east-1a"
)
GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
ALL_DEVICES = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}


def container(**fields: Any) -> Json:
    """A container that asks for nothing but what is given."""
    return {"name": "main", "image": "example.org/main:1"} | fields


def pod(name: str, **spec: Any) -> Json:
    """A pod of one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container()]} | spec,
    }


def job(name: str) -> Json:
    """A Job that is tried once."""
    spec = {
        "restartPolicy": "Never",
        "containers": [container()],
        "initContainers": [container(name="before")],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": spec}},
    }


def indexed_job(name: str, size: int) -> Json:
    """A Job of `size` pods that run at once and find each other by the headless Service of the same name."""
    body = job(name)
    body["spec"] |= {"completions": size, "parallelism": size, "completionMode": "Indexed"}
    template = body["spec"]["template"]
    template["metadata"] = {"labels": {"job": name}}
    template["spec"]["subdomain"] = name
    return body


def headless_service(name: str) -> Json:
    """The Service of `indexed_job`, which names its pods before they are ready."""
    spec = {"clusterIP": "None", "selector": {"job": name}, "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def workers(name: str, size: int) -> Json:
    """A LeaderWorkerSet of one group whose pods each take a whole GPU node."""
    template = {
        "spec": {
            "tolerations": [GPU_TOLERATION],
            "containers": [
                container(resources={"limits": ALL_DEVICES, "requests": {"cpu": "180", "memory": "1800Gi"}})
            ],
        }
    }
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": size, "workerTemplate": template}},
    }


def device_plugin(container_name: str) -> Json:
    """A DaemonSet whose container has the name of a device plugin's."""
    return daemon(
        container_name,
        tolerations=[{"operator": "Exists"}],
        containers=[container(name=container_name)],
    )


def daemon(name: str, **spec: Any) -> Json:
    """A DaemonSet of kube-system."""
    labels = {"daemon": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container()]} | spec},
        },
    }


def sets(namespace: str) -> str:
    """The path of a namespace's LeaderWorkerSets."""
    return f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{namespace}/leaderworkersets"


def eventually(what: str, check: Callable[[], bool]) -> None:
    """Waits until `check` holds; fails the test if it does not in time."""
    wait_until(what, check, seconds=SECONDS)


def condition(body: Json, kind: str) -> Json:
    """The condition of that type; empty if there is none."""
    return next((one for one in body.get("status", {}).get("conditions", []) if one["type"] == kind), {})


def is_ready(body: Json) -> bool:
    """Whether a pod or a node is Ready."""
    return condition(body, "Ready").get("status") == "True"


def nodes(api: Api, group: str) -> list[Json]:
    """The nodes of a group."""
    return api.items("/api/v1/nodes", labelSelector=f"eks.amazonaws.com/nodegroup={group}")
