"""The pods of the fabric test: pure functions from a plan to pod specifications, as the gang's are."""

from __future__ import annotations

import json
from typing import Any

from pulumi import Input

from components import payloads
from components.gang import GPU_RESOURCE, SHARED_MEMORY, resources
from planner.plan import Plan

NODES_ANNOTATION = "vllm-multinode/nodes"
"""Names the nodes under test, so that other nodes are a new test."""

CHECK_SECONDS = 900
PEER_SECONDS = 1500
"""Also what pulling a 20 GB image takes on the slower node."""

TEST_SECONDS = 300
Manifest = dict[str, Any]


def check_pod(plan: Plan, account: Input[str | None], script: Input[str | None]) -> Manifest:
    """Asks the API for the GPU nodes; runs on a CPU node, since a GPU node is what may be missing."""
    environment = {
        "PYTHONPATH": payloads.PYTHON_PATH,
        "NODES_SELECTOR": ",".join(f"{name}={value}" for name, value in plan.placement.gpu_labels.items()),
        "NODES_COUNT": str(plan.settings.gpu_nodes.count),
        "NODES_RESOURCES": json.dumps(
            {GPU_RESOURCE: plan.instance.gpus, **{name: int(count) for name, count in plan.fabric.requests.items()}}
        ),
        "NODES_TOLERATIONS": json.dumps(plan.placement.gpu_tolerations),
        "NODES_TIMEOUT_SECONDS": str(CHECK_SECONDS),
    }
    return {
        "restartPolicy": "Never",
        "serviceAccountName": account,
        "enableServiceLinks": False,
        "nodeSelector": plan.placement.cpu_labels,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "check",
                "image": plan.settings.staging.image,
                "command": ["python", "-m", "payloads.node_check"],
                "env": [{"name": name, "value": value} for name, value in environment.items()],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "payload", "mountPath": payloads.MOUNT, "readOnly": True}],
            }
        ],
        "volumes": [{"name": "payload", "configMap": {"name": script}}],
    }


def gate_pod(
    plan: Plan,
    *,
    account: Input[str | None],
    script: Input[str | None],
    board: Input[str | None],
    namespace: Input[str],
    priority: Input[str | None],
    job: str,
) -> Manifest:
    """One pod a node with all of its GPUs and fabric devices, as the gang's own."""
    environment: dict[str, Input[str | None]] = {
        "PYTHONPATH": payloads.PYTHON_PATH,
        **settings(plan),
        "FABRIC_LEADER": f"{job}-0.{job}",
        "FABRIC_CONFIGMAP": board,
        "FABRIC_CONFIGMAP_NAMESPACE": namespace,
        **dict(plan.fabric.environment),
    }
    variables: list[Manifest] = [{"name": name, "value": value} for name, value in environment.items()]
    node = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    return {
        "restartPolicy": "Never",
        "serviceAccountName": account,
        "enableServiceLinks": False,
        "subdomain": job,
        "priorityClassName": priority,
        "terminationGracePeriodSeconds": 10,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "nodeSelector": plan.placement.gpu_labels,
        "tolerations": list(plan.placement.gpu_tolerations),
        "containers": [
            {
                "name": "test",
                "image": plan.settings.image,
                "command": ["python3", "-m", "payloads.fabric_test"],
                "env": [*variables, {"name": "FABRIC_NODE_NAME", "valueFrom": node}],
                "resources": resources(plan),
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]},
                },
                "volumeMounts": [
                    {"name": "payload", "mountPath": payloads.MOUNT, "readOnly": True},
                    {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - the mount point that NCCL uses
                ],
            }
        ],
        "volumes": [
            {"name": "payload", "configMap": {"name": script}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}},
        ],
    }


def settings(plan: Plan) -> dict[str, str]:
    """What the test is told; with one node only the links inside of it are tested."""
    nodes, fabric = plan.settings.gpu_nodes.count, plan.fabric
    return {
        "FABRIC_NODES": str(nodes),
        "FABRIC_GPUS": str(plan.instance.gpus),
        "FABRIC_KIND": fabric.kind if nodes > 1 else "none",
        "FABRIC_NICS": str(fabric.nics),
        "FABRIC_MODE": plan.settings.fabric.gate,
        "FABRIC_WARN_BELOW": f"{fabric.warn_below:g}",
        "FABRIC_FAIL_BELOW": f"{fabric.fail_below:g}",
        "FABRIC_PEER_TIMEOUT_SECONDS": str(PEER_SECONDS),
        "FABRIC_TEST_TIMEOUT_SECONDS": str(TEST_SECONDS),
    }
