"""`python -m planner price`: the bill of a stack, and the reference prices brought up to date."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from planner import cache, price_list, prices, pricing
from planner.bill_lines import Purchase
from planner.command_line import facts_of, positive, refuse, show
from planner.options import AsJson, Explain, Instance, ModelName, Nodes, StackFile
from planner.plan import Plan, decide
from planner.price_list import Change, PriceListError
from planner.report_price import changes_data, explain_price, price_data, render_changes, render_price
from planner.report_timeline import (
    explain_first_token,
    first_token_data,
    render_first_token,
    render_starts,
)
from planner.timeline import Pace, starts, until_first_token

Bought = Annotated[Purchase | None, typer.Option("--purchase", help="How the GPU nodes are bought.")]
Refresh = Annotated[bool, typer.Option("--refresh", help="Read today's prices from the AWS Price List (boto3).")]
Write = Annotated[bool, typer.Option("--write", help="With --refresh: write them into planner/prices.yaml.")]
RegionName = Annotated[str | None, typer.Option("--region", help="With --refresh: of which region.")]
Boot = Annotated[float | None, typer.Option("--boot-minutes", help="Until GPU nodes have joined, image included.")]
Hub = Annotated[float | None, typer.Option("--hub-mb-per-second", help="How fast the hub sends the weights.")]


def price(
    stack_file: StackFile = None,
    model: ModelName = None,
    instance_type: Instance = None,
    nodes: Nodes = None,
    purchase: Bought = None,
    boot_minutes: Boot = None,
    hub_mb_per_second: Hub = None,
    refresh: Refresh = False,
    write: Write = False,
    region: RegionName = None,
    explain: Explain = False,
    as_json: AsJson = False,
) -> None:
    """The whole stack by hour and month, part by part, and until the first token; or today's reference prices."""
    if refresh:
        _refresh(region or prices.REGION, write=write, as_json=as_json)
        return
    if write or region:
        given = "--write" if write else "--region"
        refuse(given, "only beside --refresh", "--refresh")
    pace = _pace(boot_minutes, hub_mb_per_second)
    plan = _bought(decide(facts_of(stack_file, (model, instance_type, nodes))), purchase)
    first_token = until_first_token(plan, pace)
    data: dict[str, Any] = price_data(plan.price)
    tables: tuple[RenderableType, ...] = render_price(plan.price)
    formulas = [*explain_price(plan.price)]
    if first_token is not None:
        data["first_token"] = first_token_data(first_token)
        tables = (*tables, Text(), *render_first_token(first_token))
        formulas += explain_first_token(first_token)
    if explain:
        data["explain"] = formulas
        tables = (*tables, Text(), *(Text(line) for line in formulas))
    show(data, tables, as_json=as_json)


def timeline(
    stack_file: StackFile = None,
    model: ModelName = None,
    instance_type: Instance = None,
    nodes: Nodes = None,
    boot_minutes: Boot = None,
    hub_mb_per_second: Hub = None,
    explain: Explain = False,
    as_json: AsJson = False,
) -> None:
    """The way to the first token, with GPU nodes made after the weights are staged and beside it."""
    pace = _pace(boot_minutes, hub_mb_per_second)
    plan = decide(facts_of(stack_file, (model, instance_type, nodes)))
    found = starts(plan, pace)
    if not found:
        refuse("gpuNodes.count", "1 or more: a paused stack serves nothing", "--nodes 2", given=0)
    data: dict[str, Any] = {"configured": plan.weights.start, "starts": [first_token_data(way) for way in found]}
    tables = render_starts(found)
    if explain:
        data["explain"] = {way.name: list(explain_first_token(way)) for way in found}
        for way in found:
            lines = (Text(line) for line in explain_first_token(way))
            tables = (*tables, Text(f"\n{way.name}:"), *lines)
    show(data, tables, as_json=as_json)


def _pace(boot_minutes: float | None, hub_mb_per_second: float | None) -> Pace:
    """The assumed pace, with what the user knows better."""
    positive("--boot-minutes", boot_minutes, "minutes")
    positive("--hub-mb-per-second", hub_mb_per_second, "MB per second")
    given = {"boot_minutes": boot_minutes, "hub_mb_per_second": hub_mb_per_second}
    return Pace(**{name: value for name, value in given.items() if value is not None})


def _bought(plan: Plan, purchase: Purchase | None) -> Plan:
    """The plan with its GPU nodes bought in another way."""
    if purchase is None:
        return plan
    return replace(
        plan,
        price=pricing.price(plan.settings, plan.instance, purchase=purchase),
        weights=replace(plan.weights, start=cache.start(plan.settings, purchase)),
    )


def _refresh(region: str, *, write: bool, as_json: bool) -> None:
    """Ask the price list, show what differs, and write it if told so."""
    known = prices.reference()
    try:
        changes: tuple[Change, ...] = tuple(
            price_list.refresh(price_list.client(), region, known.get(region, {}), prices.today())
        )
    except PriceListError as error:
        refuse("--refresh", str(error))
    if all(change.after is None for change in changes):
        allowed = "a region for which the AWS Price List names prices, as us-east-1"
        refuse("--region", allowed, "--region us-east-1", given=region)
    if write:
        try:
            prices.write(prices.FILE, known | {region: price_list.merged(known.get(region, {}), changes)})
        except OSError as error:
            refuse(str(prices.FILE), f"a file that can be written: {error.strerror}", "leave out --write")
    show(changes_data(region, changes, written=write), render_changes(region, changes, written=write), as_json=as_json)
