"""How a new VPC's addresses are divided. Pure arithmetic, so that it can be tested without a cloud."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

WIDE_PREFIX = 20
"""4,091 usable addresses: control plane, system nodes and their pods."""

GPU_PREFIX = 22
"""1,019 usable addresses: one interface with addresses a node, and up to 100 pods (p5.48xlarge)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPlan:
    """CIDR blocks of a new VPC; the pairs are ordered (GPU nodes' zone, second zone)."""

    public: tuple[str, str]
    private: tuple[str, str]
    gpu: str


def divide(vpc: str) -> AddressPlan:
    """Four /20 blocks and the first /22 of the fifth. Raises ValueError where `vpc` is smaller than a /17."""
    network = IPv4Network(vpc)
    if network.prefixlen > 17:
        raise ValueError(f"{vpc} is too small: five /20 blocks need a /17 or larger")
    wide = network.subnets(new_prefix=WIDE_PREFIX)
    public_a, public_b, private_a, private_b, fifth = (next(wide) for _ in range(5))
    gpu = next(fifth.subnets(new_prefix=GPU_PREFIX))
    return AddressPlan(public=(str(public_a), str(public_b)), private=(str(private_a), str(private_b)), gpu=str(gpu))
