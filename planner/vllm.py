"""The vLLM command line and environment of the leader and of the workers.

`$(LWS_...)` stays as text: Kubernetes replaces it with what the LeaderWorkerSet operator injects. The image's
entrypoint is `vllm serve`, so the arguments start with the model's path. The API key is the component's to
add.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner import cache
from planner.fabric import FabricPlan
from planner.models import Model
from planner.parallelism import Parallelism
from planner.settings import Deployment

PORT = 8000
MASTER_PORT = 29501
WEIGHTS_MOUNT = "/weights"
CACHE_DIRECTORY = "/cache"
# Longest load that is waited for; also the startup probe's budget.
STARTUP_SECONDS = 7200
SHUTDOWN_TIMEOUT_SECONDS = 60
PRE_STOP_SECONDS = 15
# More than pre-stop and shutdown timeout together, or the kubelet kills requests that are being drained; a worker waits
# for the leader's shutdown timeout before its own begins.
TERMINATION_GRACE_SECONDS = 180
# torch gives up on a collective after 600 s by default; ranks wait longer than that for each other's weights.
DISTRIBUTED_TIMEOUT_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class EnvVar:
    """One environment variable: a literal value, or a field of the pod."""

    name: str
    value: str | None = None
    field_path: str | None = None

    def __post_init__(self) -> None:
        """Refuse a variable with both sources or none."""
        if (self.value is None) == (self.field_path is None):
            raise ValueError(f"{self.name}: exactly one of value and field_path")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Arguments of the image's entrypoint, and the container's environment."""

    args: tuple[str, ...]
    env: tuple[EnvVar, ...]


def commands(settings: Deployment, model: Model, shape: Parallelism, fabric: FabricPlan) -> tuple[Command, Command]:
    """Leader and worker. They differ at the end: the leader serves HTTP, a worker is headless."""
    shared = _arguments(settings, model, shape)
    environment = _environment(model, fabric)
    leader = (*shared, "--host", "0.0.0.0", "--port", str(PORT))  # noqa: S104 (inside the pod; a policy guards it)
    return Command(args=leader, env=environment), Command(args=(*shared, "--headless"), env=environment)


def _arguments(settings: Deployment, model: Model, shape: Parallelism) -> tuple[str, ...]:
    serving = settings.serving
    multi_node: tuple[str, ...] = ()
    if settings.gpu_nodes.count > 1:
        multi_node = (
            "--nnodes", "$(LWS_GROUP_SIZE)",
            "--node-rank", "$(LWS_WORKER_INDEX)",
            "--master-addr", "$(LWS_LEADER_ADDRESS)",
            "--master-port", str(MASTER_PORT),
            "--distributed-timeout-seconds", str(DISTRIBUTED_TIMEOUT_SECONDS),
        )  # fmt: skip
    return (
        f"{WEIGHTS_MOUNT}/{cache.model_directory(settings, model)}",
        "--served-model-name", model.repository,
        "--tensor-parallel-size", str(shape.tensor),
        "--pipeline-parallel-size", str(shape.pipeline),
        # Not Ray: the images no longer hold it, and its ranks break pipeline parallel
        # (vllm-project/vllm#41287).
        "--distributed-executor-backend", "mp",
        *multi_node,
        *model.flags,
        "--max-model-len", str(serving.max_model_len),
        "--max-num-seqs", str(serving.max_num_seqs),
        "--max-num-batched-tokens", str(serving.max_num_batched_tokens),
        "--gpu-memory-utilization", f"{serving.gpu_memory_utilization:g}",
        "--kv-cache-dtype", serving.kv_cache_dtype,
        *(("--enable-expert-parallel",) if shape.expert else ()),
        # Sequential reads into the page cache, shared by the node's ranks: mmap's small reads take minutes
        # more.
        "--safetensors-load-strategy", "prefetch",
        "--shutdown-timeout", str(SHUTDOWN_TIMEOUT_SECONDS),
        *serving.extra_args,
    )  # fmt: skip


def _environment(model: Model, fabric: FabricPlan) -> tuple[EnvVar, ...]:
    return (
        EnvVar("VLLM_HOST_IP", field_path="status.podIP"),
        EnvVar("VLLM_ENGINE_READY_TIMEOUT_S", str(STARTUP_SECONDS)),
        EnvVar("VLLM_CACHE_ROOT", f"{CACHE_DIRECTORY}/vllm"),
        EnvVar("TRITON_CACHE_DIR", f"{CACHE_DIRECTORY}/triton"),
        EnvVar("TORCHINDUCTOR_CACHE_DIR", f"{CACHE_DIRECTORY}/inductor"),
        EnvVar("FLASHINFER_WORKSPACE_BASE", f"{CACHE_DIRECTORY}/flashinfer"),
        EnvVar("HF_HOME", f"{CACHE_DIRECTORY}/huggingface"),
        EnvVar("HF_HUB_OFFLINE", "1"),
        *(EnvVar(name, value) for name, value in fabric.environment),
        *(EnvVar(name, value) for name, value in model.environment),
    )
