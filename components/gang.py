"""The gang: the manifest of the LeaderWorkerSet in which one vLLM spans all GPU nodes.

Pure functions from a plan to a manifest, in which only the names of claim and Secret may be outputs. Leader and worker
are alike but for the tail of the command, probes and ports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pulumi import Input

from components import payloads
from components.weight_cache import WeightCache
from planner.plan import Plan, ServingPlan
from planner.vllm import CACHE_DIRECTORY, WEIGHTS_MOUNT, EnvVar
from planner.weight_settings import ClaimWeights

GPU_RESOURCE = "nvidia.com/gpu"

SHARED_MEMORY = "64Gi"
"""What NCCL and the ranks of a node share, as in AWS's vLLM template (aws-samples/aws-do-eks, 2026-08).

It counts against the pod's memory limit.
"""

CPU_LEFT_TO_NODE = 12
MEMORY_LEFT_TO_NODE_GIB = 24
HUGE_PAGES_GIB = 10
MEMORY_SHARE = 0.88
"""Of 192 CPU and 2048 GiB a p5.48xlarge lets pods have 191.45 and 1957 GiB, huge pages included.

Seen on EKS (awslabs/awsome-distributed-ai, mosaicml-composer/stable-diffusion README). What is left must hold the pod
that fills the node's disks (`node_caches.py`), the cluster's own and, with EFA, the huge pages that its setup takes
(5128 of 2 MiB, EKS user guide). A small node leaves half of its CPU.
"""

WEIGHTS_CHECK = "check_cache"
WEIGHTS_WAIT_SECONDS = 3600
"""Then the pod says that it gave up and begins anew: a state that alerts see."""

COMPILED_FOLDER = "compiled/$(LWS_WORKER_INDEX)"

NAME_LABEL = "leaderworkerset.sigs.k8s.io/name"
INDEX_LABEL = "leaderworkerset.sigs.k8s.io/worker-index"

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounts:
    """What the pods mount: the cache, the ConfigMap with the weights' check, the API key's Secret (None: no key)."""

    cache: WeightCache
    payload: Input[str]
    api_key_secret: Input[str] | None


def leader_worker_set_spec(plan: Plan, serving: ServingPlan, mounts: Mounts) -> Manifest:
    """The `spec` of a `leaderworkerset.x-k8s.io/v1` LeaderWorkerSet with one group."""
    return {
        "replicas": 1,
        # LeaderReady would wait for ever: a vLLM leader is ready only once its workers have joined.
        "startupPolicy": "LeaderCreated",
        "leaderWorkerTemplate": {
            "size": serving.nodes,
            "restartPolicy": serving.restart.policy,
            "leaderTemplate": pod(plan, serving, mounts, leader=True),
            "workerTemplate": pod(plan, serving, mounts, leader=False),
        },
    }


def pod(plan: Plan, serving: ServingPlan, mounts: Mounts, *, leader: bool) -> Manifest:
    """The pod template of the leader or of a worker."""
    return {
        "metadata": {"labels": {"app.kubernetes.io/name": plan.settings.name}},
        "spec": {
            "automountServiceAccountToken": False,
            # A Service called vllm would inject VLLM_PORT, which vLLM takes for its own (vllm-project/vllm#34199).
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": serving.termination_grace_seconds,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "nodeSelector": plan.placement.gpu_labels,
            "tolerations": list(plan.placement.gpu_tolerations),
            "initContainers": [weights_check(plan)],
            "containers": [container(plan, serving, mounts, leader=leader)],
            "volumes": [
                {"name": "weights", **mounts.cache.weights},
                {"name": "compiled", **mounts.cache.compiled},
                {"name": "payload", "configMap": {"name": mounts.payload}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}},
            ],
        },
    }


def weights_check(plan: Plan) -> Manifest:
    """Waits for the marker that staging writes last, and refuses another revision: half a model is never loaded."""
    own = not isinstance(plan.settings.weights, ClaimWeights) or plan.settings.weights.directory is None
    marker = {"STAGE_REPOSITORY": plan.model.repository, "STAGE_REVISION": plan.settings.weights.revision}
    environment = {
        "PYTHONPATH": payloads.PYTHON_PATH,
        "STAGE_MODEL_DIRECTORY": f"{WEIGHTS_MOUNT}/{plan.weights.model_directory}",
        "STAGE_WAIT_SECONDS": str(WEIGHTS_WAIT_SECONDS),
        # A directory that staging did not make has no marker: its files are checked instead.
        **(marker if own else {}),
    }
    return {
        "name": "weights",
        "image": plan.settings.image,
        "command": ["python3", "-m", f"payloads.{WEIGHTS_CHECK}"],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "weights", "mountPath": WEIGHTS_MOUNT, "readOnly": True},
            {"name": "payload", "mountPath": payloads.MOUNT, "readOnly": True},
        ],
    }


def container(plan: Plan, serving: ServingPlan, mounts: Mounts, *, leader: bool) -> Manifest:
    """The vLLM container: all GPUs and all fabric devices of its node."""
    command = serving.leader if leader else serving.worker
    return {
        "name": "vllm",
        "image": plan.settings.image,
        # The AWS image's own entrypoint is a shell script without `exec`: vLLM would never see SIGTERM and not drain.
        "command": ["vllm", "serve"],
        "args": list(command.args),
        "env": [*map(variable, command.env), *(api_key(mounts) if leader else ())],
        "resources": resources(plan),
        # Root, because added capabilities do not reach a process of another user.
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]},
        },
        "volumeMounts": [
            {"name": "weights", "mountPath": WEIGHTS_MOUNT, "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - the mount point that NCCL uses
            # A folder for each node, kept over restarts and new images: compiling costs minutes at GPU price.
            {"name": "compiled", "mountPath": CACHE_DIRECTORY, "subPathExpr": COMPILED_FOLDER},
        ],
        **(leader_side(serving) if leader else worker_side(serving)),
        "lifecycle": {"preStop": {"sleep": {"seconds": pre_stop_seconds(serving, leader=leader)}}},
    }


def api_key(mounts: Mounts) -> list[Manifest]:
    """The key that the API asks for, from its Secret."""
    if mounts.api_key_secret is None:
        return []
    reference = {"secretKeyRef": {"name": mounts.api_key_secret, "key": "api-key"}}
    return [{"name": "VLLM_API_KEY", "valueFrom": reference}]


def variable(entry: EnvVar) -> Manifest:
    """One environment variable, from a value or from a field of the pod."""
    if entry.field_path is not None:
        return {"name": entry.name, "valueFrom": {"fieldRef": {"fieldPath": entry.field_path}}}
    return {"name": entry.name, "value": entry.value}


def cpu_left(vcpus: int) -> int:
    """CPU of a node that the gang does not ask for."""
    return min(CPU_LEFT_TO_NODE, vcpus // 2)


def resources(plan: Plan) -> Manifest:
    """Requests and limits: extended resources must be equal, and whole nodes keep a gang's pods apart."""
    instance = plan.instance
    devices = {GPU_RESOURCE: str(instance.gpus), **plan.fabric.requests}
    left = MEMORY_LEFT_TO_NODE_GIB + (HUGE_PAGES_GIB if instance.efa else 0)
    memory = f"{int(min(instance.memory_gib * MEMORY_SHARE, instance.memory_gib - left))}Gi"
    return {
        "requests": {"cpu": str(instance.vcpus - cpu_left(instance.vcpus)), "memory": memory, **devices},
        "limits": {"memory": memory, **devices},
    }


