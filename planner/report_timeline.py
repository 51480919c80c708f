"""The way to the first token: tables, formulas and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from planner.tables import table
from planner.timeline import FirstToken


def render_first_token(found: FirstToken) -> tuple[RenderableType, ...]:
    """The phases of a first `up`, what each costs, and their sum."""
    made = table("until first token", "GPU nodes", "minutes", "USD", left=2)
    for phase in found.phases:
        paid = ("paid, waiting" if phase.waiting_seconds else "paid") if phase.gpus_paid else "not there yet"
        unknown = phase.gpus_paid and found.gpu_usd_per_hour is None
        made.add_row(phase.name, paid, f"{phase.seconds / 60:.0f}", "unknown" if unknown else f"{phase.usd:.2f}")
    if found.download_gb:
        usd = "unknown" if found.download_usd is None else f"{found.download_usd:.2f}"
        made.add_row("weights through NAT, once", "", f"{found.download_gb:.0f} GB", usd)
    chosen = f"start: {found.start}. " if found.start else ""
    return made, Text(f"{chosen}First token {until(found)}; {waiting(found)}.")


def render_starts(found: Sequence[FirstToken]) -> tuple[RenderableType, ...]:
    """Both ways to start, one after the other, and what the difference costs."""
    tables = [item for way in found for item in (*render_first_token(way), Text())]
    return (*tables, *(Text(_difference(*found)) for _ in found[1:]))


def _difference(after: FirstToken, overlap: FirstToken) -> str:
    saved, usd = (after.seconds - overlap.seconds) / 60, overlap.usd - after.usd
    return f"overlap is {saved:.0f} min quicker and costs {usd:.2f} USD more."


def until(found: FirstToken) -> str:
    """How long and at what price: "at least" where a part's is unknown, nothing where the GPU nodes' is."""
    after = f"after about {found.seconds / 60:.0f} min"
    if found.gpu_usd_per_hour is None:
        return f"{after}, at an unknown price"
    return f"{after} and {'' if found.complete else 'at least '}{found.usd:.2f} USD"


def waiting(found: FirstToken) -> str:
    """The GPU-minutes that are paid while weights are on their way."""
    if not found.waiting_seconds:
        return "no GPU is paid for while it waits for weights"
    usd = "at an unknown price" if found.waiting_usd is None else f"{found.waiting_usd:.2f} USD"
    return f"{found.waiting_gpu_minutes:.0f} GPU-minutes paid while waiting for weights, {usd}"


def explain_first_token(found: FirstToken) -> Iterator[str]:
    """Each phase as a formula with its numbers, and where its length comes from."""
    for phase in found.phases:
        hours = f"{phase.seconds:.2f} s / 3600"
        yield f"{phase.name}: {hours} x {phase.usd_per_hour:.4f} USD/h = {phase.usd:.2f} USD; {phase.source}"
    paid = [f"{phase.usd:.2f}" for phase in found.phases]
    if found.download_usd:
        rate = found.download_usd / found.download_gb
        yield f"weights through NAT: {found.download_gb:.2f} GB x {rate:g} USD/GB = {found.download_usd:.2f} USD"
        paid.append(f"{found.download_usd:.2f}")
    minutes = f"{found.gpus} GPUs x {found.waiting_seconds:.1f} s / 60 = {found.waiting_gpu_minutes:.0f} GPU-minutes"
    yield f"waiting for weights: {minutes}"
    if found.waiting_usd:
        hours = f"{found.waiting_seconds:.2f} s / 3600 x {found.gpu_usd_per_hour:.4f} USD/h"
        yield f"price of waiting: {hours} = {found.waiting_usd:.2f} USD"
    seconds = " + ".join(f"{phase.seconds:.1f}" for phase in found.phases)
    yield f"time until first token: {seconds} s = {found.seconds:.1f} s"
    least = "" if found.complete else "; at least, as prices are unknown"
    yield f"price until first token: {' + '.join(paid)} = {found.usd:.2f} USD{least}"


def first_token_data(found: FirstToken) -> dict[str, object]:
    """The way to the first token for programs: seconds and USD."""
    return {
        "start": found.start,
        "seconds": round(found.seconds),
        "usd": round(found.usd, 2),
        "complete": found.complete,
        "phases": [
            {
                "name": phase.name,
                "seconds": round(phase.seconds),
                "usd": round(phase.usd, 2),
                "gpu_nodes_paid": phase.gpus_paid,
                "waiting_seconds": round(phase.waiting_seconds),
                "source": phase.source,
            }
            for phase in found.phases
        ],
        "download_gb": round(found.download_gb, 1),
        "download_usd": None if found.download_usd is None else round(found.download_usd, 2),
        "waiting_gpu_minutes": round(found.waiting_gpu_minutes, 1),
        "waiting_usd": None if found.waiting_usd is None else round(found.waiting_usd, 2),
    }
