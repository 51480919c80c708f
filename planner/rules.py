"""The rules that join several values of a stack file. Each names the settings it reads.

A rule is skipped where one of those settings has been refused already: its verdict would be about a value
that the user did not write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner import checks, defaults, inline_models
from planner.hardware import GPU_TYPES, GPUS, InstanceType
from planner.models import Model
from planner.platform_settings import EksPlatform, NodeShape
from planner.problems import API_KEY, HUB_TOKEN, Mend, Path, Problem, touches
from planner.settings import Deployment


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
        """The GPU nodes: the hardware table's entry, or the node that the stack file describes."""
        chosen = self.settings.gpu_nodes.instance_type
        return GPU_TYPES[chosen] if isinstance(chosen, str) else described(chosen)


def described(shape: NodeShape) -> InstanceType:
    """A node that no instance type names, as the hardware table would have it."""
    gpu = GPUS[shape.gpu]
    return InstanceType(
        name=f"{shape.gpus} x {gpu.name}",
        gpu=gpu,
        gpus=shape.gpus,
        vcpus=shape.vcpus,
        memory_mib=shape.memory_gib * 1024,
        nvme_gb=shape.nvme_gb,
        network_gbps=shape.network_gbps,
        efa=shape.efa,
    )


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
    platform = facts.settings.platform
    if not isinstance(platform, EksPlatform):
        return
    region, zone = platform.region, platform.availability_zone
    if not re.fullmatch(re.escape(region) + r"[a-z]", zone):
        place = path("platform.availabilityZone")
        allowed = f"a zone of {region}: {region}a, {region}b, ..."
        yield Problem(path=place, given=zone, allowed=allowed, mends=(Mend(place, f"{region}a"),))


def ami_matches_kubernetes(facts: Facts) -> Iterator[Problem]:
    """A node's kubelet is of the control plane's minor version."""
    platform = facts.settings.platform
    if not isinstance(platform, EksPlatform):
        return
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
    tag = facts.settings.image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    found = re.match(r"v?(\d+\.\d+\.\d+(?:\.post\d+)?)(?![\d.])", tag)
    if found and found.group(1) != serving.vllm_version:
        place = path("serving.vllmVersion")
        yield Problem(
            path=place,
            given=serving.vllm_version,
            allowed=f"{found.group(1)}, the version in the tag of serving.image",
            mends=(Mend(place, found.group(1)),),
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


def rule(check: Check, *reads: str) -> Rule:
    """A rule by the dotted names of what it reads."""
    return Rule(check, tuple(path(read) for read in reads))


RULES: tuple[Rule, ...] = (
    rule(zone_in_region, "platform.region", "platform.availabilityZone"),
    rule(
        ami_matches_kubernetes,
        "platform.kubernetesVersion",
        "platform.systemNodes.amiRelease",
        "gpuNodes.amiRelease",
    ),
    rule(vllm_new_enough, "model", "serving.vllmVersion"),
    rule(image_holds_version, "serving.image", "serving.vllmVersion"),
    rule(api_key_or_anonymous, "serving.allowAnonymous"),
    rule(hub_token_for_gated_model, "model"),
)
