"""The lines of the bill: what the stack has, how much of it, and under which name its price stands in `prices.yaml`."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from planner import cache, inline_models, weights
from planner.checks import version
from planner.hardware import InstanceType
from planner.platform_settings import EksPlatform, NewNetwork
from planner.settings import Deployment
from planner.weight_settings import FsxWeights

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A part before its price is looked up. `by_use`: what it depends on, where no quantity can be known."""

    name: str
    title: str
    quantity: float
    unit: str
    price_name: str
    by_use: str = ""


def gpu_line(settings: Deployment, gpu_type: InstanceType, purchase: Purchase) -> Line:
    """The GPU nodes, bought in one way or another."""
    family, how = _RATES[purchase]
    aws = isinstance(settings.platform, EksPlatform)
    return Line(
        name="gpuNodes",
        title=f"{gpu_type.name}, {how if aws else 'of the existing cluster'}",
        quantity=settings.gpu_nodes.count,
        unit="node-hour",
        price_name=f"{family}/{gpu_type.name}",
    )


def other_lines(settings: Deployment, day: datetime.date) -> Iterator[Line]:
    """What the stack has beside the GPU nodes; nothing in a cluster that is not its own."""
    platform = settings.platform
    if not isinstance(platform, EksPlatform):
        return
    system, gateways = platform.system_nodes, 1 if isinstance(platform.network, NewNetwork) else 0
    yield Line(
        name="systemNodes",
        title=f"{system.instance_type}, on demand",
        quantity=system.count,
        unit="node-hour",
        price_name=f"on_demand/{system.instance_type}",
    )
    term = support(platform.kubernetes_version, day)
    yield Line(
        name="controlPlane",
        title=f"EKS {platform.kubernetes_version}, {term} support",
        quantity=1,
        unit="hour",
        price_name=f"eks/{term}_support",
    )
    yield from _cache_lines(settings, system.count)
    yield Line(name="natGateway", title="NAT gateway", quantity=gateways, unit="hour", price_name="nat_gateway/hour")
    yield Line(
        name="natTraffic",
        title="traffic through it",
        quantity=gateways,
        unit="hour",
        price_name="nat_gateway/gb",
        by_use="images, telemetry",
    )
    yield Line(name="publicIpv4", title="public IPv4 address", quantity=gateways, unit="hour", price_name="public_ipv4")
    yield Line(
        name="rootVolumes",
        title="gp3 root volumes",
        quantity=ROOT_VOLUME_GIB * (system.count + settings.gpu_nodes.count),
        unit="GB-month",
        price_name="gp3",
    )
    yield Line(
        name="logs",
        title="CloudWatch logs",
        quantity=1,
        unit="hour",
        price_name="logs/ingested",
        by_use="what the control plane logs",
    )


def _cache_lines(settings: Deployment, system_nodes: int) -> Iterator[Line]:
    """The file system, or the bucket and the faster disks that a download on its way there needs."""
    kept = settings.weights
    if isinstance(kept, FsxWeights):
        yield Line(
            name="weightCache",
            title=f"FSx for Lustre, {kept.throughput_per_tib} MB/s/TiB",
            quantity=kept.capacity_gib,
            unit="GB-month",
            price_name=f"fsx_persistent_2/{kept.throughput_per_tib}",
        )
    if cache.through_bucket(settings):
        size = weights.checkpoint_bytes(inline_models.resolve(settings.model))
        yield Line(
            name="weightCache",
            title="S3 bucket, standard storage",
            quantity=round(size / 1e9),
            unit="GB-month",
            price_name="s3/standard",
        )
        yield Line(
            name="scratchThroughput",
            title=f"gp3 at {cache.SCRATCH_MIB_PER_SECOND} MiB/s, for staging",
            quantity=(cache.SCRATCH_MIB_PER_SECOND - cache.INCLUDED_MIB_PER_SECOND) * system_nodes,
            unit="MiB/s-month",
            price_name="gp3/throughput",
        )


def support(kubernetes_version: str, day: datetime.date) -> Literal["standard", "extended"]:
    """By which support EKS bills a version; those that are not in the table are newer than it."""
    ends = STANDARD_SUPPORT_ENDS.get((version(kubernetes_version)[0], version(kubernetes_version)[1]))
    return "extended" if ends is not None and day > ends else "standard"
