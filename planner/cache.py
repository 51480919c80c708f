"""How fast weights come into the cache and out of it, by the kind of cache. Rates in bytes per second."""

from __future__ import annotations

from planner.hardware import InstanceType
from planner.models import Model
from planner.settings import Deployment
from planner.weight_settings import ClaimWeights, FsxWeights, HubSource, NvmeWeights, Start

# A node has addresses on one network card alone, and a card carries 100 Gb/s (EC2 user guide, efa-acc-inst-types).
CARD_BYTES_PER_SECOND = 12.5e9
# What eight NVMe disks gave vLLM's loader: 145 GB in 20.2 s, cold (vllm-project/vllm#52462).
NVME_READ_BYTES_PER_SECOND = 7.2e9
# Two clouds' nodes wrote a download at 2.9 and 3.1 GB/s (marin-community/marin#7136; Azure GB300 walkthrough).
NVME_WRITE_BYTES_PER_SECOND = 2.9e9

# Scratch space of a download on its way to a bucket: gp3 gives 125 MiB/s for nothing, the Hub sends up to 516 MB/s.
INCLUDED_MIB_PER_SECOND = 125
SCRATCH_MIB_PER_SECOND = 500


def model_directory(settings: Deployment, model: Model) -> str:
    """Directory of the checkpoint below the mount: as staging names it, Kimi-K2.5-4d01dfe0332d, or the claim's own."""
    weights = settings.weights
    own = weights.directory if isinstance(weights, ClaimWeights) else None
    return own or f"{model.repository.rpartition('/')[2]}-{weights.revision[:12]}"


def start(settings: Deployment, purchase: str) -> Start:
    """When the GPU nodes are made, unless told otherwise: on demand once the weights are there, else at once.

    Nodes of a reservation or a capacity block are paid for anyway.
    """
    weights = settings.weights
    chosen = None if isinstance(weights, ClaimWeights) else weights.start
    return chosen or ("after_staging" if purchase == "on_demand" else "overlap")


def staged_by_job(settings: Deployment) -> bool:
    """Whether a Job on CPU nodes fills the cache (or the bucket that nodes fill theirs from)."""
    weights = settings.weights
    if isinstance(weights, ClaimWeights):
        return weights.directory is None
    if isinstance(weights, NvmeWeights):
        return through_bucket(settings)
    return True


def through_bucket(settings: Deployment) -> bool:
    """Whether the stack has a bucket: the Hub is asked once, each node reads from the region."""
    weights = settings.weights
    return (
        isinstance(weights, NvmeWeights) and isinstance(weights.source, HubSource) and settings.platform.kind == "eks"
    )


def read_seconds(settings: Deployment, size: float, instance: InstanceType) -> float:
    """How long all nodes together take to read a checkpoint of `size` bytes into GPU memory."""
    weights = settings.weights
    if isinstance(weights, NvmeWeights):
        return size / NVME_READ_BYTES_PER_SECOND
    each = size / node_bytes_per_second(instance)
    if isinstance(weights, FsxWeights):
        return max(settings.gpu_nodes.count * size / fsx_bytes_per_second(weights), each)
    return each


def fill_seconds(settings: Deployment, size: float, instance: InstanceType) -> float:
    """How long each node takes to fill its disks; 0 where all share one copy."""
    if not isinstance(settings.weights, NvmeWeights):
        return 0.0
    return size / min(NVME_WRITE_BYTES_PER_SECOND, node_bytes_per_second(instance))


def node_bytes_per_second(instance: InstanceType) -> float:
    """What one node reads over the network."""
    return min(CARD_BYTES_PER_SECOND, instance.network_gbps * 1e9 / 8)


def fsx_bytes_per_second(weights: FsxWeights) -> float:
    """Disk throughput of the file system, shared by all nodes."""
    return weights.capacity_gib / 1024 * weights.throughput_per_tib * 1e6
