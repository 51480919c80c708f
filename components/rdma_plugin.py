"""The RDMA shared device plugin: every InfiniBand adapter of a node for one unit of one resource.

There is no chart of it; ConfigMap and DaemonSet follow its own manifests (Mellanox/k8s-rdma-shared-dev-plugin,
deployment/k8s/base). It gives a pod all adapters at once and isolates nothing, which one pod a node wants.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from pulumi import ResourceOptions
from pulumi_kubernetes.apps.v1 import DaemonSet
from pulumi_kubernetes.core.v1 import ConfigMap, PodSpecArgsDict

from planner.placement import Placement
from planner.platform_settings import InfinibandFabric

NAMESPACE = "kube-system"
LABELS = {"name": "rdma-shared-dp-ds"}
MELLANOX = "15b3"
POD_SLOTS = 63
"""How many pods may hold the adapters at once; the gate's and the gang's take turns."""


def plugin_config(fabric: InfinibandFabric) -> str:
    """`config.json`: InfiniBand adapters alone, so that an Ethernet ConnectX stays out of the set."""
    prefix, _, name = fabric.resource.partition("/")
    entry = {
        "resourceName": name,
        "resourcePrefix": prefix,
        "rdmaHcaMax": POD_SLOTS,
        "selectors": {"vendors": [MELLANOX], "linkTypes": ["infiniband"]},
    }
    return json.dumps({"periodicUpdateInterval": 300, "configList": [entry]}, sort_keys=True)


def rdma_plugin(name: str, fabric: InfinibandFabric, placement: Placement, options: ResourceOptions) -> DaemonSet:
    """The plugin on the GPU nodes. Privileged and on the host's network, as it registers with the kubelet."""
    config = plugin_config(fabric)
    devices = ConfigMap(
        f"{name}-devices",
        metadata={"name": "rdma-devices", "namespace": NAMESPACE},
        data={"config.json": config},
        opts=options,
    )
    return DaemonSet(
        f"{name}-plugin",
        metadata={"name": "rdma-shared-dp-ds", "namespace": NAMESPACE},
        spec={
            "selector": {"match_labels": LABELS},
            "template": {
                # The plugin reads its file once: a changed one needs new pods.
                "metadata": {
                    "labels": LABELS,
                    "annotations": {"vllm-multinode/config": hashlib.sha256(config.encode()).hexdigest()[:12]},
                },
                "spec": _pod(devices, fabric, placement),
            },
        },
        opts=options,
    )


def _pod(devices: ConfigMap, fabric: InfinibandFabric, placement: Placement) -> PodSpecArgsDict:
    folders = {
        "device-plugin": "/var/lib/kubelet/device-plugins",
        "plugins-registry": "/var/lib/kubelet/plugins_registry",
        "devs": "/dev",
    }
    mounts = [{"name": name, "mount_path": path} for name, path in folders.items()]
    mounts.append({"name": "config", "mount_path": "/k8s-rdma-shared-dev-plugin"})
    volumes: list[dict[str, Any]] = [{"name": name, "host_path": {"path": path}} for name, path in folders.items()]
    config = {"name": "config", "config_map": {"name": devices.metadata.name}}
    return {
        "host_network": True,
        "priority_class_name": "system-node-critical",
        "node_selector": dict(placement.gpu_labels),
        "tolerations": cast("Any", list(placement.gpu_tolerations)),
        "containers": [
            {
                "name": "k8s-rdma-shared-dp-ds",
                "image": fabric.plugin_image,
                "security_context": {"privileged": True},
                "resources": {"requests": {"cpu": "100m", "memory": "50Mi"}, "limits": {"memory": "100Mi"}},
                "volume_mounts": cast("Any", mounts),
            }
        ],
        "volumes": cast("Any", [*volumes, config]),
    }
