"""How Kubernetes spells names, labels, taints and resources: checks of one value, as those of `checks.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.checks import NotAllowedError

# What a label's value is, and its key after the prefix (Kubernetes, labels and selectors).
_PREFIX = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
_LABEL = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"


def resource_name(value: str) -> str:
    """An extended resource, as device plugins offer them; GPUs are asked for besides."""
    if not re.fullmatch(rf"{_PREFIX}/{_LABEL}", value) or value == "nvidia.com/gpu":
        raise NotAllowedError(
            "a resource of the fabric's device plugin, as rdma/hca_shared_devices_a", "rdma/hca_shared_devices_a"
        )
    return value


def namespace(value: str) -> str:
    """A name of a namespace."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", value):
        raise NotAllowedError("a namespace's name: at most 63 of a-z, 0-9 and -")
    return value


def claim_name(value: str) -> str:
    """A name of a claim, which unlike a namespace's may have dots."""
    if not re.fullmatch(_PREFIX, value):
        raise NotAllowedError("a claim's name: at most 253 of a-z, 0-9, - and .")
    return value


def label_key(value: str) -> str:
    """The key of a label or a taint."""
    if not re.fullmatch(rf"({_PREFIX}/)?{_LABEL}", value):
        raise NotAllowedError("a key of Kubernetes: at most 63 of a-z, A-Z, 0-9, -, _ and ., as nvidia.com/gpu")
    return value


def label_value(value: str) -> str:
    """The value of a label or a taint, which may be empty."""
    if not re.fullmatch(rf"({_LABEL})?", value):
        raise NotAllowedError("a value of Kubernetes: at most 63 of a-z, A-Z, 0-9, -, _ and .")
    return value


def labels(value: Mapping[str, str]) -> Mapping[str, str]:
    """Labels of nodes: at least one, in Kubernetes' own spelling."""
    for key, text in value.items():
        try:
            label_key(key), label_value(text)
        except NotAllowedError as error:
            raise NotAllowedError(f"labels, as node.kubernetes.io/instance-type: h100-8gpu; {error.allowed}") from None
    if not value:
        raise NotAllowedError("at least one label that only these nodes carry, as gpu-pool: h100")
    return value
