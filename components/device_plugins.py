"""The device plugins that turn GPUs and fabric devices into resources that pods can ask for.

Owns one Helm release each for the NVIDIA and, with that fabric, the EFA device plugin; the RDMA shared device plugin
for InfiniBand is in `rdma_plugin.py`. Drivers come with the nodes. A plugin that the cluster has already is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pulumi import ComponentResource, Resource, ResourceOptions

from components.charts import EFA_DEVICE_PLUGIN, NVIDIA_DEVICE_PLUGIN, release
from components.rdma_plugin import rdma_plugin
from components.site import Site
from planner.placement import Placement
from planner.plan import Plan
from planner.platform_settings import EfaFabric, InfinibandFabric

CRITICAL_TOLERATION = {"key": "CriticalAddonsOnly", "operator": "Exists"}


def nvidia_values(placement: Placement) -> dict[str, Any]:
    """Values of `nvidia-device-plugin`; `tolerations` replaces the chart's list, so all stand here.

    The chart's own affinity asks for labels of node feature discovery: on nodes without them it starts no pod and says
    nothing. `mofedEnabled` exposes every uverbs device and so takes EFA away from its plugin
    (NVIDIA/k8s-device-plugin#1692).
    """
    return {
        "mofedEnabled": False,
        "gfd": {"enabled": False},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _on_gpu_nodes(placement)}},
        "tolerations": [CRITICAL_TOLERATION, *placement.gpu_tolerations],
    }


def _on_gpu_nodes(placement: Placement) -> dict[str, Any]:
    labels = [{"key": key, "operator": "In", "values": [value]} for key, value in placement.gpu_labels.items()]
    return {"nodeSelectorTerms": [{"matchExpressions": labels}]}


def efa_values(placement: Placement) -> dict[str, Any]:
    """Values of `aws-efa-k8s-device-plugin`; without the toleration EFA never appears on tainted nodes."""
    return {"tolerations": list(placement.gpu_tolerations)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePluginsArgs:
    """`site`: the releases die with it, since a plugin holds nothing back. `after`: the GPU nodes."""

    plan: Plan
    site: Site
    after: Sequence[Resource]


class DevicePlugins(ComponentResource):
    """The plugin for GPUs and the one for the fabric."""

    def __init__(self, name: str, args: DevicePluginsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:DevicePlugins", name, None, opts)
        settings, placement = args.plan.settings, args.plan.placement
        options = ResourceOptions(parent=self, deleted_with=args.site.lifetime, depends_on=list(args.after))
        plugins = [(NVIDIA_DEVICE_PLUGIN, settings.charts.nvidia_device_plugin, nvidia_values(placement))]
        if isinstance(settings.fabric, EfaFabric):
            plugins.append((EFA_DEVICE_PLUGIN, settings.charts.efa_device_plugin, efa_values(placement)))
        for pinned, chosen, values in plugins:
            if chosen.install:
                release(f"{name}-{pinned.name}", pinned, chosen, values, opts=options)
        if isinstance(settings.fabric, InfinibandFabric) and settings.fabric.install:
            rdma_plugin(f"{name}-rdma", settings.fabric, placement, options)
        self.register_outputs({})
