"""The memory fit for people (table, bar, formulas) and for programs (a dictionary)."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from planner import report_fit, weights
from planner.cases import Case, Instead
from planner.kernels import runs
from planner.memory import Fit, StageFit
from planner.models import GIB, Model


def data(case: Case, fit: Fit, instead: Instead) -> dict[str, object]:
    """The fit for programs; sizes in GiB per GPU, tokens of one replica unless they say `total`."""
    able = runs(case.model, case.gpu)
    return {
        "model": case.model.name,
        "precision": case.model.precision,
        "instance_type": case.hardware,
        "gpu": case.gpu.key,
        "gpus_per_node": case.gpus_per_node,
        "nodes": case.nodes,
        "runs": able.verdict,
        "runs_why": able.why,
        **report_fit.fit_data(fit),
        "data_parallel": case.shape.data,
        "expert_parallel": case.shape.expert,
        "decode_context_parallel": case.shape.context,
        "kv_cache_dtype": case.load.kv_cache_dtype,
        "kv_tokens_total": fit.kv_tokens * case.shape.data,
        "explain": {f"stage {stage.stage}": list(formulas(case, fit, stage)) for stage in fit.stages},
        "alternatives": [report_fit.alternative_data(case.model, item) for item in instead.hardware],
        "alternatives_need": list(instead.flags),
    }


def render(case: Case, fit: Fit, instead: Instead, *, explain: bool) -> tuple[RenderableType, ...]:
    """Table, a bar for each stage, the verdicts, and formulas if they are wanted."""
    able = runs(case.model, case.gpu)
    title = Text(f"{case.model.title} ({case.model.precision}) on {case.nodes} x {case.hardware}")
    lines = [Text(f"Runs: {able.verdict} ({able.why})")]
    if explain:
        for stage in fit.stages:
            lines += [Text(f"\nStage {stage.stage}"), *(Text(f"- {line}") for line in formulas(case, fit, stage))]
    tail = report_fit.render_alternatives(case.model, instead.hardware, instead.flags) if instead.hardware else ()
    return (title, *report_fit.render_fit(fit), *lines, *tail)


def about(model: Model) -> Iterator[str]:
    """What an entry amounts to, in lines."""
    architecture = model.architecture
    yield f"{architecture.kind}, {architecture.layers} layers, {model.weights.title}"
    yield f"{model.total_parameters / 1e9:.1f}B parameters, {model.active_parameters / 1e9:.1f}B active"
    computed = weights.checkpoint_bytes(model)
    yield f"{computed / 1e9:.1f} GB as computed from the architecture"
    if model.checkpoint_bytes is not None:
        off = computed / model.checkpoint_bytes - 1
        doubt = "" if abs(off) < 0.02 else ": the computed fit is off by as much; check quantization_config"
        yield f"{model.checkpoint_bytes / 1e9:.1f} GB by the index, {off:+.1%}{doubt}"
    yield "parsers, flags, licence and gating stand in no config.json: docs/configuration.md says how to add them"


def about_data(model: Model) -> dict[str, object]:
    """The same for programs; sizes in bytes, `index_bytes` null where no index was given."""
    return {
        "kind": model.architecture.kind,
        "layers": model.architecture.layers,
        "precision": model.precision,
        "context_tokens": model.context_tokens,
        "total_parameters": round(model.total_parameters),
        "active_parameters": round(model.active_parameters),
        "computed_bytes": round(weights.checkpoint_bytes(model)),
        "index_bytes": model.checkpoint_bytes,
    }


def formulas(case: Case, fit: Fit, stage: StageFit) -> Iterator[str]:
    """Each figure of a stage as a formula with its numbers; behind a semicolon, what they are."""
    utilization = case.load.gpu_memory_utilization
    yield f"budget {fit.budget_gib:.3f} GiB = {fit.usable_gib:.2f} GiB x {utilization:g}; of {case.gpu.name}"
    parts = " + ".join(f"{part.name} {part.bytes / GIB:.3f}" for part in stage.weights)
    yield f"weights {stage.weights_gib:.3f} GiB = {parts}; {case.model.weights.title}"
    for part in stage.weights:
        yield f"{part.name} {part.bytes / GIB:.3f} GiB = {part.explained}"
    terms = " + ".join(f"{term.name} {term.gib:.3f}" for term in stage.overhead)
    yield f"overhead {stage.overhead_gib:.3f} GiB = {terms}"
    for term in stage.overhead:
        yield f"{term.name} {term.gib:.3f} GiB = {term.why}"
    left = f"{fit.budget_gib:.3f} - {stage.weights_gib:.3f} - {stage.overhead_gib:.3f}"
    yield f"KV cache {stage.kv_gib:.3f} GiB = {left}"
    yield from stage.cache.explained
    yield from report_fit.capacity_formulas(stage)
