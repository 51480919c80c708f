"""From a stack file's settings to one frozen plan, before anything is created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from planner import memory, parallelism, pricing, vllm, weights
from planner.checks import version
from planner.hardware import GPU_TYPES, SYSTEM_TYPES, InstanceType
from planner.memory import Fit, Load
from planner.models import CATALOGUE, Model
from planner.pricing import Price
from planner.problems import SettingsError
from planner.settings import Deployment
from planner.vllm import Command

_RESTART_ANNOTATION = "leaderworkerset.sigs.k8s.io/experimental-recreate-group-after-start"
DEFAULT_LEADER_WORKER_SET = "0.10.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How the LeaderWorkerSet operator restarts a group: its policy, and annotations on the LeaderWorkerSet."""

    policy: str
    annotations: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsPlan:
    """The cached checkpoint: `model_directory` below the mount, `size_bytes`, and how long all nodes read it.

    `throughput_mb_per_second` is the file system's, shared by all nodes; each node reads the whole checkpoint.
    """

    model_directory: str
    size_bytes: int
    throughput_mb_per_second: float
    expected_load_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    """How vLLM runs. All durations in seconds."""

    nodes: int
    tensor_parallel: int
    pipeline_parallel: int
    fit: Fit
    leader: Command
    worker: Command
    restart: RestartPolicy
    port: int
    master_port: int
    startup_seconds: int
    shutdown_timeout_seconds: int
    pre_stop_seconds: int
    termination_grace_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that the components need to know. `serving` is None while the stack is paused."""

    settings: Deployment
    model: Model
    instance: InstanceType
    weights: WeightsPlan
    serving: ServingPlan | None
    price: Price


def plan(raw: Mapping[str, object], *, api_key_given: bool) -> Plan:
    """Check `raw`, the value of `vllm-multinode:deployment`, and decide everything that follows from it.

    Raises SettingsError, whose message names every problem of the file.
    """
    try:
        settings = Deployment.model_validate(raw)
    except ValidationError as error:
        raise SettingsError(str(error)) from None
    model = CATALOGUE[settings.model]
    instance = GPU_TYPES[settings.gpu_nodes.instance_type]
    return Plan(
        settings=settings,
        model=model,
        instance=instance,
        weights=_weights_plan(settings, model),
        serving=_serving_plan(settings, model, instance) if settings.gpu_nodes.count else None,
        price=pricing.price(settings, instance, SYSTEM_TYPES[settings.platform.system_nodes.instance_type]),
    )


def restart_policy(operator_version: str) -> RestartPolicy:
    """Recreate the group only once it has started: a slow image pull must not restart it for ever.

    0.9 made this a policy of its own; 0.8 knows it as an annotation.
    """
    if version(operator_version) >= (0, 9):
        return RestartPolicy(policy="RecreateGroupAfterStart", annotations={})
    return RestartPolicy(policy="RecreateGroupOnPodRestart", annotations={_RESTART_ANNOTATION: "true"})


def _weights_plan(settings: Deployment, model: Model) -> WeightsPlan:
    size = round(weights.checkpoint_bytes(model))
    throughput = settings.weights.capacity_gib / 1024 * settings.weights.throughput_per_tib
    return WeightsPlan(
        model_directory=vllm.model_directory(model.repository, settings.weights.revision),
        size_bytes=size,
        throughput_mb_per_second=throughput,
        expected_load_seconds=settings.gpu_nodes.count * size / (throughput * 1e6),
    )


def _serving_plan(settings: Deployment, model: Model, instance: InstanceType) -> ServingPlan:
    serving = settings.serving
    nodes = settings.gpu_nodes.count
    shape = parallelism.choose(
        model, instance.gpus, nodes, serving.tensor_parallel, serving.pipeline_parallel
    )
    if shape is None or instance.gpu is None:
        raise SettingsError(f"{model.title} cannot be split over {nodes} x {instance.name}")
    load = Load(
        gpu_memory_utilization=serving.gpu_memory_utilization,
        max_model_len=serving.max_model_len,
        max_num_seqs=serving.max_num_seqs,
        max_num_batched_tokens=serving.max_num_batched_tokens,
    )
    leader, worker = vllm.commands(settings, model, shape)
    return ServingPlan(
        nodes=nodes,
        tensor_parallel=shape.tensor,
        pipeline_parallel=shape.pipeline,
        fit=memory.fit(model, instance.gpu.usable_gib, shape.tensor, shape.pipeline, load),
        leader=leader,
        worker=worker,
        restart=restart_policy(settings.charts.leader_worker_set.version or DEFAULT_LEADER_WORKER_SET),
        port=vllm.PORT,
        master_port=vllm.MASTER_PORT,
        startup_seconds=vllm.STARTUP_SECONDS,
        shutdown_timeout_seconds=vllm.SHUTDOWN_TIMEOUT_SECONDS,
        pre_stop_seconds=vllm.PRE_STOP_SECONDS,
        termination_grace_seconds=vllm.TERMINATION_GRACE_SECONDS,
    )
