"""The rules that join several values of a stack file. Each names the settings it reads.

A rule is skipped where one of those settings has been refused already: its verdict would be about a value
that the user did not write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner import checks, defaults, inline_models, vllm, weights
from planner.hardware import GPU_TYPES, InstanceType
from planner.models import GIB, Model
from planner.problems import API_KEY, HUB_TOKEN, Mend, Path, Problem, touches
from planner.settings import Deployment

# What one node reads over its one IP interface (100 Gb/s): more file system throughput does not help it.
NODE_BYTES_PER_SECOND = 12.5e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What rules look at: the settings, and the catalogue's entries that they name."""

    settings: Deployment
    api_key_given: bool
    hub_token_given: bool

    @property
    def model(self) -> Model:
        """The catalogue's entry of the model, or the one that the stack file holds."""
        return inline_models.resolve(self.settings.model)

    @property
    def instance(self) -> InstanceType:
        """The hardware table's entry of the GPU nodes."""
        return GPU_TYPES[self.settings.gpu_nodes.instance_type]


Check = Callable[[Facts], Iterator[Problem]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A check, and the settings that it reads."""

    check: Check
    reads: tuple[Path, ...]


def path(text: str) -> Path:
    """`platform.region` as a path."""
    return tuple(text.split("."))


def broken(rules: tuple[Rule, ...], facts: Facts, replaced: tuple[Path, ...]) -> Iterator[Problem]:
    """What the rules find, leaving out those that read a setting which an example replaced."""
    for rule in rules:
        if not any(touches(read, other) for read in rule.reads for other in replaced):
            yield from rule.check(facts)


def zone_in_region(facts: Facts) -> Iterator[Problem]:
    """The zone's name is the region's and one letter."""
    region, zone = facts.settings.platform.region, facts.settings.platform.availability_zone
    if not re.fullmatch(re.escape(region) + r"[a-z]", zone):
        place = path("platform.availabilityZone")
        allowed = f"a zone of {region}: {region}a, {region}b, ..."
        yield Problem(path=place, given=zone, allowed=allowed, mends=(Mend(place, f"{region}a"),))


def ami_matches_kubernetes(facts: Facts) -> Iterator[Problem]:
    """A node's kubelet is of the control plane's minor version."""
    platform = facts.settings.platform
    wanted = platform.kubernetes_version
    releases = (
        ("platform.systemNodes.amiRelease", platform.system_nodes.ami_release, "standard"),
        ("gpuNodes.amiRelease", facts.settings.gpu_nodes.ami_release, "nvidia"),
    )
    for where, release, variant in releases:
        if checks.version(release)[:2] != checks.version(wanted):
            parameter = f"optimized-ami/{wanted}/amazon-linux-2023/x86_64/{variant}/recommended/release_version"
            mends = (
                Mend(path("platform.kubernetesVersion"), defaults.KUBERNETES),
                Mend(path(where), defaults.AMI_RELEASE),
            )
            yield Problem(
                path=path(where),
                given=release,
                allowed=f"a release for Kubernetes {wanted}, the platform's version; the newest is in\n"
                f"aws ssm get-parameter --name /aws/service/eks/{parameter}",
                mends=tuple(mend for mend in mends if mend.value not in (wanted, release)),
            )


def vllm_new_enough(facts: Facts) -> Iterator[Problem]:
    """The model's architecture is in vLLM only from some release on."""
    given, minimum = facts.settings.serving.vllm_version, facts.model.minimum_vllm
    refused = (*facts.model.denied_vllm, "0.22.0", "0.28.0")
    if given in refused or checks.version(given) < checks.version(minimum):
        place = path("serving.vllmVersion")
        yield Problem(
            path=place,
            given=given,
            allowed=f"{minimum} or newer for {facts.model.title}, but not {' or '.join(refused)}; serving.image must "
            "hold that version, and on EFA its user space",
            mends=_newer_vllm(place, minimum, refused),
        )


def _newer_vllm(place: Path, minimum: str, refused: tuple[str, ...]) -> tuple[Mend, ...]:
    """The default where it is new enough; else the release, whose image is the user's to find."""
    if defaults.VLLM not in refused and checks.version(defaults.VLLM) >= checks.version(minimum):
        return Mend(place, defaults.VLLM), Mend(path("serving.image"), defaults.IMAGE)
    return (Mend(place, minimum),)


def image_holds_version(facts: Facts) -> Iterator[Problem]:
    """The tag, where it names a version of vLLM, names the configured one."""
    serving = facts.settings.serving
    tag = serving.image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    found = re.match(r"v?(\d+\.\d+\.\d+(?:\.post\d+)?)(?![\d.])", tag)
    if found and found.group(1) != serving.vllm_version:
        place = path("serving.vllmVersion")
        yield Problem(
            path=place,
            given=serving.vllm_version,
            allowed=f"{found.group(1)}, the version in the tag of serving.image",
            mends=(Mend(place, found.group(1)),),
        )


def image_holds_efa(facts: Facts) -> Iterator[Problem]:
    """The stock image has no EFA user space: NCCL would fail to start (vllm-project/vllm#55635)."""
    image = facts.settings.serving.image
    if facts.settings.fabric.kind == "efa" and re.search(r"(^|/)vllm/vllm-openai(?=[:@])", image):
        place = path("serving.image")
        allowed = "with fabric efa, an image that holds the EFA user space, as AWS's vLLM container does"
        yield Problem(path=place, given=image, allowed=allowed, mends=(Mend(place, defaults.IMAGE),))


def instance_has_efa(facts: Facts) -> Iterator[Problem]:
    """Without an EFA interface there is nothing for `fabric: efa` to run on."""
    if facts.settings.fabric.kind == "efa" and not facts.instance.efa:
        place = path("gpuNodes.instanceType")
        names = ", ".join(name for name, kind in GPU_TYPES.items() if kind.efa)
        yield Problem(
            path=place,
            given=facts.instance.name,
            allowed=f"with fabric efa, a type with EFA: {names}",
            mends=(Mend(place, "p5.48xlarge"),),
        )


def cache_holds_weights(facts: Facts) -> Iterator[Problem]:
    """The file system holds the checkpoint and a tenth to spare."""
    cache = facts.settings.weights
    needed = weights.checkpoint_bytes(facts.model) * 1.1 / GIB
    if cache.capacity_gib < needed:
        place = path("weights.capacityGib")
        fitting = _fsx_at_least(needed)
        allowed = f"at least {fitting}: {facts.model.title} and a tenth to spare are {needed:.0f} GiB"
        yield Problem(path=place, given=cache.capacity_gib, allowed=allowed, mends=(Mend(place, fitting),))


def load_within_startup(facts: Facts) -> Iterator[Problem]:
    """Every node reads the whole checkpoint before the startup probe gives up."""
    cache = facts.settings.weights
    seconds = load_seconds(facts)
    if seconds > vllm.STARTUP_SECONDS:
        place = path("weights.throughputPerTib")
        needed = cache.throughput_per_tib * seconds / vllm.STARTUP_SECONDS
        enough = next((step for step in (125, 250, 500, 1000) if step >= needed), None)
        larger = _fsx_at_least(cache.capacity_gib * seconds / vllm.STARTUP_SECONDS)
        mend = Mend(place, enough) if enough else Mend(path("weights.capacityGib"), larger)
        yield Problem(
            path=place,
            given=f"{cache.throughput_per_tib} MB/s per TiB x {cache.capacity_gib} GiB",
            allowed=f"a load within the startup probe's {vllm.STARTUP_SECONDS} s; this takes {seconds:.0f} s",
            mends=(mend,),
        )


def api_key_or_anonymous(facts: Facts) -> Iterator[Problem]:
    """Without a key whoever reaches the endpoint uses it: that has to be chosen."""
    if not facts.api_key_given and not facts.settings.serving.allow_anonymous:
        yield Problem(
            path=API_KEY,
            given=None,
            allowed="the key that clients send; or serving.allowAnonymous: true, to serve everyone",
            mends=(Mend(API_KEY, ""),),
        )


def hub_token_for_gated_model(facts: Facts) -> Iterator[Problem]:
    """A gated repository gives its files only to those who accepted its licence."""
    if facts.model.gated and not facts.hub_token_given:
        yield Problem(
            path=HUB_TOKEN,
            given=None,
            allowed=f"a token of the Hugging Face Hub: {facts.model.repository} is gated (accept its licence first)",
            mends=(Mend(HUB_TOKEN, ""),),
        )


def load_seconds(facts: Facts) -> float:
    """How long all nodes together take to read the checkpoint from the file system, in seconds."""
    size = weights.checkpoint_bytes(facts.model)
    nodes = facts.settings.gpu_nodes.count
    return max(nodes * size / cache_bytes_per_second(facts.settings), size / NODE_BYTES_PER_SECOND)


def cache_bytes_per_second(settings: Deployment) -> float:
    """Disk throughput of the file system, shared by all nodes."""
    return settings.weights.capacity_gib / 1024 * settings.weights.throughput_per_tib * 1e6


def _fsx_at_least(gib: float) -> int:
    """The smallest capacity that FSx offers and that holds `gib`."""
    half = checks.FSX_STEP_GIB // 2
    return half if gib <= half else int(-(-gib // checks.FSX_STEP_GIB)) * checks.FSX_STEP_GIB


def _rule(check: Check, *reads: str) -> Rule:
    return Rule(check, tuple(path(read) for read in reads))


RULES: tuple[Rule, ...] = (
    _rule(zone_in_region, "platform.region", "platform.availabilityZone"),
    _rule(
        ami_matches_kubernetes,
        "platform.kubernetesVersion",
        "platform.systemNodes.amiRelease",
        "gpuNodes.amiRelease",
    ),
    _rule(vllm_new_enough, "model", "serving.vllmVersion"),
    _rule(image_holds_version, "serving.image", "serving.vllmVersion"),
    _rule(image_holds_efa, "serving.image", "fabric"),
    _rule(instance_has_efa, "gpuNodes.instanceType", "fabric"),
    _rule(cache_holds_weights, "model", "weights.capacityGib"),
    _rule(load_within_startup, "model", "gpuNodes.count", "weights.capacityGib", "weights.throughputPerTib"),
    _rule(api_key_or_anonymous, "serving.allowAnonymous"),
    _rule(hub_token_for_gated_model, "model"),
)
