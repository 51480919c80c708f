"""What a node of each EC2 instance type offers to pods, for the types that stacks of this project use.

Sizes of the types: AWS instance tables of July 2026; pods per node: amazon-vpc-cni-k8s `eni-max-pods.txt`.
Allocatable CPU and memory follow EKS's reservation rules, and agree with what p5.48xlarge was seen to offer
on EKS (191450m, 2052371068Ki, hugepages-2Mi 42242Mi; awslabs/awsome-distributed-ai). The same source has
p4d's huge pages (21122Mi); those of other GPU types are not known, and they are given none.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulation.control_plane.errors import ControlPlaneError

KERNEL_SHARE = 0.02345
"""Part of the memory that kernel and firmware keep, from the p5.48xlarge figures above."""

ROOT_VOLUME_GB = 200
"""Disk of a node without instance store; the size of its volume is not passed to the simulation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One instance type."""

    vcpus: int
    memory_mib: int
    pods: int
    gpus: int = 0
    efa_interfaces: int = 0
    """The most that the type takes; a simulated node has them all, whatever its launch template asks for."""
    nvme_gb: int = 0
    huge_pages_mib: int = 0

    def allocatable(self) -> dict[str, str]:
        """What the kubelet offers before any device plugin runs."""
        reserved_mib = 255 + 11 * self.pods + 100  # kubelet and system daemons; eviction threshold
        free_kib = int(self.memory_mib * 1024 * (1 - KERNEL_SHARE)) - (reserved_mib + self.huge_pages_mib) * 1024
        disk_gb = self.nvme_gb or ROOT_VOLUME_GB
        offered = {
            "cpu": f"{self.vcpus * 1000 - _reserved_millicores(self.vcpus)}m",
            "memory": f"{free_kib}Ki",
            "pods": str(self.pods),
            "ephemeral-storage": f"{disk_gb * 9 // 10}G",
        }
        if self.huge_pages_mib:
            offered["hugepages-2Mi"] = f"{self.huge_pages_mib}Mi"
        return offered

    def capacity(self) -> dict[str, str]:
        """What the machine has, reservations included."""
        disk_gb = self.nvme_gb or ROOT_VOLUME_GB
        whole = {"cpu": str(self.vcpus), "memory": f"{self.memory_mib}Mi", "ephemeral-storage": f"{disk_gb}G"}
        return self.allocatable() | whole


def _reserved_millicores(vcpus: int) -> int:
    """6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest."""
    return int(60 + 10 * (vcpus >= 2) + 5 * min(max(vcpus - 2, 0), 2) + 2.5 * max(vcpus - 4, 0))


def _gpu(vcpus: int, memory_mib: int, pods: int, gpus: int, efa: int, nvme_gb: int, pages: int = 0) -> InstanceType:
    return InstanceType(
        vcpus=vcpus,
        memory_mib=memory_mib,
        pods=pods,
        gpus=gpus,
        efa_interfaces=efa,
        nvme_gb=nvme_gb,
        huge_pages_mib=pages,
    )


def _cpu(vcpus: int, memory_gib: int, pods: int) -> InstanceType:
    return InstanceType(vcpus=vcpus, memory_mib=memory_gib * 1024, pods=pods)


INSTANCE_TYPES = {
    "p5.48xlarge": _gpu(192, 2097152, 100, 8, 32, 30400, 42242),
    "p5e.48xlarge": _gpu(192, 2097152, 100, 8, 32, 30400),
    "p5en.48xlarge": _gpu(192, 2097152, 198, 8, 16, 30400),
    "p5.4xlarge": _gpu(16, 262144, 118, 1, 1, 3800),
    "p4d.24xlarge": _gpu(96, 1179648, 737, 8, 4, 8000, 21122),
    "p4de.24xlarge": _gpu(96, 1179648, 737, 8, 4, 8000),
    "p6-b200.48xlarge": _gpu(192, 2097152, 198, 8, 8, 30400),
    "p6-b300.48xlarge": _gpu(192, 4194304, 198, 8, 16, 30400),
    "g6e.48xlarge": _gpu(192, 1572864, 492, 8, 4, 7600),
    "g6e.12xlarge": _gpu(48, 393216, 292, 4, 1, 3800),
    "g6.48xlarge": _gpu(192, 786432, 737, 8, 1, 7520),
    "g6.12xlarge": _gpu(48, 196608, 234, 4, 1, 3760),
    "g7e.48xlarge": _gpu(192, 2097152, 632, 8, 4, 15200),
    "c5n.4xlarge": _cpu(16, 42, 234),
    "c6in.4xlarge": _cpu(16, 32, 234),
    "c7i.4xlarge": _cpu(16, 32, 234),
    "m5.large": _cpu(2, 8, 29),
    "m5.xlarge": _cpu(4, 16, 58),
    "m5.2xlarge": _cpu(8, 32, 58),
    "m5.4xlarge": _cpu(16, 64, 234),
    "m5n.4xlarge": _cpu(16, 64, 234),
    "m6i.4xlarge": _cpu(16, 64, 234),
    "m6in.2xlarge": _cpu(8, 32, 58),
    "m6in.4xlarge": _cpu(16, 64, 234),
    "m6in.8xlarge": _cpu(32, 128, 234),
    "m7i.4xlarge": _cpu(16, 64, 234),
}


def instance_type(name: str) -> InstanceType:
    """The instance type of that name. Raises ControlPlaneError, with the known ones, if there is none."""
    if name not in INSTANCE_TYPES:
        raise ControlPlaneError(
            f"The stand-in has no instance type {name!r}. Known are: {', '.join(INSTANCE_TYPES)}. "
            "Another one needs a line in simulation/control_plane/instance_types.py."
        )
    return INSTANCE_TYPES[name]
