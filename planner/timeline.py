"""What it costs until the first token: a line of phases, each with its length and what is paid during it.

GPU nodes made `after_staging` cost nothing while the weights come; those made in `overlap` boot beside the staging and
wait for it, paid. Lengths that follow from sizes and throughputs are computed; the others are stated assumptions, which
a user may replace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner import cache, prices
from planner.hardware import SYSTEM_TYPES
from planner.plan import Plan
from planner.platform_settings import EksPlatform, NewNetwork
from planner.weight_settings import FsxWeights, HubSource, NvmeWeights, Start

STARTS: tuple[Start, ...] = ("after_staging", "overlap")
BOOT = "assumed: instance start, node join, image pull"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What the plan cannot compute. The hub's rate was measured: 960 GB in 31 minutes (modelplane #204)."""

    platform_minutes: float = 20.0
    boot_minutes: float = 15.0
    hub_mb_per_second: float = 516.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase: its length, the USD per hour paid during it (known parts), and where its length comes from.

    `waiting_seconds`: how much of it GPU nodes are paid and wait for weights.
    """

    name: str
    seconds: float
    usd_per_hour: float
    gpus_paid: bool
    source: str
    waiting_seconds: float = 0.0

    @property
    def usd(self) -> float:
        """USD paid during the phase."""
        return self.usd_per_hour * self.seconds / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstToken:
    """The way to the first token. `download_usd`: the weights through the NAT gateway, None if unknown.

    `start`: None on a cluster whose GPU nodes are there already. `gpus`: how many there are; `gpu_usd_per_hour`: what
    their nodes cost, None if unknown.
    """

    start: Start | None
    phases: tuple[Phase, ...]
    download_gb: float
    download_usd: float | None
    gpus: int
    gpu_usd_per_hour: float | None
    complete: bool

    @property
    def name(self) -> str:
        """What tells the ways apart."""
        return self.start or "onExistingNodes"

    @property
    def seconds(self) -> float:
        """From `pulumi up` to the first token."""
        return sum(phase.seconds for phase in self.phases)

    @property
    def usd(self) -> float:
        """Known USD until the first token."""
        return sum(phase.usd for phase in self.phases) + (self.download_usd or 0.0)

    @property
    def waiting_seconds(self) -> float:
        """How long GPU nodes are paid while they wait for weights."""
        return sum(phase.waiting_seconds for phase in self.phases)

    @property
    def waiting_gpu_minutes(self) -> float:
        """GPU-minutes paid while waiting for weights."""
        return self.gpus * self.waiting_seconds / 60

    @property
    def waiting_usd(self) -> float | None:
        """USD of those GPU-minutes, None where the nodes' price is unknown."""
        return None if self.gpu_usd_per_hour is None else self.gpu_usd_per_hour * self.waiting_seconds / 3600


def until_first_token(plan: Plan, pace: Pace | None = None, start: Start | None = None) -> FirstToken | None:
    """The phases of a first `up`, as configured or with another `start`; None for a paused stack."""
    if plan.serving is None:
        return None
    chosen = start or plan.weights.start
    gpus = plan.price.part("gpuNodes")
    gpu_rate = gpus.per_hour if gpus else None
    download_gb, download_usd = _download(plan)
    return FirstToken(
        start=chosen if isinstance(plan.settings.platform, EksPlatform) else None,
        phases=tuple(_phases(plan, pace or Pace(), chosen)),
        download_gb=download_gb,
        download_usd=download_usd,
        gpus=plan.instance.gpus * plan.settings.gpu_nodes.count,
        gpu_usd_per_hour=gpu_rate,
        complete=plan.price.complete and download_usd is not None,
    )


def starts(plan: Plan, pace: Pace | None = None) -> tuple[FirstToken, ...]:
    """Both ways to start, where there is a choice: the stack makes its nodes and serves."""
    ways = STARTS if isinstance(plan.settings.platform, EksPlatform) else (plan.weights.start,)
    return tuple(found for start in ways if (found := until_first_token(plan, pace, start)) is not None)


