"""Any case of model, GPUs and load that flags describe, whether or not the stack could deploy it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from planner import memory, parallelism
from planner.alternatives import Alternative, alternatives, lighter
from planner.catalogue import CATALOGUE, precisions
from planner.flags import DEFAULT_MODEL, Flags, canonical, flag, names, numbers
from planner.hardware import GPU_TYPES, GPUS, Gpu
from planner.memory import Fit
from planner.models import Model
from planner.overhead import Load
from planner.parallelism import Parallelism
from planner.refusals import Refusal, RefusedError
from planner.rules import Facts
from planner.serving_rules import shape_of

DEFAULT_INSTANCE = "p5.48xlarge"
LONGEST_DEFAULT = 131_072
LARGEST_TENSOR_PARALLEL = 128


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Instead:
    """What a model would fit on; `flags` lighten the load where it is too much for every instance type."""

    hardware: tuple[Alternative, ...] = ()
    flags: tuple[str, ...] = ()


def instead_of(case: Case) -> Instead:
    """What would fit where a case does not."""
    if found := alternatives(case.model, case.load):
        return Instead(hardware=found)
    less = lighter(case.load)
    changed = (field.name for field in fields(Load) if getattr(less, field.name) != getattr(case.load, field.name))
    flags = tuple(f"{flag(name)} {getattr(less, name)}" for name in changed)
    return Instead(hardware=alternatives(case.model, less), flags=flags)


def case(flags: Flags) -> Case:
    """The case that `flags` describe, with the planner's choice where they are silent. Raises RefusedError."""
    flags = canonical(flags)
    problems = [*numbers(flags), *names(flags)]
    if problems:
        raise RefusedError(problems)
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
        raise RefusedError(problems)
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
    """The case that a stack file describes. Raises RefusedError where it is paused."""
    shape, kind = shape_of(facts), facts.instance
    if shape is None or kind.gpu is None:
        allowed = "1 to 16: a paused stack serves nothing, so there is nothing to fit"
        raise RefusedError((Refusal(where="gpuNodes.count", given=0, allowed=allowed, type_=("--nodes 2",)),))
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
    """The flags that may stand on top of a stack file, in its order. Raises RefusedError for the others."""
    others = ("precision", "gpu", "gpus_per_node", "data_parallel", "decode_context_parallel", "expert_parallel")
    given = tuple(flag(name) for name in others if getattr(flags, name))
    if given:
        allowed = "not beside a stack file, which says it itself"
        raise RefusedError(Refusal(where=name, allowed=allowed, type_=(f"leave out {name}",)) for name in given)
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


def _limits(model: Model, load: Load) -> Iterator[Refusal]:
    if load.max_model_len > model.context_tokens:
        context = model.context_tokens
        yield Refusal(
            where="--max-model-len",
            given=load.max_model_len,
            allowed=f"at most {context}, the context of {model.title}",
            type_=(f"--max-model-len {context}",),
        )
    if load.max_num_batched_tokens < load.max_num_seqs:
        yield Refusal(
            where="--max-num-batched-tokens",
            given=load.max_num_batched_tokens,
            allowed=f"at least {load.max_num_seqs}, one for each sequence",
            type_=(f"--max-num-batched-tokens {load.max_num_seqs}",),
        )


def _spread(flags: Flags, model: Model) -> Iterator[Refusal]:
    """What the ways to spread a model ask of it."""
    if flags.expert_parallel and model.architecture.experts is None:
        allowed = f"not for {model.title}, which has no experts"
        yield Refusal(where="--expert-parallel", allowed=allowed, type_=("leave out --expert-parallel",))


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


def _no_shape(flags: Flags, model: Model, gpus: int, nodes: int) -> Refusal:
    """Why no shape agrees with the flags, and one that does."""
    tensor, data, expert = flags.tensor_parallel, flags.data_parallel or 1, flags.expert_parallel
    if tensor is not None and (reason := parallelism.tensor_problem(model, tensor, data=data, expert=expert)):
        sizes = range(1, LARGEST_TENSOR_PARALLEL + 1)
        legal = [size for size in sizes if not parallelism.tensor_problem(model, size, data=data, expert=expert)]
        whole = not expert and not parallelism.tensor_problem(model, tensor, data=data, expert=True)
        return Refusal(
            where="--tensor-parallel",
            given=tensor,
            allowed=f"{', '.join(map(str, legal))}: {reason}" + (", unless with --expert-parallel" if whole else ""),
            type_=("leave out --tensor-parallel",),
        )
    shapes = parallelism.legal(model, gpus, nodes, data=data, expert=expert)
    context = flags.decode_context_parallel or 1
    groups = {tensor} if tensor else {shape.tensor for shape in shapes}
    reasons = [parallelism.context_problem(model, size, context) for size in sorted(groups, reverse=True)]
    if reasons and all(reasons):
        return Refusal(
            where="--decode-context-parallel",
            given=context,
            allowed=f"1, which is the default: {reasons[0]}",
            type_=("leave out --decode-context-parallel",),
        )
    if not shapes:
        return _unused_gpus(model, gpus, nodes, data=data, expert=expert)
    named = ", ".join(f"{shape.tensor} x {shape.pipeline}" for shape in shapes)
    fixed = tuple(name for name in ("tensor_parallel", "pipeline_parallel") if getattr(flags, name) is not None)
    return Refusal(
        where=" and ".join(flag(name) for name in fixed),
        given=" and ".join(str(getattr(flags, name)) for name in fixed),
        allowed=f"tensor x pipeline x data parallel must use each of {nodes} x {gpus} GPUs once: with data parallel "
        f"{data} the shapes of {model.title} are {named}",
        type_=tuple(f"leave out {flag(name)}" for name in fixed),
    )


def _unused_gpus(model: Model, gpus: int, nodes: int, *, data: int, expert: bool) -> Refusal:
    """No split uses every GPU: the most nodes that one uses, or one replica where it is their number."""
    allowed = f"GPUs that {model.title} can be split over: no shape uses {nodes} x {gpus} with data parallel"
    fewer = (count for count in range(nodes, 0, -1) if parallelism.legal(model, gpus, count, data=data, expert=expert))
    found = next(fewer, None)
    if found is not None:
        return Refusal(where="--nodes", given=nodes, allowed=f"{allowed} {data}", type_=(f"--nodes {found}",))
    typed = ("leave out --data-parallel",) if data > 1 else ("--nodes 1", "--gpus-per-node 1")
    return Refusal(where="--data-parallel", given=data, allowed=f"{allowed} {data}", type_=typed)
