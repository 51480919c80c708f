"""Comparison and recommendation: tables, formulas and data."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from planner.alternatives import MOST_NODES
from planner.compare import GPUS_OF_A_NODE, Row
from planner.memory import Fit
from planner.models import Model
from planner.prices import REGION
from planner.recommend import Advice, Choice, tier
from planner.report_fit import capacity_formulas
from planner.tables import listing, short, table
from planner.throughput import UNSTATED


def render_compare(found: tuple[Row, ...]) -> tuple[RenderableType, ...]:
    """One line a checkpoint and GPU; a model is named once."""
    made = table("model total/active", "format", "GPUs", "TPxPP", "KV", "on EC2", "USD/h", "USD/M", left=2)
    previous = ""
    for row in found:
        name = f"{row.model.family} {_size(row.model)}"
        made.add_row("" if name == previous else name, row.model.precision, *_shape(row), *_money(row))
        previous = name
    return made, *(Text(line) for line in _notes(found))


def render_advice(advice: Advice) -> tuple[RenderableType, ...]:
    """The ranked list with reasons, the conditions, and what was left out."""
    conditions = listing(("-", line) for line in advice.conditions)
    left_out = listing(("-", f"{item.title}: {item.reason}") for item in advice.excluded)
    excluded = (Text("\nLeft out:"), left_out) if advice.excluded else ()
    if not advice.choices:
        instead = f"   type:    {advice.instead}\n" if advice.instead else ""
        return (Text(f"Nothing fits what is wanted.\n{instead}"), conditions, *excluded)
    reasons = listing((f"{choice.rank}.", "; ".join(choice.reasons)) for choice in advice.choices)
    return _ranked(advice), reasons, Text(), conditions, *excluded


def _ranked(advice: Advice) -> Table:
    made = table("#", "model", "format", "hardware", "TPxPP", "KV", "USD/h", "pays from", "USD/M", left=4, fold="model")
    for choice in advice.choices:
        hardware, price = choice.offer.hardware, choice.offer.price
        daily = choice.break_even_tokens_per_day
        made.add_row(
            str(choice.rank),
            choice.offer.model.family,
            choice.offer.model.precision,
            f"{hardware.nodes} {hardware.instance.name}",
            _split(hardware.fit),
            short(hardware.fit.kv_tokens),
            f"{'' if price.complete else '>='}{price.total_per_hour:.2f}",
            "-" if daily is None else f"{short(daily)}/day",
            "-" if choice.usd_per_million is None else f"{choice.usd_per_million:.2f}",
        )
    made.caption = (
        "KV: tokens in the cache. USD/h: whole stack. Pays from: tokens a day. USD/M: at the stated throughput."
    )
    made.caption_justify = "left"
    return made


def explain_compare(found: tuple[Row, ...]) -> Iterator[str]:
    """Memory of the tightest stage and price of each row as formulas with their numbers."""
    for row in found:
        if row.fit is None:
            continue
        yield f"{row.model.name} on {row.gpus} x {row.gpu.name}"
        yield from _memory(row.fit, row.load.gpu_memory_utilization)
        if row.instance is not None and row.usd_per_hour is not None:
            one = row.instance.usd_per_hour
            yield f"  {row.usd_per_hour:g} USD/h = {row.nodes} x {one:g} USD/h; of {row.instance.name}"
        if row.stated is not None and row.usd_per_million is not None:
            tokens = row.stated.tokens_per_second
            yield (
                f"  {row.usd_per_million:.2f} USD per million = {row.usd_per_hour:g} USD/h / "
                f"({tokens:g} tokens/s x 3600 s) x 1000000; {row.stated.source}"
            )


def explain_advice(advice: Advice, utilization: float) -> Iterator[str]:
    """Memory, price and break-even of each choice as formulas with their numbers."""
    for choice in advice.choices:
        offer = choice.offer
        yield f"{choice.rank}. {offer.model.name} on {offer.hardware.nodes} x {offer.hardware.instance.name}"
        yield from _memory(offer.hardware.fit, utilization)
        parts = [f"{part.name} {part.per_hour:.6f}" for part in offer.price.parts if part.per_hour is not None]
        usd = offer.price.total_per_hour
        yield f"  {usd:.6f} USD/h = {' + '.join(parts)}; unknown: {_unknown(choice)}; `price --explain`"
        if choice.api_price is not None:
            daily, rate = choice.break_even_tokens_per_day, choice.break_even_tokens_per_second
            yield f"  {daily:,.0f} tokens/day = {usd:.6f} USD/h x 24 h / {choice.api_price:g} USD x 1000000 tokens"
            yield f"  {rate:,.0f} tokens/s = {daily:,.0f} tokens/day / 86400; around the clock"
        if choice.stated is not None and choice.usd_per_million is not None:
            yield (
                f"  {choice.usd_per_million:.2f} USD per million = {usd:.6f} USD/h / "
                f"({choice.stated.tokens_per_second:g} tokens/s x 3600 s) x 1000000; {choice.stated.source}"
            )


def compare_data(found: tuple[Row, ...]) -> dict[str, object]:
    """The comparison for programs."""
    return {
        "rows": [
            {
                **_model_data(row.model),
                "gpu": row.gpu.key,
                "runs": row.runs.verdict,
                "runs_why": row.runs.why,
                "fits": None if row.runs.verdict == "no" else row.fit is not None,
                "gpus": row.gpus or None,
                **_fit_data(row.fit),
                "max_model_len": row.load.max_model_len,
                "instance_type": row.instance.name if row.instance else None,
                "nodes": row.nodes or None,
                "usd_per_hour": row.usd_per_hour,
                "tokens_per_second": row.stated.tokens_per_second if row.stated else None,
                "tokens_per_second_source": row.stated.source if row.stated else None,
                "usd_per_million_output_tokens": _rounded(row.usd_per_million),
            }
            for row in found
        ]
    }


def advice_data(advice: Advice) -> dict[str, object]:
    """The recommendation for programs."""
    return {
        "choices": [
            {
                "rank": choice.rank,
                **_model_data(choice.offer.model),
                "tier": tier(choice.offer.model),
                "instance_type": choice.offer.hardware.instance.name,
                "nodes": choice.offer.hardware.nodes,
                **_fit_data(choice.offer.hardware.fit),
                "runs": "yes" if choice.offer.confirmed else "unknown",
                "usd_per_hour": round(choice.offer.price.total_per_hour, 4),
                "price_complete": choice.offer.price.complete,
                "break_even_tokens_per_day": _rounded(choice.break_even_tokens_per_day),
                "break_even_tokens_per_second": _rounded(choice.break_even_tokens_per_second),
                "usd_per_million_output_tokens": _rounded(choice.usd_per_million),
                "reasons": list(choice.reasons),
            }
            for choice in advice.choices
        ],
        "excluded": [{"model": item.title, "reason": item.reason} for item in advice.excluded],
        "conditions": list(advice.conditions),
        "instead": advice.instead,
    }


def _model_data(model: Model) -> dict[str, object]:
    return {
        "model": model.name,
        "family": model.family,
        "kind": model.architecture.kind,
        "precision": model.precision,
        "total_parameters": model.total_parameters,
        "active_parameters": model.active_parameters,
    }


def _fit_data(fit: Fit | None) -> dict[str, object]:
    return {
        "tensor_parallel": fit.tensor_parallel if fit else None,
        "pipeline_parallel": fit.pipeline_parallel if fit else None,
        "kv_tokens": fit.kv_tokens if fit else None,
        "concurrent_requests": round(fit.concurrent_requests, 2) if fit else None,
    }


def _size(model: Model) -> str:
    return f"{_billions(model.total_parameters)}/{_billions(model.active_parameters)}"


def _billions(parameters: float) -> str:
    return f"{parameters / 1e12:.2g}T" if parameters >= 1e12 else f"{parameters / 1e9:.0f}B"


def _shape(row: Row) -> tuple[str, str, str]:
    if row.runs.verdict == "no":
        return f"not on {_gpu(row)}", "", ""
    if row.fit is None:
        return f"> {MOST_NODES * GPUS_OF_A_NODE} {_gpu(row)}", "", ""
    mark = " ?" if row.runs.verdict == "unknown" else ""
    return f"{row.gpus} {_gpu(row)}{mark}", _split(row.fit), short(row.fit.kv_tokens)


def _gpu(row: Row) -> str:
    """Short: the compared GPUs come in one size each."""
    return row.gpu.name.partition(" ")[0]


def _money(row: Row) -> tuple[str, str, str]:
    where = f"{row.nodes} {row.instance.name}" if row.instance else ""
    usd = "unknown" if row.usd_per_hour is None else f"{row.usd_per_hour:.2f}"
    return (
        (where, usd, "-" if row.usd_per_million is None else f"{row.usd_per_million:.2f}") if row.fit else ("", "", "")
    )


def _notes(found: tuple[Row, ...]) -> Iterator[str]:
    names = ", ".join(dict.fromkeys(row.gpu.name for row in found))
    longest = max((row.load.max_model_len for row in found), default=0)
    yield f"GPUs: the fewest that hold weights and one request of {longest:,} tokens or the model's context ({names})."
    yield f"KV: tokens that fit into the cache. USD/h: whole instances, on demand in {REGION}."
    unable: dict[tuple[str, str], list[str]] = {}
    for row in found:
        if row.runs.verdict == "no":
            reason = row.runs.why.partition(";")[0]
            unable.setdefault((row.model.family + " " + row.model.precision, reason), []).append(_gpu(row))
    for (model, reason), gpus in unable.items():
        yield f"{model} does not run on {', '.join(gpus)}: {reason}"
    if any(row.runs.verdict == "unknown" for row in found):
        yield "? fits, and nobody confirmed that vLLM runs this precision on this GPU"
    sources = dict.fromkeys(
        f"USD/M: {row.stated.tokens_per_second:g} tokens/s, {row.stated.source}" for row in found if row.stated
    )
    yield from sources
    if any(row.stated is None for row in found):
        yield f"USD/M -: {UNSTATED} 'MODEL@INSTANCE=NUMBER, SOURCE' for USD per million output tokens"


def _split(fit: Fit) -> str:
    return f"{fit.tensor_parallel}x{fit.pipeline_parallel}"


def _memory(fit: Fit, utilization: float) -> Iterator[str]:
    """The tightest stage; `fit --explain` takes weights and overhead apart."""
    stage = min(fit.stages, key=lambda stage: stage.kv_tokens)
    budget = f"{fit.usable_gib:g} GiB x {utilization:g}"
    left = f"{budget} - {stage.weights_gib:.3f} weights - {stage.overhead_gib:.3f} overhead"
    yield f"  {stage.kv_gib:.3f} GiB of KV cache = {left}; stage {stage.stage}; `fit --explain` takes them apart"
    yield from (f"  {line}" for line in (*stage.cache.explained, *capacity_formulas(stage)))


def _unknown(choice: Choice) -> str:
    return ", ".join(choice.offer.price.unknown) or "nothing"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
