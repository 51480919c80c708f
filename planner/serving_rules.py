"""The rules about how a model is split and whether it fits. A paused stack (`gpuNodes.count: 0`) fits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner import alternatives, memory, parallelism
from planner.alternatives import Alternative
from planner.checks import version
from planner.kernels import runs
from planner.memory import Fit
from planner.overhead import Load
from planner.parallelism import Parallelism
from planner.platform_settings import ExistingPlatform
from planner.problems import Mend, Path, Problem
from planner.rules import Facts, Rule, path

TENSOR = path("serving.tensorParallel")
PIPELINE = path("serving.pipelineParallel")
LENGTH = path("serving.maxModelLen")
NAMED_ALTERNATIVES = 3
DEFAULT_LEADER_WORKER_SET = "0.10.0"


def shape_of(facts: Facts) -> Parallelism | None:
    """The split that the settings ask for, or the planner's choice; None if no legal one agrees with them."""
    serving = facts.settings.serving
    nodes = facts.settings.gpu_nodes.count
    fixed = serving.tensor_parallel, serving.pipeline_parallel
    if fixed == (None, None) and nodes:
        fit = alternatives.study(facts.model, facts.instance, nodes, Load.of(serving), expert=serving.expert_parallel)
        return fit.shape if fit else None
    if not nodes:
        return None
    return parallelism.choose(facts.model, facts.instance.gpus, nodes, *fixed, expert=serving.expert_parallel)


def fit_of(facts: Facts) -> Fit | None:
    """The memory fit of the stack as configured; None while it is paused or cannot be split."""
    shape = shape_of(facts)
    if shape is None or facts.instance.gpu is None:
        return None
    load = Load.of(facts.settings.serving)
    return memory.fit(facts.model, facts.instance.gpu, shape, load)


def tensor_divides_heads(facts: Facts) -> Iterator[Problem]:
    """Each rank takes the same number of attention heads."""
    tensor, expert = facts.settings.serving.tensor_parallel, facts.settings.serving.expert_parallel
    if tensor is not None and (reason := parallelism.tensor_problem(facts.model, tensor, expert=expert)):
        legal = [str(size) for size in range(1, 65) if not parallelism.tensor_problem(facts.model, size, expert=expert)]
        yield Problem(
            path=TENSOR,
            given=tensor,
            allowed=f"{', '.join(legal)}: {reason}",
            mends=(Mend(TENSOR, None),),
        )


def parallelism_uses_every_gpu(facts: Facts) -> Iterator[Problem]:
    """Tensor x pipeline parallel is the number of GPUs; a tensor group fills nodes or lies inside one."""
    settings = facts.settings
    tensor, pipeline = settings.serving.tensor_parallel, settings.serving.pipeline_parallel
    nodes, expert = settings.gpu_nodes.count, settings.serving.expert_parallel
    if not nodes or (tensor is not None and parallelism.tensor_problem(facts.model, tensor, expert=expert)):
        return
    legal = parallelism.legal(facts.model, facts.instance.gpus, nodes, expert=expert)
    if shape_of(facts) is None:
        gpus = facts.instance.gpus * nodes
        shapes = ", ".join(f"{shape.tensor} x {shape.pipeline}" for shape in legal) or "none"
        place = TENSOR if tensor is not None else PIPELINE
        fixed = tuple(where for where, value in ((TENSOR, tensor), (PIPELINE, pipeline)) if value is not None)
        given = f"tensor parallel {tensor or 'free'} x pipeline parallel {pipeline or 'free'}"
        yield Problem(
            path=place,
            given=given,
            allowed=f"a product of {gpus}, the GPUs of {nodes} x {facts.instance.name}: {shapes}",
            mends=tuple(Mend(where, None) for where in fixed),
        )


