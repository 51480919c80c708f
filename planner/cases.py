"""Any case of model, GPUs and load that flags describe, whether or not the stack could deploy it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from planner import memory, parallelism
from planner.catalogue import CATALOGUE, precisions
from planner.checks import closest
from planner.hardware import GPU_TYPES, GPUS, Gpu
from planner.memory import Fit
from planner.models import Model
from planner.overhead import Load
from planner.parallelism import Parallelism

DEFAULT_MODEL = "kimi-k2.5"
DEFAULT_INSTANCE = "p5.48xlarge"
LONGEST_DEFAULT = 131_072


class CaseError(ValueError):
    """Flags that describe no case: one line for each that must change, with what to type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the user typed; None where nothing was."""

    model: str | None = None
    precision: str | None = None
    gpu: str | None = None
    instance_type: str | None = None
    gpus_per_node: int | None = None
    nodes: int | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    data_parallel: int | None = None
    decode_context_parallel: int | None = None
    expert_parallel: bool = False
    gpu_memory_utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    kv_cache_dtype: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model on `nodes` of `gpus_per_node` GPUs. `hardware` names one such node."""

    model: Model
    gpu: Gpu
    gpus_per_node: int
    nodes: int
    hardware: str
    load: Load
    shape: Parallelism

    def fit(self) -> Fit:
        """The memory fit."""
        return memory.fit(self.model, self.gpu, self.shape, self.load)


def case(flags: Flags) -> Case:
    """The case that `flags` describe, with the planner's choice where they are silent. Raises CaseError."""
    problems = [*_numbers(flags), *_names(flags)]
    if problems:
        raise CaseError("\n".join(problems))
    model = _model(flags)
    gpu, gpus_per_node, hardware = _hardware(flags)
    default_nodes = 1 if flags.gpu else 2
    nodes = default_nodes if flags.nodes is None else flags.nodes
    load = _load(flags, model)
    problems = [*_limits(model, load)]
    shape = _shape(flags, model, gpu, gpus_per_node, nodes, load)
    if shape is None:
        problems.append(_no_shape(flags, model, gpus_per_node, nodes))
    if problems or shape is None:
        raise CaseError("\n".join(problems))
    return Case(
        model=model,
        gpu=gpu,
        gpus_per_node=gpus_per_node,
        nodes=nodes,
        hardware=hardware,
        load=load,
        shape=shape,
    )


_LIMITS: dict[str, tuple[float, float, float]] = {
    # Lowest, highest, what to try.
    "gpus_per_node": (1, 72, 8),
    "nodes": (1, 64, 2),
    "tensor_parallel": (1, 128, 8),
    "pipeline_parallel": (1, 64, 2),
    "data_parallel": (1, 128, 1),
    "decode_context_parallel": (1, 64, 1),
    "gpu_memory_utilization": (0.05, 1.0, 0.9),
    "max_model_len": (1, 16_777_216, 131_072),
    "max_num_seqs": (1, 65_536, 64),
    "max_num_batched_tokens": (1, 4_194_304, 8192),
}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _numbers(flags: Flags) -> Iterator[str]:
    for name, (low, high, example) in _LIMITS.items():
        given = getattr(flags, name)
        if given is not None and not low <= given <= high:
            yield f"{_flag(name)} {given}: allowed are {low:g} to {high:g} (try {_flag(name)} {example:g})"


def _names(flags: Flags) -> Iterator[str]:
    choices = (
        ("model", tuple(CATALOGUE)),
        ("gpu", tuple(GPUS)),
        ("instance_type", tuple(GPU_TYPES)),
        ("kv_cache_dtype", ("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2")),
    )
    for name, allowed in choices:
        given = getattr(flags, name)
        if given is not None and given not in allowed:
            nearest = closest(given, allowed) or allowed[0]
            yield f"{_flag(name)} {given}: allowed are {', '.join(allowed)} (try {_flag(name)} {nearest})"
    if flags.gpu is not None and flags.instance_type is not None:
        yield "--gpu and --instance-type both name the GPU (leave out one)"
    if flags.instance_type is not None and flags.gpus_per_node is not None:
        yield "--instance-type says how many GPUs a node has (leave out --gpus-per-node)"
    if flags.precision is not None and (flags.model or DEFAULT_MODEL) in CATALOGUE:
        known = tuple(precisions(CATALOGUE[flags.model or DEFAULT_MODEL]))
        if flags.precision not in known:
            listed = ", ".join(known)
            yield f"--precision {flags.precision}: there are checkpoints in {listed} (try --precision {known[0]})"


