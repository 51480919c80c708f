"""Checks of one value of the stack file, used by `settings.py`. Each says what is allowed and what to try."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable, Mapping

from planner import defaults, inline_models
from planner.catalogue import CATALOGUE, find
from planner.checkpoint_config import ConfigError
from planner.hardware import GPU_TYPES, GPUS, SYSTEM_TYPES

# Releases that do not serve: a Ray rank bug (vllm-project/vllm#41287), a crash while Kimi loads (#42426), and
# a hang at start over two nodes (#53894).
DENIED_VLLM = ("0.18", "0.22.0", "0.28.0")
OLDEST_KUBERNETES = (1, 33)
FSX_STEP_GIB = 2400
# 63 characters hold the host name `<name>-fabric-test-15` of the fabric test's last pod, which Kubernetes wants to fit
# before it makes the Job; the gang's workers carry the label `<name>-0-<ten digits>` (kubernetes-sigs/lws#410).
LONGEST_NAME = 48
# The largest block that one organisation holds: anything wider is the internet.
WIDEST_ACCESS = 8
# Below this likeness a suggestion would only confuse: difflib's own threshold.
CLOSE_ENOUGH = 0.6


class NotAllowedError(ValueError):
    """A value that is refused: what is allowed, and a value that would do (None if none can be named)."""

    def __init__(self, allowed: str, suggestion: str | None = None) -> None:
        super().__init__(f"allowed: {allowed}")
        self.allowed = allowed
        self.suggestion = suggestion


def closest(value: str, choices: Iterable[str]) -> str | None:
    """The choice that looks most like `value`, if any does; of equally like ones the first."""
    ranked = {choice: difflib.SequenceMatcher(None, value, choice).ratio() for choice in choices}
    found = max(ranked, key=lambda choice: ranked[choice], default=None)
    return found if found is not None and ranked[found] >= CLOSE_ENOUGH else None


def nearest(value: str, choices: Iterable[str]) -> str:
    """A choice to propose instead of `value`: one that looks like it, or begins like it, else the first."""
    wanted, names = value.lower().rpartition("/")[2], tuple(choices)
    heads = {name.partition("-")[0]: name for name in reversed(names)}
    head = closest(wanted.partition("-")[0], dict.fromkeys(name.partition("-")[0] for name in names))
    return closest(wanted, names) or (heads[head] if head else names[0])


def spelled(value: str, choices: Iterable[str]) -> str:
    """The choice that is `value` but for its case; `value` itself where none is."""
    return next((name for name in choices if name.lower() == value.lower()), value)


def as_text(value: object) -> object:
    """`true` and `false` as text, which is no number; anything else as it is."""
    return str(value).lower() if isinstance(value, bool) else value


def as_word(value: object) -> object:
    """A number or truth value as the text that it was written as; anything else as it is."""
    return str(as_text(value)) if isinstance(value, bool | int | float) else value


def deployment_name(value: str) -> str:
    """A DNS label that leaves room for what Kubernetes and the LeaderWorkerSet append."""
    if re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", value) and len(value) <= LONGEST_NAME:
        return value
    label = re.sub(r"[^a-z0-9-]+", "-", value.lower()).lstrip("-0123456789")[:LONGEST_NAME].strip("-")
    raise NotAllowedError(
        f"a DNS label of at most {LONGEST_NAME} characters: a-z first, then a-z, 0-9 and -",
        label or "kimi-k25",
    )


def model(value: object) -> object:
    """A model of the catalogue by name, or a mapping that describes one."""
    if isinstance(value, Mapping):
        try:
            inline_models.inline(value)
        except ConfigError as error:
            raise NotAllowedError(str(error)) from None
        return value
    found = find(str(value))
    return found.name if found else _one_of(str(value), CATALOGUE)


def gpu_instance_type(value: str) -> str:
    """A GPU instance type of the hardware table."""
    return _one_of(value, GPU_TYPES)


def gpu(value: str) -> str:
    """A GPU of the hardware table."""
    return _one_of(value, GPUS)


def system_instance_type(value: str) -> str:
    """A CPU instance type of the hardware table."""
    return _one_of(value, SYSTEM_TYPES)


def closed_cidr(value: str) -> str:
    """A network that does not hold the whole internet: it may reach the Kubernetes API."""
    network = _network(value)
    if network.prefixlen < WIDEST_ACCESS:
        raise NotAllowedError("the addresses you deploy from, not the whole internet", "203.0.113.7/32")
    return str(network)


def vpc_cidr(value: str) -> str:
    """A private network that holds the stack's subnets and is a size that AWS allows for a VPC."""
    network = _network(value)
    if not network.is_private or network.prefixlen not in (16, 17):
        raise NotAllowedError("a private /16 or /17, as 10.42.0.0/16", "10.42.0.0/16")
    return str(network)


