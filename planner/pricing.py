"""What the whole stack costs by the hour, part by part: only what the stack has is on the bill.

A price that no source confirms is unknown, and then the total is a lower bound ("at least"). Reference prices
stand in `prices.yaml`, by region; the stack file's `prices` replaces any of them.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from planner import cache, inline_models, prices, weights
from planner.checks import version
from planner.hardware import InstanceType
from planner.platform_settings import EksPlatform, NewNetwork
from planner.prices import Reference
from planner.settings import Deployment
from planner.weight_settings import FsxWeights

HOURS_PER_MONTH = 730
ROOT_VOLUME_GIB = 200
Purchase = Literal["on_demand", "reservation", "capacity_block"]

# EKS: end of standard support (EKS user guide, kubernetes-versions). Later the control plane costs six times as much.
STANDARD_SUPPORT_ENDS = {
    (1, 33): datetime.date(2026, 7, 29),
    (1, 34): datetime.date(2026, 12, 2),
    (1, 35): datetime.date(2027, 3, 27),
}
# What a mode of purchase is billed by. A reservation costs the on-demand price, used or not.
_RATES: dict[Purchase, tuple[str, str]] = {
    "on_demand": ("on_demand", "on demand"),
    "reservation": ("on_demand", "reserved, billed used or not"),
    "capacity_block": ("capacity_block", "capacity block, paid upfront"),
}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A part before its price is looked up. `by_use`: what it depends on, where no quantity can be known."""

    name: str
    title: str
    quantity: float
    unit: str
    price_name: str
    by_use: str = ""


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
    lines = (_gpu_line(settings, gpu_type, bought), *_lines(settings, day))
    parts = tuple(_part(line, settings, day) for line in lines if line.quantity)
    known = [part.per_hour for part in parts if part.per_hour is not None]
    return Price(parts=parts, total_per_hour=sum(known), complete=len(known) == len(parts), purchase=bought)


def _gpu_line(settings: Deployment, gpu_type: InstanceType, purchase: Purchase) -> _Line:
    family, how = _RATES[purchase]
    aws = isinstance(settings.platform, EksPlatform)
    return _Line(
        name="gpuNodes",
        title=f"{gpu_type.name}, {how if aws else 'of the existing cluster'}",
        quantity=settings.gpu_nodes.count,
        unit="node-hour",
        price_name=f"{family}/{gpu_type.name}",
    )


def _lines(settings: Deployment, day: datetime.date) -> Iterator[_Line]:
    """What the stack has beside the GPU nodes; nothing in a cluster that is not its own."""
    platform = settings.platform
    if not isinstance(platform, EksPlatform):
        return
    system, gateways = platform.system_nodes, 1 if isinstance(platform.network, NewNetwork) else 0
    yield _Line(
        name="systemNodes",
        title=f"{system.instance_type}, on demand",
        quantity=system.count,
        unit="node-hour",
        price_name=f"on_demand/{system.instance_type}",
    )
    support = _support(platform.kubernetes_version, day)
    yield _Line(
        name="controlPlane",
        title=f"EKS {platform.kubernetes_version}, {support} support",
        quantity=1,
        unit="hour",
        price_name=f"eks/{support}_support",
    )
    yield from _cache_lines(settings, system.count)
    yield _Line(name="natGateway", title="NAT gateway", quantity=gateways, unit="hour", price_name="nat_gateway/hour")
    yield _Line(
        name="natTraffic",
        title="traffic through it",
        quantity=gateways,
        unit="hour",
        price_name="nat_gateway/gb",
        by_use="images, telemetry",
    )
    yield _Line(
        name="publicIpv4", title="public IPv4 address", quantity=gateways, unit="hour", price_name="public_ipv4"
    )
    yield _Line(
        name="rootVolumes",
        title="gp3 root volumes",
        quantity=ROOT_VOLUME_GIB * (system.count + settings.gpu_nodes.count),
        unit="GB-month",
        price_name="gp3",
    )
    yield _Line(
        name="logs",
        title="CloudWatch logs",
        quantity=1,
        unit="hour",
        price_name="logs/ingested",
        by_use="what the control plane logs",
    )


def _cache_lines(settings: Deployment, system_nodes: int) -> Iterator[_Line]:
    """The file system, or the bucket and the faster disks that a download on its way there needs."""
    kept = settings.weights
    if isinstance(kept, FsxWeights):
        yield _Line(
            name="weightCache",
            title=f"FSx for Lustre, {kept.throughput_per_tib} MB/s/TiB",
            quantity=kept.capacity_gib,
            unit="GB-month",
            price_name=f"fsx_persistent_2/{kept.throughput_per_tib}",
        )
    if cache.through_bucket(settings):
        size = weights.checkpoint_bytes(inline_models.resolve(settings.model))
        yield _Line(
            name="weightCache",
            title="S3 bucket, standard storage",
            quantity=round(size / 1e9),
            unit="GB-month",
            price_name="s3/standard",
        )
        yield _Line(
            name="scratchThroughput",
            title=f"gp3 at {cache.SCRATCH_MIB_PER_SECOND} MiB/s, for staging",
            quantity=(cache.SCRATCH_MIB_PER_SECOND - cache.INCLUDED_MIB_PER_SECOND) * system_nodes,
            unit="MiB/s-month",
            price_name="gp3/throughput",
        )


def _part(line: _Line, settings: Deployment, day: datetime.date) -> PricePart:
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
    line: _Line, region: str | None, reference: Reference | None, overrides: Mapping[str, float], day: datetime.date
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


def _support(kubernetes_version: str, day: datetime.date) -> Literal["standard", "extended"]:
    """Versions that are not in the table are newer than it."""
    ends = STANDARD_SUPPORT_ENDS.get((version(kubernetes_version)[0], version(kubernetes_version)[1]))
    return "extended" if ends is not None and day > ends else "standard"
