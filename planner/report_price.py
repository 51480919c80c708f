"""The bill: table, formulas and data."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from planner.price_list import Change
from planner.prices import STALE_AFTER_DAYS
from planner.pricing import HOURS_PER_MONTH, Price, PricePart
from planner.tables import table

OLD = "*"


def render_price(price: Price) -> tuple[RenderableType, ...]:
    """The bill by part, its total, and where the prices come from."""
    made = table("part", "what", "quantity", "unit price", "USD/h", "USD/month", left=2, fold="what")
    for part in price.parts:
        old = OLD if part.stale and part.unit_price is not None else " "
        unit = "unknown" if part.unit_price is None else f"{part.unit_price:g}"
        hour = "unknown" if part.per_hour is None else f"{part.per_hour:.2f}"
        month = "unknown" if part.per_hour is None else f"{part.per_hour * HOURS_PER_MONTH:,.2f}"
        made.add_row(part.name, part.title, f"{part.quantity:g} {part.unit}", f"{unit}{old}", hour, month)
    return Text("Price by part"), made, Text(f"Total: {total(price)}\n"), Text("\n".join(_sources(price)))


def total(price: Price) -> str:
    """The sum by hour and month; "at least" where a part's price is unknown, and which parts are."""
    if not price.parts:
        return "nothing that the stack makes"
    if len(price.unknown) == len(price.parts):
        return "unknown, as the price of every part"
    hour, month = f"{price.total_per_hour:.2f} USD per hour", f"{price.total_per_month:,.0f} USD per month of 730 h"
    if price.complete:
        return f"{hour}, {month}"
    return f"at least {hour}, {month}, without {', '.join(price.unknown)}"


def explain_price(price: Price) -> Iterator[str]:
    """Each figure of the bill as a formula with its numbers."""
    for part in price.parts:
        yield f"{part.name}: {_formula(part)}"
    known = [f"{part.per_hour:.6f}" for part in price.parts if part.per_hour is not None]
    unknown = f"; unknown: {', '.join(price.unknown)}" if price.unknown else ""
    yield f"total: {' + '.join(known) or '0'} = {price.total_per_hour:.6f} USD/h{unknown}"
    yield f"month: {price.total_per_hour:.6f} USD/h x {HOURS_PER_MONTH} h = {price.total_per_month:.2f} USD"


def price_data(price: Price) -> dict[str, object]:
    """The bill for programs: USD; an unknown price is None."""
    return {
        "total_per_hour": round(price.total_per_hour, 4),
        "total_per_month": round(price.total_per_month, 2),
        "complete": price.complete,
        "parts": [
            {
                "name": part.name,
                "title": part.title,
                "quantity": part.quantity,
                "unit": part.unit,
                "unit_price": part.unit_price,
                "per_hour": None if part.per_hour is None else round(part.per_hour, 4),
                "per_month": None if part.per_hour is None else round(part.per_hour * HOURS_PER_MONTH, 2),
                "source": part.source,
                "date": part.date,
                "older_than_90_days": part.stale,
            }
            for part in price.parts
        ],
    }


def _formula(part: PricePart) -> str:
    if part.per_hour is None:
        return f"{part.quantity:g} {part.unit} x unknown; {part.source}"
    hours = f" / {HOURS_PER_MONTH} h" if part.unit.endswith("-month") else ""
    product = f"{part.quantity:g} {part.unit} x {part.unit_price:g} USD{hours} = {part.per_hour:.6f} USD/h"
    dated = f", {part.date}" if part.date else ""
    return f"{product}; {part.source}{dated}"


def _sources(price: Price) -> Iterator[str]:
    """Where the prices come from, parts of one source together, and a hint where one is old."""
    named: dict[str, list[str]] = {}
    for part in price.parts:
        dated = f" ({part.date}{OLD if part.stale else ''})" if part.date else ""
        named.setdefault(f"{part.source}{dated}", []).append(part.name)
    yield from (f"{', '.join(parts)}: {source}" for source, parts in named.items())
    if any(part.stale for part in price.parts):
        command = "`python -m planner price --refresh` reads the AWS Price List of today"
        yield f"{OLD} older than {STALE_AFTER_DAYS} days: {command}"


def render_changes(region: str, changes: tuple[Change, ...], *, written: bool) -> tuple[RenderableType, ...]:
    """What differs between the data file and the price list, and what the list does not tell."""
    made = table("price", "before", "now", "change", left=1)
    for change in changes:
        if change.differs and change.after is not None:
            before = change.before.known if change.before else None
            usd = change.after.usd or 0.0
            share = "newly known" if before is None else f"{100 * (usd / before - 1):+.1f} %"
            made.add_row(change.name, "unknown" if before is None else f"{before:g}", f"{usd:g}", share)
    unnamed = [f"- {change.name}: {change.note}" for change in changes if change.after is None]
    missing = "\n".join(["Not changed, since the price list does not name one price:", *unnamed]) if unnamed else ""
    same = sum(change.after is not None and not change.differs for change in changes)
    done = "written to planner/prices.yaml" if written else "nothing is written without --write"
    heading = f"AWS Price List, {region}: {made.row_count} differ, {same} are the same; {done}"
    return (Text(heading), *((made,) if made.row_count else ()), *((Text(missing),) if missing else ()))


def changes_data(region: str, changes: tuple[Change, ...], *, written: bool) -> dict[str, object]:
    """The same for programs: USD per unit; None is unknown."""
    return {
        "region": region,
        "written": written,
        "prices": [
            {
                "name": change.name,
                "before": change.before.known if change.before else None,
                "now": change.after.usd if change.after else None,
                "differs": change.differs,
                "note": change.note,
            }
            for change in changes
        ],
    }
