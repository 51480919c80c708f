"""The rules about the weight cache: that it holds the model, is read in time, and stands where it can."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner import cache, checks, vllm, weights
from planner.models import GIB
from planner.platform_settings import EksPlatform, ExistingPlatform, NewNetwork, NodeShape
from planner.problems import Mend, Path, Problem
from planner.rules import Facts, Rule, path, rule
from planner.weight_settings import ClaimWeights, FsxWeights, HubSource, NvmeWeights

KIND = path("weights.kind")
RETAIN = path("weights.retain")
NVME_GB = path("gpuNodes.instanceType.nvmeGb")
SPARE = 1.1
"""A tenth more than the checkpoint: file system overhead, and what readers keep beside it."""

EKS_DISKS = "/mnt/k8s-disks/0"
"""Where an AL2023 node mounts the array of its disks (eks nodeadm, localStorage RAID0)."""

NODE_USES_GB = 200
"""Images, logs and `emptyDir` lie on the same array as the weights (eks nodeadm, RAID0); vLLM's image is 20 GB."""


def cache_holds_weights(facts: Facts) -> Iterator[Problem]:
    """The cache holds the checkpoint and a tenth to spare."""
    size, kept = weights.checkpoint_bytes(facts.model), facts.settings.weights
    if isinstance(kept, FsxWeights) and kept.capacity_gib < (needed := size * SPARE / GIB):
        place = path("weights.capacityGib")
        fitting = _fsx_at_least(needed)
        allowed = f"at least {fitting}: {facts.model.title} and a tenth to spare are {needed:.0f} GiB"
        yield Problem(path=place, given=kept.capacity_gib, allowed=allowed, mends=(Mend(place, fitting),))
    if isinstance(kept, NvmeWeights):
        needed = size * SPARE / 1e9 + NODE_USES_GB
        if facts.instance.nvme_gb < needed:
            yield _disks_too_small(facts, needed)


def _disks_too_small(facts: Facts, needed: float) -> Problem:
    """A described node may have disks that were not told; instance types have what they have."""
    takes = (
        f"{facts.model.title} with a tenth to spare and the node's own {NODE_USES_GB} GB takes {needed:.0f} GB, "
        f"{facts.instance.name} has {facts.instance.nvme_gb} GB of local disk"
    )
    if isinstance(facts.settings.gpu_nodes.instance_type, NodeShape):
        return Problem(
            path=NVME_GB,
            given=facts.instance.nvme_gb,
            allowed=f"at least {math.ceil(needed)}, if the nodes have that: {takes}. Or weights.kind existing_claim",
            mends=(Mend(NVME_GB, math.ceil(needed)),),
        )
    other = "fsx" if isinstance(facts.settings.platform, EksPlatform) else "existing_claim"
    return Problem(path=KIND, given="nvme", allowed=f"{other}: {takes}", mends=_anew(facts, other))


def load_within_startup(facts: Facts) -> Iterator[Problem]:
    """Every node reads the whole checkpoint before the startup probe gives up."""
    kept = facts.settings.weights
    seconds = load_seconds(facts)
    if isinstance(kept, FsxWeights) and seconds > vllm.STARTUP_SECONDS:
        place = path("weights.throughputPerTib")
        needed = kept.throughput_per_tib * seconds / vllm.STARTUP_SECONDS
        enough = next((step for step in (125, 250, 500, 1000) if step >= needed), None)
        larger = _fsx_at_least(kept.capacity_gib * seconds / vllm.STARTUP_SECONDS)
        mend = Mend(place, enough) if enough else Mend(path("weights.capacityGib"), larger)
        yield Problem(
            path=place,
            given=f"{kept.throughput_per_tib} MB/s per TiB x {kept.capacity_gib} GiB",
            allowed=f"a load within the startup probe's {vllm.STARTUP_SECONDS} s; this takes {seconds:.0f} s",
            mends=(mend,),
        )


