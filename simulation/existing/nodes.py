"""The nodes of the existing cluster: fake ones, of no cloud, labelled and tainted as their owner likes."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulation.control_plane.api import Api, Json
from simulation.control_plane.devices import hardware
from simulation.control_plane.kwok import NODE_ANNOTATION
from simulation.control_plane.nodes import is_ready
from simulation.control_plane.processes import wait_until

WAIT_SECONDS = 60

GPU_CAPACITY = {"cpu": "192", "memory": "2Ti", "pods": "110", "ephemeral-storage": "28T"}
CPU_CAPACITY = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "2T"}
GPUS = 8
INFINIBAND_ADAPTERS = 8

INSTANCE_TYPE = "node.kubernetes.io/instance-type"

Taint = tuple[str, str, str]
"""Key, value, effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Two GPU nodes and two CPU nodes, and which device plugins somebody has installed there already."""

    gpu_labels: dict[str, str] = field(default_factory=lambda: {INSTANCE_TYPE: "h100-ib"})
    gpu_taints: tuple[Taint, ...] = (("nvidia.com/gpu", "present", "NoSchedule"),)
    plugins: tuple[str, ...] = ()


def make(api: Api, shape: Shape) -> None:
    """Makes the nodes and waits until they are Ready."""
    gpu_hardware = hardware(gpus=GPUS, infiniband_adapters=INFINIBAND_ADAPTERS)
    for number in (0, 1):
        api.create("/api/v1/nodes", _node(f"gpu-{number}", shape.gpu_labels, shape.gpu_taints, gpu_hardware))
        api.create("/api/v1/nodes", _node(f"cpu-{number}", {INSTANCE_TYPE: "cpu"}, (), {}))
    wait_until(
        "the nodes of the existing cluster are Ready",
        lambda: all(is_ready(node) for node in api.items("/api/v1/nodes")),
        seconds=WAIT_SECONDS,
    )


def _node(name: str, labels: dict[str, str], taints: tuple[Taint, ...], annotations: dict[str, str]) -> Json:
    key, value = NODE_ANNOTATION
    standard = {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
    capacity = GPU_CAPACITY if annotations else CPU_CAPACITY
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": standard | labels, "annotations": {key: value} | annotations},
        "spec": {"taints": [{"key": key, "value": value, "effect": effect} for key, value, effect in taints]},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
