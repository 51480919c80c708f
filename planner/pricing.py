"""What the whole stack costs by the hour, part by part.

A price that no source confirms is unknown, and then the total is a lower bound ("at least"). Reference prices
hold for one region; elsewhere they are unknown until the stack file's `prices` gives them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.hardware import PRICE_REGION, PRICE_SOURCE, InstanceType
from planner.settings import Deployment, NewNetwork

HOURS_PER_MONTH = 730
ROOT_VOLUME_GIB = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePart:
    """One line of the bill: `quantity` x `unit_price` USD per `unit`; None is an unknown price."""

    name: str
    title: str
    quantity: float
    unit: str
    unit_price: float | None
    per_hour: float | None
    source: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The bill. `complete` is False when a part's price is unknown: the total is then "at least"."""

    parts: tuple[PricePart, ...]
    total_per_hour: float
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    """A price in USD per unit, and where and when it was read."""

    usd: float | None
    source: str
    date: str
    hours: int = 1


_CONTROL_PLANE = _Reference(usd=0.10, source="AWS containers blog, standard support; cloudburn.io", date="2026-03")
_NAT = _Reference(usd=0.045, source="secondary (usage.ai, us-east-1); traffic is not counted", date="2026-05")
_IPV4 = _Reference(usd=0.005, source="secondary (factualminds.com, us-east-1)", date="2026-06")
_GP3 = _Reference(usd=0.08, source="list price, secondary, us-east-1", date="2026", hours=HOURS_PER_MONTH)
_LOGS = _Reference(usd=None, source="billed by usage: depends on what the control plane logs", date="")
_FSX = {125: _Reference(usd=0.145, source="secondary (c3x.dev), us-east-1", date="2026", hours=HOURS_PER_MONTH)}
_FSX_UNKNOWN = _Reference(
    usd=None,
    source="not confirmed for this throughput; set prices.weightCache (USD per GB-month)",
    date="",
    hours=HOURS_PER_MONTH,
)

PART_NAMES = (
    "gpuNodes",
    "systemNodes",
    "controlPlane",
    "weightCache",
    "natGateway",
    "publicIpv4",
    "rootVolumes",
    "logs",
)


def price(settings: Deployment, gpu_type: InstanceType, system_type: InstanceType) -> Price:
    """The bill of the stack as configured, at on-demand prices."""
    platform = settings.platform
    system = platform.system_nodes
    gateways = 1 if isinstance(platform.network, NewNetwork) else 0
    weights, gpus = settings.weights, settings.gpu_nodes.count
    volumes = ROOT_VOLUME_GIB * (system.count + gpus)
    cache = _FSX.get(weights.throughput_per_tib, _FSX_UNKNOWN)
    lustre = f"FSx for Lustre, {weights.throughput_per_tib} MB/s/TiB"
    rows = (
        ("gpuNodes", f"{gpu_type.name}, on demand", gpus, "node-hour", _instance(gpu_type)),
        ("systemNodes", f"{system_type.name}, on demand", system.count, "node-hour", _instance(system_type)),
        ("controlPlane", "EKS control plane", 1, "hour", _CONTROL_PLANE),
        ("weightCache", lustre, weights.capacity_gib, "GB-month", cache),
        ("natGateway", "NAT gateway", gateways, "hour", _NAT),
        ("publicIpv4", "public IPv4 address", gateways, "hour", _IPV4),
        ("rootVolumes", "gp3 root volumes", volumes, "GB-month", _GP3),
        ("logs", "CloudWatch logs", 1, "hour", _LOGS),
    )  # fmt: skip
    here = platform.region == PRICE_REGION
    return _sum(tuple(_part(*row, local=here, prices=settings.prices) for row in rows if row[2]))


def _part(
    name: str,
    title: str,
    quantity: float,
    unit: str,
    reference: _Reference,
    *,
    local: bool,
    prices: Mapping[str, float],
) -> PricePart:
    usd, source, date = reference.usd, reference.source, reference.date
    if name in prices:
        usd, source, date = prices[name], "prices in the stack file", ""
    elif usd is not None and not local:
        usd, source, date = None, f"known for {PRICE_REGION} only", ""
    per_hour = None if usd is None else quantity * usd / reference.hours
    return PricePart(
        name=name,
        title=title,
        quantity=quantity,
        unit=unit,
        unit_price=usd,
        per_hour=per_hour,
        source=source,
        date=date,
    )


def _instance(kind: InstanceType) -> _Reference:
    if kind.usd_per_hour is None:
        return _Reference(usd=None, source="not listed in the price table", date="")
    return _Reference(usd=kind.usd_per_hour, source=f"{PRICE_SOURCE}, {PRICE_REGION}", date=kind.price_date)


def _sum(parts: tuple[PricePart, ...]) -> Price:
    known = [part.per_hour for part in parts if part.per_hour is not None]
    return Price(parts=parts, total_per_hour=sum(known), complete=len(known) == len(parts))
