"""The memory fit and its alternatives: tables, bars and data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from planner.alternatives import Alternative, described
from planner.hardware import InstanceType
from planner.kernels import runs
from planner.memory import Fit, StageFit
from planner.models import GIB, Model
from planner.tables import bar, table

BAR_WIDTH = 72
_LEGEND = "█ weights  ▓ overhead  ▒ KV cache  ░ not used"


def heading(model: Model, instance: InstanceType, nodes: int) -> str:
    """What runs on what, in one line."""
    return f"{model.title} ({model.precision}) on {nodes} x {instance.name}"


def render_fit(fit: Fit) -> tuple[RenderableType, ...]:
    """A table and a bar of GiB per GPU for each pipeline stage, and what follows for requests."""
    made = table("stage", "layers", "weights", "overhead", "KV cache", "not used", "KV tokens", left=0)
    for stage in fit.stages:
        gib = (stage.weights_gib, stage.overhead_gib, stage.kv_gib, _unused(fit, stage))
        made.add_row(str(stage.stage), str(stage.layers), *(f"{value:.1f}" for value in gib), f"{stage.kv_tokens:,}")
    split = f"tensor parallel {fit.tensor_parallel} x pipeline parallel {fit.pipeline_parallel}"
    caption = Text(f"GiB per GPU of {fit.usable_gib:.2f}, {split}")
    bars = (Text(f"stage {stage.stage:<3}").append_text(_bar(fit, stage)) for stage in fit.stages)
    return caption, made, *bars, Text(f"         {_LEGEND}", style="dim"), Text(f"{verdict(fit)}\n")


def verdict(fit: Fit) -> str:
    """One sentence: whether it fits, and how many requests at once."""
    if not fit.loads:
        return "Does not fit: weights and overhead leave nothing for the KV cache."
    length = f"{fit.max_model_len:,} tokens"
    if not fit.fits:
        return f"Does not fit: {fit.kv_tokens:,} KV tokens are less than one request of {length}."
    return f"Fits: {fit.kv_tokens:,} KV tokens, {fit.concurrent_requests:.1f} requests of {length} at once."


def render_alternatives(model: Model, found: Iterable[Alternative], flags: Sequence[str]) -> tuple[RenderableType, ...]:
    """What would fit instead, one line each, and the flags that it needs."""
    need = f" with {' '.join(flags)}" if flags else ""
    return Text(f"What would fit{need} (price of the GPU nodes alone):"), *(
        Text(f"- {described(model, item)}") for item in found
    )


def capacity_formulas(stage: StageFit) -> Iterator[str]:
    """The requests and tokens that a stage's cache holds, as formulas with their numbers."""
    cache, length, free = stage.cache, stage.max_model_len, max(0, int(stage.kv_gib * GIB))
    count, needed = cache.blocks(stage.kv_gib * GIB), cache.blocks_per_request(length)
    ranks = f" x {cache.context} ranks" if cache.context > 1 else ""
    states = f" + {cache.state_blocks}; the last for linear attention's states" if cache.state_blocks else ""
    yield f"a request takes {needed:,} blocks = ceil({length} / ({cache.block_tokens} tokens{ranks})){states}"
    yield f"{count:,} blocks = floor({free:,} bytes / {cache.block_bytes:,}); of {stage.kv_gib:.3f} GiB"
    yield f"{stage.requests:.2f} requests = {count:,} blocks / {needed:,}"
    tokens = f"floor({count:,} blocks / {needed:,} x {length})"
    if not cache.state_blocks:
        tokens = f"{count:,} blocks x {cache.block_tokens} tokens{ranks}"
    yield f"{stage.kv_tokens:,} KV tokens = {tokens}"


def fit_summary(fit: Fit) -> dict[str, object]:
    """How the model lies on its GPUs; GiB per GPU, stage 0 first."""
    return {
        "parallelism": f"tensor {fit.tensor_parallel} x pipeline {fit.pipeline_parallel}",
        "weightsGiBPerGpuByStage": [round(stage.weights_gib, 1) for stage in fit.stages],
        "freeKvTokens": fit.kv_tokens,
        "fullLengthRequestsAtOnce": round(fit.concurrent_requests, 1),
    }


def fit_data(fit: Fit) -> dict[str, object]:
    """The fit for programs; sizes in GiB per GPU."""
    return {
        "fits": fit.fits,
        "tensor_parallel": fit.tensor_parallel,
        "pipeline_parallel": fit.pipeline_parallel,
        "kv_tokens": fit.kv_tokens,
        "max_model_len": fit.max_model_len,
        "concurrent_requests": round(fit.concurrent_requests, 2),
        "usable_gib": fit.usable_gib,
        "budget_gib": round(fit.budget_gib, 2),
        "stages": [
            {
                "stage": stage.stage,
                "layers": stage.layers,
                "weights_gib": round(stage.weights_gib, 2),
                "overhead_gib": round(stage.overhead_gib, 2),
                "kv_gib": round(stage.kv_gib, 2),
                "kv_tokens": stage.kv_tokens,
                "overhead": {term.name: round(term.gib, 3) for term in stage.overhead},
            }
            for stage in fit.stages
        ],
    }


def alternative_data(model: Model, item: Alternative) -> dict[str, object]:
    """One alternative for programs."""
    return {
        "instance_type": item.instance.name,
        "nodes": item.nodes,
        "tensor_parallel": item.fit.tensor_parallel,
        "pipeline_parallel": item.fit.pipeline_parallel,
        "kv_tokens": item.fit.kv_tokens,
        "usd_per_hour": item.usd_per_hour,
        "runs": runs(model, item.instance.gpu).verdict if item.instance.gpu else "no",
    }


def _unused(fit: Fit, stage: StageFit) -> float:
    """What vLLM is not given, in GiB."""
    return fit.usable_gib - stage.weights_gib - stage.overhead_gib - stage.kv_gib


def _bar(fit: Fit, stage: StageFit) -> Text:
    """A stage that does not fit has no room left: its bar is longer than the GPU, and all of it is shown."""
    shares = (
        ("█", "blue", stage.weights_gib),
        ("▓", "yellow", stage.overhead_gib),
        ("▒", "green", max(0.0, stage.kv_gib)),
        ("░", "dim", max(0.0, _unused(fit, stage)) if stage.kv_gib > 0 else 0.0),
    )
    return bar(shares, BAR_WIDTH)