def cache_stands_on_platform(facts: Facts) -> Iterator[Problem]:
    """A new cluster has no claim yet, and a cluster that is not the stack's own gets no resource of AWS."""
    kept, platform = facts.settings.weights, facts.settings.platform
    if isinstance(kept, ClaimWeights) and isinstance(platform, EksPlatform):
        yield Problem(
            path=KIND,
            given="existing_claim",
            allowed="fsx or nvme: a cluster that the stack makes has no claim yet; platform.kind existing has",
            mends=_anew(facts, "fsx"),
        )
    if isinstance(kept, FsxWeights) and isinstance(platform, ExistingPlatform):
        yield Problem(
            path=KIND,
            given="fsx",
            allowed="nvme or existing_claim: outside of EKS the stack makes no file system",
            mends=_anew(facts, "nvme"),
        )
    if isinstance(kept, NvmeWeights) and isinstance(platform, ExistingPlatform):
        for name, given in (("retain", kept.retain or None), ("start", kept.start)):
            if given is not None:
                place: Path = ("weights", name)
                allowed = "nothing here: on an existing cluster the stack makes neither nodes nor a bucket"
                yield Problem(path=place, given=given, allowed=allowed, mends=(Mend(place, None),))


def disks_are_where_eks_mounts_them(facts: Facts) -> Iterator[Problem]:
    """Elsewhere a folder lies on the root disk of 200 GiB, and the node evicts pods for want of space."""
    kept = facts.settings.weights
    if not isinstance(kept, NvmeWeights) or not isinstance(facts.settings.platform, EksPlatform):
        return
    if kept.host_path != EKS_DISKS and not kept.host_path.startswith(f"{EKS_DISKS}/"):
        place = path("weights.hostPath")
        allowed = f"{EKS_DISKS} or a folder below it: there the stack's own nodes join their disks"
        yield Problem(path=place, given=kept.host_path, allowed=allowed, mends=(Mend(place, None),))


def _anew(facts: Facts, kind: str) -> tuple[Mend, ...]:
    """The section with another kind and the same revision: keys of the old kind are unknown to the new one."""
    revision = Mend(path("weights.revision"), facts.settings.weights.revision)
    claim = (Mend(path("weights.namespace"), "models"), Mend(path("weights.claim"), "weights"))
    return Mend(path("weights"), None), Mend(KIND, kind), revision, *(claim if kind == "existing_claim" else ())


def retained_cache_can_stay(facts: Facts) -> Iterator[Problem]:
    """A file system keeps its subnet, and so the VPC: only one that is not the stack's can stay with it."""
    kept, platform = facts.settings.weights, facts.settings.platform
    own = isinstance(platform, EksPlatform) and isinstance(platform.network, NewNetwork)
    if isinstance(kept, FsxWeights) and kept.retain and own:
        yield Problem(
            path=RETAIN,
            given=True,
            allowed="false with a network of the stack's own: a file system holds its subnet, and `pulumi destroy` "
            "could not delete that. Use platform.network.kind existing; or weights.kind nvme, whose bucket can stay",
            mends=(Mend(RETAIN, False),),
        )
    if isinstance(kept, NvmeWeights) and kept.retain and not isinstance(kept.source, HubSource):
        allowed = "nothing here: the weights lie in a bucket that is yours, which the stack never deletes"
        yield Problem(path=RETAIN, given=True, allowed=allowed, mends=(Mend(RETAIN, None),))


def load_seconds(facts: Facts) -> float:
    """How long all nodes together take to read the checkpoint, in seconds."""
    return cache.read_seconds(facts.settings, weights.checkpoint_bytes(facts.model), facts.instance)


def _fsx_at_least(gib: float) -> int:
    """The smallest capacity that FSx offers and that holds `gib`."""
    half = checks.FSX_STEP_GIB // 2
    return half if gib <= half else int(-(-gib // checks.FSX_STEP_GIB)) * checks.FSX_STEP_GIB


WEIGHT_RULES: tuple[Rule, ...] = (
    rule(cache_holds_weights, "model", "weights", "gpuNodes.instanceType"),
    rule(load_within_startup, "model", "gpuNodes", "weights.capacityGib", "weights.throughputPerTib"),
    rule(disks_are_where_eks_mounts_them, "weights.hostPath", "weights.kind", "platform.kind"),
    rule(cache_stands_on_platform, "weights.kind", "platform.kind"),
    rule(retained_cache_can_stay, "weights", "platform.network"),
)