def pinned_image(value: str) -> str:
    """An image with a tag other than `latest`, or with a digest."""
    name, _, digest = value.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    if re.search(r"\s", value) or not name:
        raise NotAllowedError("an image reference: registry/repository:tag or @sha256:digest")
    if digest and not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise NotAllowedError("a digest of the form @sha256: and 64 hex digits")
    if not digest and tag in ("", "latest"):
        raise NotAllowedError("an image with a fixed tag (not `latest`) or an @sha256 digest")
    return value


def url(value: str) -> str:
    """An address that a program can open."""
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", value):
        raise NotAllowedError("an address that begins with https:// or http://")
    return value


def bucket_name(value: str) -> str:
    """A bucket that a virtual-hosted address can name."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", value):
        raise NotAllowedError("a bucket's name: 3 to 63 of a-z, 0-9 and -")
    return value


def absolute_path(value: str) -> str:
    """A folder of a node: not the root, and nothing that climbs."""
    steps = value.split("/")
    if len(steps) < 2 or steps[0] or any(step in ("", ".", "..") for step in steps[1:]):
        raise NotAllowedError("an absolute path without . and .., as /mnt/k8s-disks/0", "/mnt/k8s-disks/0")
    return value


def relative_path(value: str) -> str:
    """A folder inside of a bucket or a volume."""
    if not _climbs_nowhere(value):
        inner = value.strip("/")
        suggestion = inner if _climbs_nowhere(inner) else None
        allowed = "a path of letters, digits, _, - and . without / at its ends, as models/kimi"
        raise NotAllowedError(allowed, suggestion)
    return value


def bucket_prefix(value: str) -> str:
    """A folder inside of a bucket, or nothing: the bucket itself."""
    return value and relative_path(value)


def _climbs_nowhere(value: str) -> bool:
    steps = value.split("/")
    return all(step not in (".", "..") and re.fullmatch(r"[A-Za-z0-9_.-]+", step) for step in steps)


def kubernetes_version(value: str) -> str:
    """An EKS version whose nodes and security group rules the stack relies on."""
    parts = version(value)
    if len(parts) != 2 or parts < OLDEST_KUBERNETES:
        raise NotAllowedError("1.33 or newer, written as 1.35 (a string: quote it)", defaults.KUBERNETES)
    return value


def ami_release(value: str) -> str:
    """A release of the EKS-optimised AMI: Kubernetes version and date, as 1.35.6-20260818."""
    if not re.fullmatch(r"1\.\d{2}\.\d{1,2}-\d{8}", value):
        raise NotAllowedError("<Kubernetes version>-<date>, as 1.35.6-20260818", defaults.AMI_RELEASE)
    return value


def fsx_capacity(value: int) -> int:
    """A storage capacity of FSx for Lustre PERSISTENT_2 SSD, in GiB."""
    if value == FSX_STEP_GIB // 2 or (value > 0 and value % FSX_STEP_GIB == 0):
        return value
    larger = max(1, -(-value // FSX_STEP_GIB)) * FSX_STEP_GIB
    raise NotAllowedError("1200, 2400 or a multiple of 2400 (GiB)", str(larger))


def vllm_version(value: str) -> str:
    """A released version of vLLM that is not known to fail."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(\.post\d+)?", value):
        raise NotAllowedError("a released version, as 0.27.1", defaults.VLLM)
    if denied_vllm(value):
        raise NotAllowedError("any release but 0.18.x, 0.22.0 and 0.28.0, which do not start", defaults.VLLM)
    return value


def denied_vllm(value: str) -> bool:
    """Whether a version is one of those that do not serve."""
    return any(value == denied or value.startswith(denied + ".") for denied in DENIED_VLLM)


def version(value: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing: "0.27.1" is (0, 27, 1)."""
    return tuple(int(number) for number in re.findall(r"\d+", value))


def _one_of(value: str, choices: Iterable[str]) -> str:
    names = tuple(choices)
    if (found := spelled(value, names)) not in names:
        raise NotAllowedError(", ".join(names), nearest(value, names))
    return found


def _network(value: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(value)
    except ValueError:
        raise NotAllowedError("an IPv4 network without host bits, as 203.0.113.0/24") from None
