"""What a GPU node is told at launch: its network interfaces and its user data. Pure functions, tested by table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from planner.hardware import InstanceType

InterfaceKind = Literal["interface", "efa", "efa-only"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One network interface of a launch template: the card it sits on, its index there and its kind."""

    card: int
    device: int
    kind: InterfaceKind


def network_interfaces(instance: InstanceType) -> tuple[Interface, ...]:
    """Every network card of an instance type, card 0 first.

    Card 0 carries the node's addresses and must be an ordinary or `efa` interface; the others are `efa-only`, which
    takes no address from the subnet. On p6-b300 card 0 has no EFA. The layout is that of terraform-aws-eks v21.19.0
    (`modules/eks-managed-node-group/main.tf`), which leaves card 0's second slot to the VPC CNI: 100 pods on p5.
    """
    first = Interface(card=0, device=0, kind="efa" if instance.first_card_efa else "interface")
    rest = (Interface(card=card, device=1, kind="efa-only") for card in range(1, instance.network_cards))
    return (first, *rest)


def user_data() -> str:
    """MIME user data with a NodeConfig that joins the NVMe disks into one RAID0 array (EKS merges its own part).

    With RAID0 images, pod logs and `emptyDir` lie on NVMe too; without it p5's 30 TB stay unused.
    """
    config = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {"instance": {"localStorage": {"strategy": "RAID0"}}},
    }
    boundary = "NODE-CONFIG"
    return "\n".join(
        (
            "MIME-Version: 1.0",
            f'Content-Type: multipart/mixed; boundary="{boundary}"',
            "",
            f"--{boundary}",
            "Content-Type: application/node.eks.aws",
            "",
            json.dumps(config, sort_keys=True, indent=2),
            "",
            f"--{boundary}--",
            "",
        )
    )