def _model(flags: Flags) -> Model:
    named = CATALOGUE[flags.model or DEFAULT_MODEL]
    return named if flags.precision in (None, named.precision) else precisions(named)[str(flags.precision)]


def _hardware(flags: Flags) -> tuple[Gpu, int, str]:
    if flags.gpu is None:
        instance = GPU_TYPES[flags.instance_type or DEFAULT_INSTANCE]
        if instance.gpu is not None:
            return instance.gpu, flags.gpus_per_node or instance.gpus, instance.name
    gpu = GPUS[str(flags.gpu)]
    fixed = (flags.tensor_parallel or 8) * (flags.pipeline_parallel or 1) * (flags.data_parallel or 1)
    gpus = flags.gpus_per_node or -(-fixed // (flags.nodes or 1))
    return gpu, gpus, f"{gpus} x {gpu.name}"


def _load(flags: Flags, model: Model) -> Load:
    given = {field.name: getattr(flags, field.name) for field in fields(Load) if getattr(flags, field.name) is not None}
    sequences = given.get("max_num_seqs", 64)
    defaults = {
        "gpu_memory_utilization": 0.9,
        "max_model_len": min(LONGEST_DEFAULT, model.context_tokens),
        "max_num_seqs": sequences,
        "max_num_batched_tokens": max(8192, sequences),
        "kv_cache_dtype": "auto",
    }
    return Load(**{**defaults, **given})


def _limits(model: Model, load: Load) -> Iterator[str]:
    if load.max_model_len > model.context_tokens:
        context = model.context_tokens
        yield f"--max-model-len {load.max_model_len}: {model.title} takes {context} (try --max-model-len {context})"


def _shape(flags: Flags, model: Model, gpu: Gpu, gpus: int, nodes: int, load: Load) -> Parallelism | None:
    """The shape that the flags fix, else the first legal one that fits, else the preferred one."""
    legal = [
        shape
        for shape in parallelism.legal(
            model,
            gpus,
            nodes,
            data=flags.data_parallel or 1,
            expert=flags.expert_parallel,
            context=flags.decode_context_parallel or 1,
        )
        if flags.tensor_parallel in (None, shape.tensor) and flags.pipeline_parallel in (None, shape.pipeline)
    ]
    fitting = (shape for shape in legal if memory.fit(model, gpu, shape, load).fits)
    return next(fitting, next(iter(legal), None))


def _no_shape(flags: Flags, model: Model, gpus: int, nodes: int) -> str:
    """Why no shape agrees with the flags, and one that does."""
    tensor, data = flags.tensor_parallel, flags.data_parallel or 1
    if tensor is not None:
        reason = parallelism.tensor_problem(model, tensor, data=data, expert=flags.expert_parallel)
        if reason:
            help_ = "" if flags.expert_parallel or "width" not in reason else " or add --expert-parallel"
            return f"--tensor-parallel {tensor}: {reason} (leave out --tensor-parallel{help_})"
    shapes = parallelism.legal(model, gpus, nodes, data=data, expert=flags.expert_parallel)
    named = ", ".join(f"{shape.tensor} x {shape.pipeline}" for shape in shapes) or "none"
    return (
        f"tensor x pipeline x data parallel must use each of {nodes} x {gpus} GPUs once: with data parallel {data} "
        f"the shapes of {model.title} are {named} (leave out --tensor-parallel and --pipeline-parallel)"
    )
