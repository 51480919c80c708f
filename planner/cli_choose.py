"""`python -m planner compare` and `recommend`: which model on which hardware, and at what price."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.text import Text

from planner import prices, pricing
from planner.alternatives import Alternative
from planner.command_line import DOES_NOT_FIT, facts_of, model_of, positive, refuse, show
from planner.compare import COMPARED, checkpoints, rows, smallest_by_family
from planner.models import Model
from planner.options import AsJson, Explain, StackFile
from planner.overhead import Load
from planner.platform_settings import EksPlatform
from planner.price_rules import on_nodes
from planner.pricing import Price
from planner.recommend import Tier, Wish
from planner.recommend import recommend as advise
from planner.relax import SHORTEST_CONTEXT, relaxation
from planner.report_choice import (
    advice_data,
    compare_data,
    explain_advice,
    explain_compare,
    render_advice,
    render_compare,
)
from planner.settings import Serving
from planner.throughput import Throughput, parse

Models = Annotated[list[str] | None, typer.Option("--model", help="Only this model, in every precision (repeat).")]
Precisions = Annotated[bool, typer.Option("--all-precisions", help="A line for each official precision.")]
Rates = Annotated[
    list[str] | None,
    typer.Option("--tokens-per-second", help="'MODEL@INSTANCE=NUMBER, SOURCE', output tokens; or NUMBER (repeat)."),
]
Length = Annotated[int, typer.Option("--max-model-len", help="Tokens of the longest request.")]
Quality = Annotated[Tier, typer.Option("--quality", help="good-enough: 8-35B, high: 200-400B, frontier: 700B+.")]
Context = Annotated[int, typer.Option("--context", help="Tokens of prompt and answer of one request.")]
Concurrency = Annotated[int, typer.Option("--concurrency", help="Requests of that length at once.")]
Budget = Annotated[float | None, typer.Option("--budget", help="USD per hour for the whole stack.")]
Sovereignty = Annotated[bool, typer.Option("--sovereignty", help="Data may not leave: no API.")]
Failed = Annotated[
    list[str] | None, typer.Option("--measured-failure-of", help="A model that failed your own evaluation (repeat).")
]
ApiPrice = Annotated[float | None, typer.Option("--api-price", help="USD per million tokens of an API.")]


def compare(
    model: Models = None,
    all_precisions: Precisions = False,
    max_model_len: Length = 131_072,
    tokens_per_second: Rates = None,
    explain: Explain = False,
    as_json: AsJson = False,
) -> None:
    """For each model the fewest A100, H100, H200 and B200 that hold it, their price, and USD per million tokens."""
    _at_least("--max-model-len", max_model_len, SHORTEST_CONTEXT)
    families = dict.fromkeys(model_of("--model", name).family for name in model or ()) or dict.fromkeys(COMPARED)
    load = Load.of(Serving(max_model_len=max_model_len))
    found = tuple(rows(checkpoints(families), load, _statements(tokens_per_second)))
    if not (model or all_precisions):
        found = smallest_by_family(found)
    data, tables = compare_data(found), render_compare(found)
    if explain:
        formulas = tuple(explain_compare(found))
        data["explain"] = list(formulas)
        tables = (*tables, Text(), *(Text(line) for line in formulas))
    show(data, tables, as_json=as_json)


def recommend(
    quality: Quality = "high",
    context: Context = 32_768,
    concurrency: Concurrency = 1,
    budget: Budget = None,
    sovereignty: Sovereignty = False,
    measured_failure_of: Failed = None,
    api_price: ApiPrice = None,
    tokens_per_second: Rates = None,
    stack_file: StackFile = None,
    explain: Explain = False,
    as_json: AsJson = False,
) -> None:
    """A ranked list of model, hardware and price with reasons, the smaller model first."""
    _at_least("--context", context, SHORTEST_CONTEXT)
    _at_least("--concurrency", concurrency, 1)
    positive("--budget", budget, "USD per hour")
    positive("--api-price", api_price, "USD per million tokens")
    facts = facts_of(stack_file, ())
    settings, platform = facts.settings, facts.settings.platform
    if not isinstance(platform, EksPlatform):
        refuse(str(stack_file), "a stack on EKS: what is recommended is hardware to buy", "leave out the stack file")
    load = Load.of(settings.serving.model_copy(update={"max_model_len": context}))
    wish = Wish(
        quality=quality,
        load=load,
        concurrency=concurrency,
        budget=budget,
        sovereignty=sovereignty,
        failed=tuple(model_of("--measured-failure-of", name) for name in measured_failure_of or ()),
        api_price=api_price,
        statements=_statements(tokens_per_second),
    )

    def stack_price(model: Model, offer: Alternative) -> Price:
        changed = on_nodes(settings, facts.instance, offer.instance, offer.nodes)
        return pricing.price(changed.model_copy(update={"model": model.name}), offer.instance)

    advice = advise(wish, stack_price)
    if not advice.choices:
        region = platform.region
        unpriced = f"python -m planner price --refresh --region {region} --write"
        advice = replace(advice, instead=relaxation(wish, stack_price) if prices.of(region) else unpriced)
    data, tables = advice_data(advice), render_advice(advice)
    if explain:
        formulas = tuple(explain_advice(advice, load.gpu_memory_utilization))
        data["explain"] = list(formulas)
        tables = (*tables, Text(), *(Text(line) for line in formulas))
    show(data, tables, as_json=as_json)
    if not advice.choices:
        raise typer.Exit(DOES_NOT_FIT)


def _statements(texts: list[str] | None) -> tuple[Throughput, ...]:
    return tuple(map(parse, texts or ()))


def _at_least(flag: str, value: int, least: int) -> None:
    if value < least:
        refuse(flag, f"{least} or more", f"{flag} {least}", given=value)
