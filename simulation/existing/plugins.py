"""Device plugins that the cluster's owner has installed before the stack comes."""

from __future__ import annotations

import json
from functools import partial

from simulation.control_plane.addons import ADDON_LABEL
from simulation.control_plane.api import Api, Json
from simulation.control_plane.processes import wait_until

WAIT_SECONDS = 60
CONFIG_MAP = "rdma-devices"
SHARED_RDMA = {
    "periodicUpdateInterval": 300,
    "configList": [
        {
            "resourceName": "hca_shared_devices_a",
            "rdmaHcaMax": 63,
            "selectors": {"vendors": ["15b3"], "linkTypes": ["infiniband"]},
        }
    ],
}
"""As in the plugin's README: 63 pods may share the adapters under `rdma/hca_shared_devices_a`."""

CONTAINERS = {"nvidia": "nvidia-device-plugin-ctr", "rdma": "k8s-rdma-shared-dp-ds"}
"""The containers by which `control_plane.devices` knows the plugins."""


def install(api: Api, names: tuple[str, ...]) -> None:
    """Installs the plugins of CONTAINERS that `names` has, and waits until they run on every node."""
    if "rdma" in names:
        data = {"config.json": json.dumps(SHARED_RDMA)}
        path = f"/api/v1/namespaces/kube-system/configmaps/{CONFIG_MAP}"
        api.apply(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(CONFIG_MAP), "data": data})
    for name in names:
        path = f"/apis/apps/v1/namespaces/kube-system/daemonsets/owners-{name}-plugin"
        api.apply(path, _daemon(name))
        wait_until(f"the {name} plugin runs", partial(_runs, api, path), seconds=WAIT_SECONDS)


def _daemon(name: str) -> Json:
    labels = {"app": f"owners-{name}-plugin"}
    pod: Json = {
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": CONTAINERS[name], "image": f"simulation/{name}"}],
    }
    if name == "rdma":
        pod["volumes"] = [{"name": "config", "configMap": {"name": CONFIG_MAP}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _metadata(f"owners-{name}-plugin"),
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _metadata(name: str) -> Json:
    return {"name": name, "namespace": "kube-system", "labels": {ADDON_LABEL: "owner"}}


def _runs(api: Api, path: str) -> bool:
    status = api.get(path).get("status", {})
    return bool(status.get("numberReady", 0) == status.get("desiredNumberScheduled", -1) > 0)
