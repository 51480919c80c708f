"""What it costs until the first token: a line of phases, each with its length and what is paid during it.

GPU nodes on demand are created after the weights are staged (`after_staging`), so that no GPU is paid before; those of
a reservation or a capacity block are paid anyway, so they boot beside the staging (`overlap`). Lengths that follow from
sizes and throughputs are computed; the others are stated assumptions, which a user may replace.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner import prices
from planner.hardware import SYSTEM_TYPES
from planner.plan import Plan
from planner.rules import NODE_BYTES_PER_SECOND
from planner.settings import NewNetwork

BOOT = "assumed: instance start, node join, image pull"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What the plan cannot compute. The hub's rate was measured: 960 GB in 31 minutes (modelplane #204)."""

    platform_minutes: float = 20.0
    boot_minutes: float = 15.0
    hub_mb_per_second: float = 516.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase: its length, the USD per hour paid during it (known parts), and where its length comes from."""

    name: str
    seconds: float
    usd_per_hour: float
    gpus_paid: bool
    source: str

    @property
    def usd(self) -> float:
        """USD paid during the phase."""
        return self.usd_per_hour * self.seconds / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstToken:
    """The way to the first token. `download_usd`: the weights through the NAT gateway, None if unknown.

    `overlap_usd`: what GPU nodes that boot while weights are staged would cost more; None if unknown.
    """

    phases: tuple[Phase, ...]
    download_gb: float
    download_usd: float | None
    overlap_usd: float | None
    complete: bool

    @property
    def seconds(self) -> float:
        """From `pulumi up` to the first token."""
        return sum(phase.seconds for phase in self.phases)

    @property
    def usd(self) -> float:
        """Known USD until the first token."""
        return sum(phase.usd for phase in self.phases) + (self.download_usd or 0.0)


def until_first_token(plan: Plan, pace: Pace | None = None) -> FirstToken | None:
    """The phases of a first `up`; None for a paused stack, which serves nothing."""
    if plan.serving is None:
        return None
    pace = pace or Pace()
    gpus = plan.price.part("gpuNodes")
    gpu_rate = (gpus.per_hour if gpus else None) or 0.0
    around = plan.price.total_per_hour - gpu_rate
    on_demand = plan.price.purchase == "on_demand"
    staging, limit = _staging(plan, pace)
    boot = pace.boot_minutes * 60
    between = (
        (("staging", staging, limit), ("boot", boot, BOOT))
        if on_demand
        else (("staging, boot", max(staging, boot), f"side by side: {limit}; {BOOT}"),)
    )
    lengths = (
        ("platform", pace.platform_minutes * 60, "assumed: network, control plane, system nodes, file system"),
        *between,
        ("load", plan.weights.expected_load_seconds, _load(plan)),
    )
    phases = []
    for name, seconds, source in lengths:
        paid = not on_demand or name in ("boot", "load")
        rate = around + gpu_rate * paid
        phases.append(Phase(name=name, seconds=seconds, usd_per_hour=rate, gpus_paid=paid, source=source))
    download_gb, download_usd = _download(plan)
    known = gpus is not None and gpus.per_hour is not None
    idle = max(0.0, staging - boot) if on_demand else 0.0
    return FirstToken(
        phases=tuple(phases),
        download_gb=download_gb,
        download_usd=download_usd,
        overlap_usd=gpu_rate * idle / 3600 if known else None,
        complete=plan.price.complete and download_usd is not None,
    )


def _load(plan: Plan) -> str:
    """How all nodes read the weights: over the file system together, or each over its own network."""
    gb, nodes, shared = (
        plan.weights.size_bytes / 1e9,
        plan.settings.gpu_nodes.count,
        plan.weights.throughput_mb_per_second,
    )
    own = NODE_BYTES_PER_SECOND / 1e6
    if nodes / shared >= 1 / own:
        return f"computed: {nodes} x {gb:.2f} GB x 1000 / {shared:g} MB/s, limited by the file system; no compilation"
    return f"computed: {gb:.2f} GB x 1000 / {own:g} MB/s, limited by a node's network; no compilation"


def _staging(plan: Plan, pace: Pace) -> tuple[float, str]:
    """Seconds from the hub to the file system, and what limits them."""
    network = SYSTEM_TYPES[plan.settings.platform.system_nodes.instance_type].network_gbps * 1000 / 8
    rates = {
        "the hub": pace.hub_mb_per_second,
        "the file system": plan.weights.throughput_mb_per_second,
        "the system node's network": network,
    }
    slowest = min(rates, key=lambda name: rates[name])
    gb, rate = plan.weights.size_bytes / 1e9, rates[slowest]
    return gb * 1000 / rate, f"computed: {gb:.2f} GB x 1000 / {rate:g} MB/s, limited by {slowest}"


def _download(plan: Plan) -> tuple[float, float | None]:
    """GB of weights that go through the stack's own NAT gateway once, and their USD."""
    platform = plan.settings.platform
    if not isinstance(platform.network, NewNetwork):
        return 0.0, 0.0
    gb = plan.weights.size_bytes / 1e9
    reference = prices.of(platform.region).get("nat_gateway/gb")
    usd = None if reference is None or reference.known is None else gb * reference.known
    return gb, usd