def model_runs(facts: Facts) -> Iterator[Problem]:
    """vLLM has kernels for the checkpoint's precision and attention on this GPU."""
    gpu = facts.instance.gpu
    if gpu is None or (able := runs(facts.model, gpu)).verdict != "no":
        return
    found, lighter = _that_fit(facts, Load.of(facts.settings.serving))
    names = ", ".join(item.instance.name for item in found) or "none of the table's"
    yield Problem(
        path=path("gpuNodes.instanceType"),
        given=facts.instance.name,
        allowed=f"{names}: {facts.model.title} does not run there ({able.why})",
        mends=(*hardware_mends(facts, found), *lighter),
    )


def model_fits(facts: Facts) -> Iterator[Problem]:
    """Weights and overhead leave room for the KV cache on every GPU; if not, say what would do."""
    nodes, load = facts.settings.gpu_nodes.count, Load.of(facts.settings.serving)
    # Where the configured split is illegal, the planner's own tells whether the hardware would do.
    fit = fit_of(facts) or alternatives.study(facts.model, facts.instance, nodes, load)
    if fit is None or fit.loads or any(model_runs(facts)):
        return
    tightest = min(fit.stages, key=lambda stage: stage.kv_gib)
    found, lighter = _that_fit(facts, load)
    cheapest = "\n".join(f"- {alternatives.described(facts.model, item)}" for item in found[:NAMED_ALTERNATIVES])
    under = ", with the load below" if lighter else ""
    needed = f"{tightest.weights_gib:.1f} GiB of weights and {tightest.overhead_gib:.1f} GiB of overhead"
    yield Problem(
        path=path("gpuNodes"),
        given=f"{nodes} x {facts.instance.name}",
        allowed=f"{facts.model.title} does not fit: a GPU needs {needed}, and {fit.budget_gib:.1f} GiB of "
        f"its {fit.usable_gib:.1f} may be used. The cheapest that fit (GPU nodes alone){under}:\n{cheapest}",
        mends=(*hardware_mends(facts, found), *lighter),
    )