def leader_side(serving: ServingPlan) -> Manifest:
    """Port and probes: startup waits out the slowest load, and liveness is slow, since a stall is no crash."""
    health = {"httpGet": {"path": "/health", "port": "http"}}
    return {
        "ports": [{"name": "http", "containerPort": serving.port}],
        "startupProbe": {
            **health,
            "periodSeconds": 30,
            "timeoutSeconds": 10,
            "failureThreshold": serving.startup_seconds // 30,
        },
        "readinessProbe": {**health, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {**health, "periodSeconds": 30, "timeoutSeconds": 10, "failureThreshold": 10},
    }


def worker_side(serving: ServingPlan) -> Manifest:
    """A headless worker serves no HTTP: it lives until the leader's rendezvous port has not answered for a minute."""
    dial = (
        "import os, socket; "
        f"socket.create_connection((os.environ['LWS_LEADER_ADDRESS'], {serving.master_port}), 5).close()"
    )
    probe = {"exec": {"command": ["python3", "-c", dial]}, "periodSeconds": 10, "timeoutSeconds": 10}
    return {
        "startupProbe": {**probe, "failureThreshold": serving.startup_seconds // 10},
        "livenessProbe": {**probe, "failureThreshold": 6},
    }


def pre_stop_seconds(serving: ServingPlan, *, leader: bool) -> int:
    """A worker stays until the leader has drained: without its ranks no answer in flight can end."""
    return serving.pre_stop_seconds if leader else serving.pre_stop_seconds + serving.shutdown_timeout_seconds
