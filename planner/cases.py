"""Any case of model, GPUs and load that flags describe, whether or not the stack could deploy it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from planner import memory, parallelism
from planner.catalogue import CATALOGUE, precisions
from planner.flags import DEFAULT_MODEL, Flags, flag, names, numbers
from planner.hardware import GPU_TYPES, GPUS, Gpu
from planner.memory import Fit
from planner.models import Model
from planner.overhead import Load
from planner.parallelism import Parallelism
from planner.rules import Facts
from planner.serving_rules import shape_of

DEFAULT_INSTANCE = "p5.48xlarge"
LONGEST_DEFAULT = 131_072


class CaseError(ValueError):
    """Flags that describe no case: one line for each that must change, with what to type."""


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
    problems = [*numbers(flags), *names(flags)]
    if problems:
        raise CaseError("\n".join(problems))
    model = _model(flags)
    gpu, gpus_per_node, hardware = _hardware(flags)
    default_nodes = 1 if flags.gpu else 2
    nodes = default_nodes if flags.nodes is None else flags.nodes
    load = _load(flags, model)
    problems = [*_limits(model, load), *_spread(flags, model)]
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


def case_of(facts: Facts) -> Case:
    """The case that a stack file describes. Raises CaseError where it is paused."""
    shape, kind = shape_of(facts), facts.instance
    if shape is None or kind.gpu is None:
        raise CaseError(
            "gpuNodes.count is 0: a paused stack serves nothing, so there is nothing to fit (try --nodes 2)"
        )
    return Case(
        model=facts.model,
        gpu=kind.gpu,
        gpus_per_node=kind.gpus,
        nodes=facts.settings.gpu_nodes.count,
        hardware=kind.name,
        load=Load.of(facts.settings.serving),
        shape=shape,
    )


def on_stack_file(flags: Flags) -> tuple[object, ...]:
    """The flags that may stand on top of a stack file, in its order. Raises CaseError for the others."""
    others = ("precision", "gpu", "gpus_per_node", "data_parallel", "decode_context_parallel", "expert_parallel")
    given = [flag(name) for name in others if getattr(flags, name)]
    if given:
        raise CaseError(f"{given[0]} and --stack-file: the stack file says it itself (leave out one of them)")
    shape = (flags.model, flags.instance_type, flags.nodes, flags.tensor_parallel, flags.pipeline_parallel)
    load = (flags.gpu_memory_utilization, flags.max_model_len, flags.max_num_seqs, flags.max_num_batched_tokens)
    return (*shape, *load, flags.kv_cache_dtype)


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
    if load.max_num_batched_tokens < load.max_num_seqs:
        needed = load.max_num_seqs
        yield f"--max-num-batched-tokens {load.max_num_batched_tokens}: at least one for each sequence (try {needed})"


def _spread(flags: Flags, model: Model) -> Iterator[str]:
    """What the ways to spread a model ask of it."""
    if flags.expert_parallel and model.architecture.experts is None:
        yield f"--expert-parallel: {model.title} has no experts (leave it out)"


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
    context = flags.decode_context_parallel or 1
    groups = {tensor} if tensor else {shape.tensor for shape in shapes}
    reasons = [parallelism.context_problem(model, size, context) for size in sorted(groups, reverse=True)]
    if reasons and all(reasons):
        return f"--decode-context-parallel {context}: {reasons[0]} (leave it out)"
    if not shapes:
        return (
            f"no shape of {model.title} uses {nodes} x {gpus} GPUs with data parallel {data} "
            "(try fewer --nodes, or leave out --data-parallel)"
        )
    named = ", ".join(f"{shape.tensor} x {shape.pipeline}" for shape in shapes)
    return (
        f"tensor x pipeline x data parallel must use each of {nodes} x {gpus} GPUs once: with data parallel {data} "
        f"the shapes of {model.title} are {named} (leave out --tensor-parallel and --pipeline-parallel)"
    )