def _phases(plan: Plan, pace: Pace, start: Start) -> Iterator[Phase]:
    gpus = plan.price.part("gpuNodes")
    gpu_rate = (gpus.per_hour if gpus else None) or 0.0
    around = plan.price.total_per_hour - gpu_rate
    reserved = plan.price.purchase != "on_demand"

    def phase(name: str, seconds: float, source: str, *, paid: bool, waiting: float = 0.0) -> Phase:
        rate = around + gpu_rate * (paid or reserved)
        return Phase(
            name=name,
            seconds=seconds,
            usd_per_hour=rate,
            gpus_paid=paid or reserved,
            source=source,
            waiting_seconds=waiting,
        )

    staging, limit = _staging(plan, pace)
    boot = pace.boot_minutes * 60
    if not isinstance(plan.settings.platform, EksPlatform):
        if plan.weights.staged_by_job:
            yield phase("staging", staging, limit, paid=True, waiting=staging)
    else:
        made = "assumed: network, control plane, system nodes, file system"
        yield phase("platform", pace.platform_minutes * 60, made, paid=False)
        if start == "after_staging":
            yield phase("staging", staging, limit, paid=False)
            yield phase("boot", boot, BOOT, paid=True)
        else:
            both = f"side by side: {limit}; {BOOT}"
            idle = max(0.0, staging - boot)
            yield phase("staging, boot", max(staging, boot), both, paid=True, waiting=idle)
    if fill := fill_seconds(plan, pace):
        gb = plan.weights.size_bytes / 1e9
        written = f"computed: {gb:.2f} GB x 1000 / {gb * 1000 / fill:g} MB/s; each node writes its own copy"
        yield phase("fill disks", fill, written, paid=True, waiting=fill)
    yield phase("load", plan.weights.expected_load_seconds, _load(plan), paid=True)


def _load(plan: Plan) -> str:
    """How the nodes read the weights: over one file system together, or each by itself."""
    kept, gb, nodes = plan.settings.weights, plan.weights.size_bytes / 1e9, plan.settings.gpu_nodes.count
    own, limit = cache.node_bytes_per_second(plan.instance) / 1e6, "a node's network"
    if isinstance(kept, NvmeWeights):
        own, limit = cache.NVME_READ_BYTES_PER_SECOND / 1e6, "a node's disks"
    if isinstance(kept, FsxWeights) and nodes / (shared := cache.fsx_bytes_per_second(kept) / 1e6) >= 1 / own:
        return f"computed: {nodes} x {gb:.2f} GB x 1000 / {shared:g} MB/s, limited by the file system; no compilation"
    return f"computed: {gb:.2f} GB x 1000 / {own:g} MB/s, limited by {limit}; no compilation"


def _staging(plan: Plan, pace: Pace) -> tuple[float, str]:
    """Seconds until the cache or the bucket is full, and what limits them."""
    if not plan.weights.staged_by_job:
        return 0.0, "no staging: the weights are where they are read from"
    settings, rates = plan.settings, {}
    if isinstance(settings.weights.source, HubSource):
        rates["the hub"] = pace.hub_mb_per_second
    if isinstance(settings.platform, EksPlatform):
        node = SYSTEM_TYPES[settings.platform.system_nodes.instance_type]
        rates["the system node's network"] = node.network_gbps * 1000 / 8
    else:
        rates["the network, taken to be as fast as the GPU nodes',"] = cache.node_bytes_per_second(plan.instance) / 1e6
    if isinstance(settings.weights, FsxWeights):
        rates["the file system"] = cache.fsx_bytes_per_second(settings.weights) / 1e6
    if plan.weights.through_bucket:
        rates["the scratch disk, written and read,"] = cache.SCRATCH_MIB_PER_SECOND * 2**20 / 2e6
    gb = plan.weights.size_bytes / 1e9
    slowest = min(rates, key=lambda name: rates[name])
    rate = rates[slowest]
    return gb * 1000 / rate, f"computed: {gb:.2f} GB x 1000 / {rate:g} MB/s, limited by {slowest}"


def fill_seconds(plan: Plan, pace: Pace) -> float:
    """How long the nodes take to fill their disks: from a bucket at their network's speed, or from the hub."""
    from_hub = isinstance(plan.settings.weights.source, HubSource) and not plan.weights.through_bucket
    hub = plan.weights.size_bytes / (pace.hub_mb_per_second * 1e6) if from_hub and plan.weights.fill_seconds else 0.0
    return max(plan.weights.fill_seconds, hub)


def _download(plan: Plan) -> tuple[float, float | None]:
    """GB of weights that go through the stack's own NAT gateway once, and their USD."""
    platform = plan.settings.platform
    from_hub = isinstance(plan.settings.weights.source, HubSource)
    if not (from_hub and isinstance(platform, EksPlatform) and isinstance(platform.network, NewNetwork)):
        return 0.0, 0.0
    gb = plan.weights.size_bytes / 1e9
    reference = prices.of(platform.region).get("nat_gateway/gb")
    usd = None if reference is None or reference.known is None else gb * reference.known
    return gb, usd
