"""What joins the GPU nodes: the resource that pods ask for, NCCL's environment, and how fast it should be."""

from __future__ import annotations

from dataclasses import dataclass

from planner.hardware import InstanceType
from planner.platform_settings import EfaFabric, Fabric, InfinibandFabric
from planner.settings import Deployment

EFA_RESOURCE = "vpc.amazonaws.com/efa"

# Shares of what the network cards could carry. Two p5 measured 487 of 750 GB/s at 16 GiB and 466 at 4 GiB
# (awslabs/awsome-distributed-ai, nccl-tests), eight NDR nodes 366 to 387 (coreweave/nccl-tests): lost rails show below
# 0.47. TCP over one card reaches 0.03, one of eight rails 0.125: below 0.2 something essential is missing.
WARN_SHARE = 0.47
FAIL_SHARE = 0.2
# One node of 8 H100 over NVLink: 460 GB/s is Azure's gate (azurehpc-health-checks, nd96isr_h100_v5.conf).
NVLINK_WARN_BELOW = 400.0
NVLINK_GPUS = ("h100-80gb", "h200-141gb", "b200-180gb", "b300-270gb")


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricPlan:
    """`resource` x `quantity`: what a pod asks for; None where there is no fabric. `nics`: devices a node must show.

    `warn_below`, `fail_below`: bus bandwidth of an all-reduce over all GPUs in GB/s; 0 is never. `tested`: whether the
    fabric test runs before serving; one GPU has nothing to test.
    """

    kind: str
    resource: str | None
    quantity: int
    nics: int
    warn_below: float
    fail_below: float
    environment: tuple[tuple[str, str], ...]
    tested: bool

    @property
    def requests(self) -> dict[str, str]:
        """The fabric's part of a pod's requests and limits."""
        return {self.resource: str(self.quantity)} if self.resource else {}


def fabric_plan(settings: Deployment, instance: InstanceType) -> FabricPlan:
    """The fabric of a stack as configured."""
    fabric = settings.fabric
    warn, fail = _thresholds(fabric, instance, settings.gpu_nodes.count)
    resource, quantity, nics = None, 0, 0
    # Ranks find each other over the pods' own network.
    environment: tuple[tuple[str, str], ...] = (("NCCL_SOCKET_IFNAME", "eth0"), ("GLOO_SOCKET_IFNAME", "eth0"))
    if isinstance(fabric, EfaFabric) and instance.efa:
        resource, quantity, nics = EFA_RESOURCE, instance.efa, instance.efa
        # Without the fabric NCCL's start fails, instead of falling back to TCP unnoticed. No huge pages are requested.
        environment += (("NCCL_NET", "OFI"), ("FI_EFA_USE_HUGE_PAGE", "0"))
    if isinstance(fabric, InfinibandFabric):
        resource, quantity, nics = fabric.resource, fabric.quantity, fabric.adapters
        hcas = (("NCCL_IB_HCA", _exact(fabric.hcas)),) if fabric.hcas else ()
        environment += (("NCCL_NET", "IB"), *hcas)
    return FabricPlan(
        kind=fabric.kind,
        resource=resource,
        quantity=quantity,
        nics=nics,
        warn_below=warn,
        fail_below=fail,
        environment=environment,
        tested=fabric.gate != "skip" and settings.gpu_nodes.count * instance.gpus > 1,
    )


def default_thresholds(fabric: Fabric, instance: InstanceType, nodes: int) -> tuple[float, float]:
    """Warn below, fail below: by the speed of the network cards over nodes, by NVLink inside one."""
    if nodes < 2:
        linked = instance.gpu is not None and instance.gpu.key in NVLINK_GPUS and instance.gpus == 8
        return (NVLINK_WARN_BELOW if linked else 0.0), 0.0
    ranks = nodes * instance.gpus
    gbps = fabric.adapters * fabric.adapter_gbps if isinstance(fabric, InfinibandFabric) else instance.network_gbps
    # What a GPU's share of the cards carries, as bus bandwidth (stas00/ml-engineering, network/README.md).
    limit = gbps / 8 / instance.gpus * (ranks - 1) / (nodes - 1)
    return round(limit * WARN_SHARE), round(limit * FAIL_SHARE)


def _thresholds(fabric: Fabric, instance: InstanceType, nodes: int) -> tuple[float, float]:
    warn, fail = default_thresholds(fabric, instance, nodes)
    fail = fail if fabric.fail_below is None else fabric.fail_below
    return max(warn, fail) if fabric.warn_below is None else fabric.warn_below, fail


def _exact(hcas: str) -> str:
    """NCCL takes names for prefixes unless told otherwise: mlx5_1 is mlx5_10 too (NCCL user guide, env)."""
    return hcas if hcas[0] in "=^" else f"={hcas}"
