"""The whole plan for people (tables, plain text of at most 100 columns) and for the stack's outputs."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from planner.alternatives import described
from planner.cache import fsx_bytes_per_second
from planner.fabric import FabricPlan
from planner.plan import Plan
from planner.report_fit import fit_summary, heading, render_fit
from planner.report_price import render_price, total
from planner.report_timeline import render_first_token, until, waiting
from planner.tables import plain_text
from planner.timeline import Pace, fill_seconds, starts, until_first_token
from planner.weight_settings import ClaimWeights, FsxWeights, S3Source

__all__ = ["plain_text", "render", "summary"]


def render(plan: Plan) -> tuple[RenderableType, ...]:
    """Memory by stage, price by part and the way to the first token, for a rich console."""
    title = heading(plan.model, plan.instance, plan.settings.gpu_nodes.count)
    load = f"Weights: {plan.weights.size_bytes / 1e9:.0f} GB {where(plan)}"
    bill = (Text(), *render_price(plan.price))
    first_token = until_first_token(plan)
    if plan.serving is None or first_token is None:
        return (Text(f"{title}: paused, nothing is served"), Text(load), *bill)
    loading = Text(f"{load}, read by all nodes in {minutes(plan.weights.expected_load_seconds)}")
    joined = Text(fabric_line(plan))
    others = "\n".join(f"- {described(plan.model, item)}" for item in plan.alternatives)
    besides = (Text(f"\nWould fit too, GPU nodes alone:\n{others}"),) if others else ()
    paid = (*besides, *bill, Text(), *render_first_token(first_token))
    return (Text(title), *render_fit(plan.serving.fit), loading, joined, *paid)


def fabric_line(plan: Plan) -> str:
    """What joins the nodes, and what the test of it wants to see before anything is served."""
    fabric, nodes = plan.fabric, plan.settings.gpu_nodes.count
    asked = ", ".join(f"{count} x {name}" for name, count in fabric.requests.items())
    joined = f"Fabric: {fabric.kind}{f', {asked} a node' if asked else ''}"
    if not fabric.tested:
        return f"{joined}. Not tested: {'fabric.gate is skip' if nodes * plan.instance.gpus > 1 else 'one GPU'}"
    if nodes < 2:
        return f"{joined}. One node: the test covers the links between its GPUs alone, warning below {_gb(fabric)}"
    fails = f"serving needs {fabric.fail_below:g} GB/s" if plan.settings.fabric.gate == "require" else "it only warns"
    return f"{joined}. All-reduce over all GPUs before serving: {fails}, warning below {_gb(fabric)}"


def _gb(fabric: FabricPlan) -> str:
    return f"{fabric.warn_below:g} GB/s of bus bandwidth"


def where(plan: Plan) -> str:
    """Where the weights are kept, and how fast or in which steps nodes get them."""
    kept = plan.settings.weights
    if isinstance(kept, FsxWeights):
        return f"on FSx for Lustre at {fsx_bytes_per_second(kept) / 1e6:.0f} MB/s"
    if isinstance(kept, ClaimWeights):
        return f"in the claim {kept.claim}"
    origin = kept.source.url if isinstance(kept.source, S3Source) else "the Hub"
    through = "the stack's bucket" if plan.weights.through_bucket else origin
    return f"on the disks of each node, filled from {through} in {minutes(fill_seconds(plan, Pace()))}"


def minutes(seconds: float) -> str:
    """A length of time in words."""
    return f"about {seconds / 60:.0f} min" if seconds >= 60 else "less than a minute"


def summary(plan: Plan) -> dict[str, object]:
    """The plan and its price for the stack's outputs: short, and plain values only."""
    price: dict[str, object] = {
        part.name: "unknown" if part.per_hour is None else round(part.per_hour, 2) for part in plan.price.parts
    }
    ways = starts(plan)
    return {
        "model": plan.model.repository,
        "plan": {
            "hardware": f"{plan.settings.gpu_nodes.count} x {plan.instance.name}",
            "weightsGB": round(plan.weights.size_bytes / 1e9, 1),
            **(fit_summary(plan.serving.fit) if plan.serving else {}),
            "alternatives": [described(plan.model, item) for item in plan.alternatives],
        },
        "pricePerHour": {**price, "total": total(plan.price)},
        **({"firstToken": {found.name: f"{until(found)}; {waiting(found)}" for found in ways}} if ways else {}),
    }
