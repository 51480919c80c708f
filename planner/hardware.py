"""The table of EC2 instance types: GPUs, memory, disks, network cards, EFA interfaces and reference prices.

Figures: aws/karpenter-provider-aws v1.14 (instance types and us-east-1 Linux on-demand prices generated 2026-07-20)
and aws/amazon-vpc-cni-k8s (ENI limits, max pods). A price that no source gave is None: unknown, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

PRICE_REGION = "us-east-1"
PRICE_DATE = "2026-07-20"
PRICE_SOURCE = "aws/karpenter-provider-aws zz_generated.pricing_aws.go"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU. `memory_mib` is what EC2 lists; `usable_gib` is what CUDA reports, as printed in vLLM logs."""

    name: str
    memory_mib: int
    usable_gib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocatable:
    """What Kubernetes may hand out on a node, as observed on a real one."""

    cpu_millis: int
    memory_gib: float
    hugepages_2mi_mib: int
    ephemeral_tb: float
    pods: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """An EC2 instance type. `usd_per_hour` is the on-demand Linux price in `PRICE_REGION`, None if unknown.

    `first_card_efa`: whether network card 0 carries an EFA interface (p6-b300's does not).
    """

    name: str
    gpu: Gpu | None = None
    gpus: int = 0
    vcpus: int
    memory_mib: int
    nvme_gb: int = 0
    network_gbps: float
    network_cards: int = 1
    interfaces_per_card: int
    efa: int = 0
    first_card_efa: bool = True
    max_pods: int
    usd_per_hour: float | None = None
    allocatable: Allocatable | None = None

    @property
    def memory_gib(self) -> float:
        """RAM in GiB."""
        return self.memory_mib / 1024


A100_40 = Gpu(name="A100 40 GB", memory_mib=40_960, usable_gib=39.39)
A100_80 = Gpu(name="A100 80 GB", memory_mib=81_920, usable_gib=79.25)
H100 = Gpu(name="H100 80 GB", memory_mib=81_920, usable_gib=79.65)
H200 = Gpu(name="H200 141 GB", memory_mib=144_384, usable_gib=139.80)
B200 = Gpu(name="B200 180 GB", memory_mib=183_359, usable_gib=178.35)
B300 = Gpu(name="B300 270 GB", memory_mib=275_040, usable_gib=267.6)
L40S = Gpu(name="L40S 48 GB", memory_mib=45_776, usable_gib=44.39)
L4 = Gpu(name="L4 24 GB", memory_mib=22_888, usable_gib=22.03)
RTX_PRO_6000 = Gpu(name="RTX PRO 6000 96 GB", memory_mib=98_304, usable_gib=94.97)

P5_ALLOCATABLE = Allocatable(
    cpu_millis=191_450,
    memory_gib=1957.3,
    hugepages_2mi_mib=42_242,
    ephemeral_tb=27.36,
    pods=100,
    source="awslabs/awsome-distributed-ai mosaicml-composer/stable-diffusion README (observed on EKS)",
)

_GPU_TYPES = (
    InstanceType(
        name="p5.48xlarge", gpu=H100, gpus=8, vcpus=192, memory_mib=2_097_152, nvme_gb=30_400, network_gbps=3200,
        network_cards=32, interfaces_per_card=2, efa=32, max_pods=100, usd_per_hour=55.04, allocatable=P5_ALLOCATABLE,
    ),
    InstanceType(
        name="p5e.48xlarge", gpu=H200, gpus=8, vcpus=192, memory_mib=2_097_152, nvme_gb=30_400, network_gbps=3200,
        network_cards=32, interfaces_per_card=2, efa=32, max_pods=100,
    ),
    InstanceType(
        name="p5en.48xlarge", gpu=H200, gpus=8, vcpus=192, memory_mib=2_097_152, nvme_gb=30_400, network_gbps=3200,
        network_cards=16, interfaces_per_card=4, efa=16, max_pods=198, usd_per_hour=63.296,
    ),
    InstanceType(
        name="p5.4xlarge", gpu=H100, gpus=1, vcpus=16, memory_mib=262_144, nvme_gb=3800, network_gbps=100,
        interfaces_per_card=4, efa=1, max_pods=118, usd_per_hour=6.88,
    ),
    InstanceType(
        name="p4d.24xlarge", gpu=A100_40, gpus=8, vcpus=96, memory_mib=1_179_648, nvme_gb=8000, network_gbps=400,
        network_cards=4, interfaces_per_card=15, efa=4, max_pods=737, usd_per_hour=21.957642,
    ),
    InstanceType(
        name="p4de.24xlarge", gpu=A100_80, gpus=8, vcpus=96, memory_mib=1_179_648, nvme_gb=8000, network_gbps=400,
        network_cards=4, interfaces_per_card=15, efa=4, max_pods=737, usd_per_hour=27.447,
    ),
    InstanceType(
        name="p6-b200.48xlarge", gpu=B200, gpus=8, vcpus=192, memory_mib=2_097_152, nvme_gb=30_400, network_gbps=3200,
        network_cards=8, interfaces_per_card=4, efa=8, max_pods=198, usd_per_hour=113.93,
    ),
    InstanceType(
        name="p6-b300.48xlarge", gpu=B300, gpus=8, vcpus=192, memory_mib=4_194_304, nvme_gb=30_400, network_gbps=6400,
        network_cards=17, interfaces_per_card=4, efa=16, first_card_efa=False, max_pods=198, usd_per_hour=142.416,
    ),
    InstanceType(
        name="g6e.48xlarge", gpu=L40S, gpus=8, vcpus=192, memory_mib=1_572_864, nvme_gb=7600, network_gbps=400,
        network_cards=4, interfaces_per_card=10, efa=4, max_pods=492, usd_per_hour=30.13,
    ),
    InstanceType(
        name="g6e.12xlarge", gpu=L40S, gpus=4, vcpus=48, memory_mib=393_216, nvme_gb=3800, network_gbps=100,
        interfaces_per_card=10, efa=1, max_pods=292, usd_per_hour=10.49,
    ),
    InstanceType(
        name="g6.48xlarge", gpu=L4, gpus=8, vcpus=192, memory_mib=786_432, nvme_gb=7520, network_gbps=100,
        interfaces_per_card=15, efa=1, max_pods=737, usd_per_hour=13.35,
    ),
    InstanceType(
        name="g6.12xlarge", gpu=L4, gpus=4, vcpus=48, memory_mib=196_608, nvme_gb=3760, network_gbps=40,
        interfaces_per_card=8, efa=1, max_pods=234, usd_per_hour=4.60,
    ),
    InstanceType(
        name="g7e.48xlarge", gpu=RTX_PRO_6000, gpus=8, vcpus=192, memory_mib=2_097_152, nvme_gb=15_200,
        network_gbps=1600, network_cards=4, interfaces_per_card=10, efa=4, max_pods=632, usd_per_hour=33.14,
    ),
)  # fmt: skip

_SYSTEM_TYPES = (
    InstanceType(
        name="c6in.4xlarge", vcpus=16, memory_mib=32_768, network_gbps=50, interfaces_per_card=8, max_pods=234
    ),
    InstanceType(
        name="m6in.4xlarge", vcpus=16, memory_mib=65_536, network_gbps=50, interfaces_per_card=8, max_pods=234
    ),
)

GPU_TYPES: dict[str, InstanceType] = {kind.name: kind for kind in _GPU_TYPES}
SYSTEM_TYPES: dict[str, InstanceType] = {kind.name: kind for kind in _SYSTEM_TYPES}
