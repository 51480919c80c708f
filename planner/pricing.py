"""What the whole stack costs by the hour, part by part: only what the stack has is on the bill.

A price that no source confirms is unknown, and then the total is a lower bound ("at least"). Reference prices
stand in `prices.yaml`, by region; the stack file's `prices` replaces any of them.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from planner import prices
from planner.bill_lines import Line, Purchase, gpu_line, other_lines
from planner.hardware import InstanceType
from planner.platform_settings import EksPlatform
from planner.prices import Reference
from planner.settings import Deployment

HOURS_PER_MONTH = 730

PART_NAMES = (
    "gpuNodes",
    "systemNodes",
    "controlPlane",
    "weightCache",
    "scratchThroughput",
    "natGateway",
    "natTraffic",
    "publicIpv4",
    "rootVolumes",
    "logs",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePart:
    """One line of the bill: `quantity` x `unit_price` USD per `unit`; None is an unknown price.

    `stale`: the price was read more than 90 days ago.
    """

    name: str
    title: str
    quantity: float
    unit: str
    unit_price: float | None
    per_hour: float | None
    source: str
    date: str
    stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The bill. `complete` is False when a part's price is unknown: the total is then "at least"."""

    parts: tuple[PricePart, ...]
    total_per_hour: float
    complete: bool
    purchase: Purchase = "on_demand"

    @property
    def total_per_month(self) -> float:
        """USD for 730 hours."""
        return self.total_per_hour * HOURS_PER_MONTH

    @property
    def unknown(self) -> tuple[str, ...]:
        """The parts whose price is unknown."""
        return tuple(part.name for part in self.parts if part.per_hour is None)

    def part(self, name: str) -> PricePart | None:
        """A part by its name; None where the stack does not have it."""
        return next((part for part in self.parts if part.name == name), None)


def price(
    settings: Deployment,
    gpu_type: InstanceType,
    *,
    purchase: Purchase | None = None,
    today: datetime.date | None = None,
) -> Price:
    """The bill of the stack as configured, or with its GPU nodes bought in another way."""
    day = today or prices.today()
    bought: Purchase = purchase or settings.purchase.kind
    lines = (gpu_line(settings, gpu_type, bought), *other_lines(settings, day))
    parts = tuple(_part(line, settings, day) for line in lines if line.quantity)
    known = [part.per_hour for part in parts if part.per_hour is not None]
    return Price(parts=parts, total_per_hour=sum(known), complete=len(known) == len(parts), purchase=bought)


def _part(line: Line, settings: Deployment, day: datetime.date) -> PricePart:
    region = settings.platform.region if isinstance(settings.platform, EksPlatform) else None
    reference = prices.of(region).get(line.price_name) if region else None
    usd, source, date, stale = _look_up(line, region, reference, settings.prices, day)
    hours = HOURS_PER_MONTH if line.unit.endswith("-month") else 1
    return PricePart(
        name=line.name,
        title=line.title,
        quantity=line.quantity,
        unit=line.unit,
        unit_price=usd,
        per_hour=None if usd is None else line.quantity * usd / hours,
        source=source,
        date=date,
        stale=stale,
    )


def _look_up(
    line: Line, region: str | None, reference: Reference | None, overrides: Mapping[str, float], day: datetime.date
) -> tuple[float | None, str, str, bool]:
    """USD per unit, source, date and whether it is old."""
    if line.name in overrides:
        return overrides[line.name], "prices in the stack file", "", False
    if region is None:
        return None, "the cluster is not the stack's own; prices.gpuNodes tells it, in USD per node-hour", "", False
    if reference is None:
        hint = f"`python -m planner price --refresh --region {region} --write` reads it"
        return None, f"no price known for {region}; {hint}", "", False
    date, stale = reference.date.isoformat(), reference.stale(day)
    if line.by_use:
        rate = "at an unknown price" if reference.known is None else f"at {reference.known:g} USD per {reference.unit}"
        return None, f"by use ({line.by_use}) {rate}; {reference.source}", date, stale
    if reference.known is None:
        seen = "" if reference.usd is None else f"{reference.usd:g} USD per {reference.unit} is not confirmed: "
        return None, f"{seen}{reference.source}", date, stale
    return reference.known, reference.source, date, stale
