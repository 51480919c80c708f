"""The table of EC2 instance types: GPUs, memory, disks, network cards and EFA interfaces. Prices: `prices.yaml`.

Figures: aws/karpenter-provider-aws v1.14 (instance types) and aws/amazon-vpc-cni-k8s (ENI limits, max pods).
"""

from __future__ import annotations

from dataclasses import dataclass

from planner import prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU. `memory_mib` is what EC2 lists; `usable_gib` is what CUDA reports, as printed in vLLM logs."""

    name: str
    memory_mib: int
    usable_gib: float
    compute_capability: tuple[int, int]

    @property
    def has_fp8(self) -> bool:
        """Whether it multiplies FP8 numbers: from Ada (8.9) on."""
        return self.compute_capability >= (8, 9)

    @property
    def key(self) -> str:
        """What flags call it, as h100-80gb."""
        return self.name.lower().replace(" gb", "gb").replace(" ", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """An EC2 instance type. `first_card_efa`: network card 0 carries an EFA interface (p6-b300's does not)."""

    name: str
    gpu: Gpu | None = None
    gpus: int = 0
    vcpus: int
    memory_mib: int
    nvme_gb: int = 0
    network_gbps: float
    network_cards: int = 1
    interfaces_per_card: int = 1
    efa: int = 0
    first_card_efa: bool = True
    max_pods: int = 110

    @property
    def memory_gib(self) -> float:
        """RAM in GiB."""
        return self.memory_mib / 1024

    @property
    def usd_per_hour(self) -> float | None:
        """On-demand Linux price in `prices.REGION`, None if unknown."""
        return prices.on_demand(self.name)


# name, MiB, usable GiB, compute capability. Usable memory from start-up logs, except where the note says otherwise.
_GPU_ROWS: tuple[tuple[str, int, float, tuple[int, int]], ...] = (
    ("A10 24 GB", 23_028, 22.07, (8, 6)),
    ("L4 24 GB", 22_888, 22.03, (8, 9)),
    ("A100 40 GB", 40_960, 39.39, (8, 0)),
    ("L40S 48 GB", 45_776, 44.39, (8, 9)),
    ("A100 80 GB", 81_920, 79.25, (8, 0)),
    ("H100 80 GB", 81_920, 79.65, (9, 0)),
    ("H100 NVL 94 GB", 95_830, 93.10, (9, 0)),
    ("RTX PRO 6000 96 GB", 98_304, 94.97, (12, 0)),
    ("H20 96 GB", 98_304, 95.0, (9, 0)),
    ("H20 141 GB", 144_384, 139.72, (9, 0)),
    ("H200 141 GB", 144_384, 139.80, (9, 0)),
    ("H200 NVL 141 GB", 144_384, 140.40, (9, 0)),
    ("B200 180 GB", 183_359, 178.35, (10, 0)),
    ("B300 270 GB", 275_040, 267.6, (10, 3)),
)
GPUS: dict[str, Gpu] = {
    gpu.key: gpu
    for gpu in (
        Gpu(name=name, memory_mib=mib, usable_gib=gib, compute_capability=capability)
        for name, mib, gib, capability in _GPU_ROWS
    )
}
A100_40, A100_80 = GPUS["a100-40gb"], GPUS["a100-80gb"]
H100, H200 = GPUS["h100-80gb"], GPUS["h200-141gb"]
B200, B300 = GPUS["b200-180gb"], GPUS["b300-270gb"]
L40S, L4, RTX_PRO_6000 = GPUS["l40s-48gb"], GPUS["l4-24gb"], GPUS["rtx-pro-6000-96gb"]

# name, GPU, GPUs, vCPUs, RAM GiB, NVMe GB, Gb/s, network cards, interfaces per card, EFA, max pods
_TYPE_ROWS: tuple[tuple[str, Gpu, int, int, int, int, float, int, int, int, int], ...] = (
    ("p5.48xlarge", H100, 8, 192, 2048, 30_400, 3200, 32, 2, 32, 100),
    ("p5e.48xlarge", H200, 8, 192, 2048, 30_400, 3200, 32, 2, 32, 100),
    ("p5en.48xlarge", H200, 8, 192, 2048, 30_400, 3200, 16, 4, 16, 198),
    ("p5.4xlarge", H100, 1, 16, 256, 3800, 100, 1, 4, 1, 118),
    ("p4d.24xlarge", A100_40, 8, 96, 1152, 8000, 400, 4, 15, 4, 737),
    ("p4de.24xlarge", A100_80, 8, 96, 1152, 8000, 400, 4, 15, 4, 737),
    ("p6-b200.48xlarge", B200, 8, 192, 2048, 30_400, 3200, 8, 4, 8, 198),
    ("p6-b300.48xlarge", B300, 8, 192, 4096, 30_400, 6400, 17, 4, 16, 198),
    ("g7e.48xlarge", RTX_PRO_6000, 8, 192, 2048, 15_200, 1600, 4, 10, 4, 632),
    ("g6e.48xlarge", L40S, 8, 192, 1536, 7600, 400, 4, 10, 4, 492),
    ("g6e.12xlarge", L40S, 4, 48, 384, 3800, 100, 1, 10, 1, 292),
    ("g6e.2xlarge", L40S, 1, 8, 64, 450, 20, 1, 4, 0, 58),
    ("g6.48xlarge", L4, 8, 192, 768, 7520, 100, 1, 15, 1, 737),
    ("g6.12xlarge", L4, 4, 48, 192, 3760, 40, 1, 8, 1, 234),
)
_GPU_TYPES = tuple(
    InstanceType(
        name=name,
        gpu=gpu,
        gpus=gpus,
        vcpus=vcpus,
        memory_mib=memory_gib * 1024,
        nvme_gb=nvme_gb,
        network_gbps=gbps,
        network_cards=cards,
        interfaces_per_card=interfaces,
        efa=efa,
        first_card_efa=efa >= cards,
        max_pods=pods,
    )
    for name, gpu, gpus, vcpus, memory_gib, nvme_gb, gbps, cards, interfaces, efa, pods in _TYPE_ROWS
)

# CPU types with 16 to 32 vCPUs and enough network to stage a checkpoint.
_SYSTEM_TYPES = tuple(
    InstanceType(
        name=name,
        vcpus=vcpus,
        memory_mib=memory_gib * 1024,
        network_gbps=gbps,
        interfaces_per_card=8,
        max_pods=234,
    )
    for name, vcpus, memory_gib, gbps in (
        ("c6in.4xlarge", 16, 32, 50),
        ("c6in.8xlarge", 32, 64, 50),
        ("m6in.4xlarge", 16, 64, 50),
        ("m6in.8xlarge", 32, 128, 50),
        ("c7i.4xlarge", 16, 32, 12.5),
        ("m7i.4xlarge", 16, 64, 12.5),
    )
)

GPU_TYPES: dict[str, InstanceType] = {kind.name: kind for kind in _GPU_TYPES}
SYSTEM_TYPES: dict[str, InstanceType] = {kind.name: kind for kind in _SYSTEM_TYPES}
