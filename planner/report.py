"""The plan for people (tables, plain text of at most 100 columns) and for programs (dictionaries)."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from planner.alternatives import Alternative
from planner.hardware import InstanceType
from planner.memory import Fit
from planner.models import Model
from planner.plan import Plan
from planner.pricing import Price, PricePart

WIDTH = 100


def render(plan: Plan) -> tuple[RenderableType, ...]:
    """Memory by stage and price by part, for a rich console."""
    title = heading(plan.model, plan.instance, plan.settings.gpu_nodes.count)
    if plan.serving is None:
        head: tuple[RenderableType, ...] = (Text(f"{title}: paused, nothing is served"),)
    else:
        head = (Text(title), *render_fit(plan.serving.fit))
    seconds = plan.weights.expected_load_seconds
    load = f"Weights: {plan.weights.size_bytes / 1e9:.0f} GB at {plan.weights.throughput_mb_per_second:.0f} MB/s"
    loading = Text(f"{load}, read by all nodes in about {seconds / 60:.0f} min") if plan.serving else Text(load)
    return (*head, loading, Text(), *render_price(plan.price))


def heading(model: Model, instance: InstanceType, nodes: int) -> str:
    """What runs on what, in one line."""
    return f"{model.title} ({model.precision}) on {nodes} x {instance.name}"


def render_fit(fit: Fit) -> tuple[RenderableType, ...]:
    """A table of GiB per GPU for each pipeline stage, and what follows for requests."""
    table = _table("stage", "layers", "weights", "overhead", "KV cache", "not used", "KV tokens", left=0)
    for stage in fit.stages:
        unused = fit.usable_gib - stage.weights_gib - stage.overhead_gib - stage.kv_gib
        gib = (stage.weights_gib, stage.overhead_gib, stage.kv_gib, unused)
        table.add_row(str(stage.stage), str(stage.layers), *(f"{value:.1f}" for value in gib), f"{stage.kv_tokens:,}")
    split = f"tensor parallel {fit.tensor_parallel} x pipeline parallel {fit.pipeline_parallel}"
    caption = Text(f"GiB per GPU of {fit.usable_gib:.2f}, {split}")
    return caption, table, Text(f"{verdict(fit)}\n")


def verdict(fit: Fit) -> str:
    """One sentence: whether it fits, and how many requests at once."""
    if not fit.loads:
        return "Does not fit: weights and overhead leave nothing for the KV cache."
    length = f"{fit.max_model_len:,} tokens"
    if not fit.fits:
        return f"Does not fit: {fit.kv_tokens:,} KV tokens are less than one request of {length}."
    return f"Fits: {fit.kv_tokens:,} KV tokens, {fit.concurrent_requests:.1f} requests of {length} at once."


def render_price(price: Price) -> tuple[RenderableType, ...]:
    """The bill by part, its total, and where the prices come from."""
    table = _table("part", "what", "quantity", "unit price", "USD/h", left=2)
    for part in price.parts:
        unit = "unknown" if part.unit_price is None else f"{part.unit_price:g}"
        hour = "unknown" if part.per_hour is None else f"{part.per_hour:.2f}"
        table.add_row(part.name, part.title, f"{part.quantity:g} {part.unit}", unit, hour)
    sources = "\n".join(dict.fromkeys(_source(part) for part in price.parts))
    return Text("Price by part"), table, Text(f"Total: {total(price)}\n\n{sources}")


def total(price: Price) -> str:
    """The sum by the hour; "at least" where a part's price is unknown."""
    return f"{'' if price.complete else 'at least '}{price.total_per_hour:.2f} USD per hour"


def render_alternatives(found: Iterable[Alternative]) -> tuple[RenderableType, ...]:
    """What would fit instead, one line each."""
    return Text("What would fit (price of the GPU nodes alone):"), *(Text(f"- {item}") for item in found)


def plain_text(parts: Iterable[RenderableType]) -> str:
    """Rendered without colours or control sequences, at most 100 columns wide: for logs and diagnostics."""
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(*parts, sep="\n")
    assert isinstance(console.file, io.StringIO)  # noqa: S101 (narrows the type for mypy)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def summary(plan: Plan) -> dict[str, object]:
    """The plan and its price for the stack's outputs: short, and plain values only."""
    price: dict[str, object] = {
        part.name: "unknown" if part.per_hour is None else round(part.per_hour, 2) for part in plan.price.parts
    }
    return {
        "model": plan.model.repository,
        "plan": {
            "hardware": f"{plan.settings.gpu_nodes.count} x {plan.instance.name}",
            "weightsGB": round(plan.weights.size_bytes / 1e9, 1),
            **(fit_summary(plan.serving.fit) if plan.serving else {}),
        },
        "pricePerHour": {**price, "total": total(plan.price)},
    }


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


def price_data(price: Price) -> dict[str, object]:
    """The bill for programs: USD; an unknown price is None."""
    return {
        "total_per_hour": round(price.total_per_hour, 4),
        "complete": price.complete,
        "parts": [
            {
                "name": part.name,
                "quantity": part.quantity,
                "unit": part.unit,
                "unit_price": part.unit_price,
                "per_hour": None if part.per_hour is None else round(part.per_hour, 4),
                "source": part.source,
                "date": part.date,
            }
            for part in price.parts
        ],
    }


def alternative_data(item: Alternative) -> dict[str, object]:
    """One alternative for programs."""
    return {
        "instance_type": item.instance.name,
        "nodes": item.nodes,
        "tensor_parallel": item.fit.tensor_parallel,
        "pipeline_parallel": item.fit.pipeline_parallel,
        "kv_tokens": item.fit.kv_tokens,
        "usd_per_hour": item.usd_per_hour,
    }


def _source(part: PricePart) -> str:
    dated = f" ({part.date})" if part.date else ""
    return f"{part.name}: {part.source}{dated}"


def _table(*columns: str, left: int) -> Table:
    """A table whose first `left` columns hold text; the others hold numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < left else "right", no_wrap=True)
    return table
