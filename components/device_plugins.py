"""The device plugins that turn GPUs and EFA interfaces into resources that pods can ask for.

Owns one Helm release each for the NVIDIA and the EFA device plugin, in kube-system. Drivers come with the node's AMI.
A plugin that the cluster has already is skipped (`charts.<plugin>.install: false`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pulumi import ComponentResource, Resource, ResourceOptions

from components.charts import EFA_DEVICE_PLUGIN, NVIDIA_DEVICE_PLUGIN, release
from components.cluster import Cluster
from planner.settings import Charts

GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
CRITICAL_TOLERATION = {"key": "CriticalAddonsOnly", "operator": "Exists"}


def nvidia_values() -> dict[str, Any]:
    """Values of `nvidia-device-plugin`; `tolerations` replaces the chart's list, so both stand here.

    `mofedEnabled` exposes every uverbs device and so takes EFA away from its plugin (NVIDIA/k8s-device-plugin#1692).
    """
    return {
        "mofedEnabled": False,
        "gfd": {"enabled": False},
        "tolerations": [CRITICAL_TOLERATION, GPU_TOLERATION],
    }


def efa_values() -> dict[str, Any]:
    """Values of `aws-efa-k8s-device-plugin`; without the toleration EFA never appears on tainted nodes."""
    return {"tolerations": [GPU_TOLERATION]}


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePluginsArgs:
    """`cluster`: the releases die with it, since a plugin holds nothing back."""

    charts: Charts
    cluster: Cluster
    nodes: Resource


class DevicePlugins(ComponentResource):
    """The NVIDIA and EFA device plugins."""

    def __init__(self, name: str, args: DevicePluginsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:DevicePlugins", name, None, opts)
        plugins = (
            (NVIDIA_DEVICE_PLUGIN, args.charts.nvidia_device_plugin, nvidia_values()),
            (EFA_DEVICE_PLUGIN, args.charts.efa_device_plugin, efa_values()),
        )
        for pinned, chosen, values in plugins:
            if chosen.install:
                release(
                    f"{name}-{pinned.name}",
                    pinned,
                    chosen,
                    values,
                    opts=ResourceOptions(parent=self, deleted_with=args.cluster.cluster, depends_on=[args.nodes]),
                )
        self.register_outputs({})