def length_fits_cache(facts: Facts) -> Iterator[Problem]:
    """vLLM refuses to start when one request of full length does not fit."""
    fit = fit_of(facts)
    if any(length_within_context(facts)):
        return
    if fit is not None and fit.loads and not fit.fits:
        largest = max(1024, fit.kv_tokens // 1024 * 1024)
        yield Problem(
            path=LENGTH,
            given=facts.settings.serving.max_model_len,
            allowed=f"at most {fit.kv_tokens}, the KV tokens that {facts.settings.gpu_nodes.count} x "
            f"{facts.instance.name} leave free",
            mends=(Mend(LENGTH, largest),),
        )


def length_within_context(facts: Facts) -> Iterator[Problem]:
    """No request is longer than the model was trained for."""
    given, context = facts.settings.serving.max_model_len, facts.model.context_tokens
    if given > context:
        allowed = f"at most {context}, the context of {facts.model.title}"
        yield Problem(path=LENGTH, given=given, allowed=allowed, mends=(Mend(LENGTH, context),))


def experts_to_spread(facts: Facts) -> Iterator[Problem]:
    """vLLM refuses to start a model without experts when it is told to spread them."""
    if facts.settings.serving.expert_parallel and facts.model.architecture.experts is None:
        place = path("serving.expertParallel")
        allowed = f"false: {facts.model.title} has no experts"
        yield Problem(path=place, given=True, allowed=allowed, mends=(Mend(place, False),))


def batch_holds_sequences(facts: Facts) -> Iterator[Problem]:
    """A step decodes one token of each running sequence; vLLM refuses a smaller token budget."""
    serving = facts.settings.serving
    if serving.max_num_batched_tokens < serving.max_num_seqs:
        place = path("serving.maxNumBatchedTokens")
        yield Problem(
            path=place,
            given=serving.max_num_batched_tokens,
            allowed=f"at least maxNumSeqs, {serving.max_num_seqs}",
            mends=(Mend(place, 8192),),
        )


def operator_restarts_after_start(facts: Facts) -> Iterator[Problem]:
    """Before 0.8 the operator can only recreate a group whose images are still being pulled, for ever."""
    given = facts.settings.charts.leader_worker_set.version
    if given is not None and not (re.match(r"v?\d+\.\d+\.\d+", given) and version(given) >= (0, 8)):
        place = path("charts.leaderWorkerSet.version")
        yield Problem(
            path=place,
            given=given,
            allowed=f"0.8.0 or newer, as {DEFAULT_LEADER_WORKER_SET}",
            mends=(Mend(place, DEFAULT_LEADER_WORKER_SET),),
        )


def fitting(facts: Facts, load: Load) -> tuple[Alternative, ...]:
    """GPU nodes on which the model fits and which have the fabric that the stack asks for, cheapest first.

    On an existing cluster more of its own nodes; where those do not help, what another cluster would have to have.
    """
    if isinstance(facts.settings.platform, ExistingPlatform):
        own = alternatives.alternatives(facts.model, load, kinds=(facts.instance,))
        if own:
            return own
    found = alternatives.alternatives(facts.model, load)
    return tuple(item for item in found if item.instance.efa or facts.settings.fabric.kind != "efa")


def _that_fit(facts: Facts, load: Load) -> tuple[tuple[Alternative, ...], tuple[Mend, ...]]:
    """The alternatives; where the load is too much for all of them, those for a lighter one, and its settings."""
    found = fitting(facts, load)
    if found:
        return found, ()
    less = alternatives.lighter(load)
    changes = (
        (path("serving.gpuMemoryUtilization"), load.gpu_memory_utilization, less.gpu_memory_utilization),
        (LENGTH, load.max_model_len, less.max_model_len),
        (path("serving.maxNumSeqs"), load.max_num_seqs, less.max_num_seqs),
        (path("serving.maxNumBatchedTokens"), load.max_num_batched_tokens, less.max_num_batched_tokens),
    )
    mends = tuple(Mend(where, after) for where, before, after in changes if after != before)
    return fitting(facts, less), mends


def hardware_mends(facts: Facts, found: tuple[Alternative, ...]) -> tuple[Mend, ...]:
    """More nodes of the same type if that helps, else the cheapest alternative."""
    same = [item for item in found if item.instance.name == facts.instance.name]
    chosen = next(iter((*same, *found)), None)
    if chosen is None:
        return ()
    fixed = facts.settings.serving
    split = tuple(
        Mend(where, None)
        for where, value, new in (
            (TENSOR, fixed.tensor_parallel, chosen.fit.tensor_parallel),
            (PIPELINE, fixed.pipeline_parallel, chosen.fit.pipeline_parallel),
        )
        if value not in (None, new)
    )
    kind = () if same else (Mend(path("gpuNodes.instanceType"), chosen.instance.name),)
    # The user's own price was that of the hardware that goes.
    price = (Mend(path("prices.gpuNodes"), None),) if kind and "gpuNodes" in facts.settings.prices else ()
    return (*kind, Mend(path("gpuNodes.count"), chosen.nodes), *split, *price)


_SPLIT: tuple[Path, ...] = (path("model"), path("gpuNodes"), TENSOR, PIPELINE)
MEMORY_READS: tuple[Path, ...] = (
    *_SPLIT,
    LENGTH,
    path("serving.maxNumSeqs"),
    path("serving.maxNumBatchedTokens"),
    path("serving.gpuMemoryUtilization"),
)
SPLIT_RULES: tuple[Rule, ...] = (
    Rule(tensor_divides_heads, (path("model"), TENSOR)),
    Rule(parallelism_uses_every_gpu, _SPLIT),
    Rule(length_within_context, (path("model"), LENGTH)),
    Rule(operator_restarts_after_start, (path("charts.leaderWorkerSet.version"),)),
    Rule(experts_to_spread, (path("model"), path("serving.expertParallel"))),
    Rule(batch_holds_sequences, (path("serving.maxNumBatchedTokens"), path("serving.maxNumSeqs"))),
)
FIT_RULES: tuple[Rule, ...] = (
    Rule(model_runs, MEMORY_READS),
    Rule(model_fits, MEMORY_READS),
    Rule(length_fits_cache, MEMORY_READS),
)
