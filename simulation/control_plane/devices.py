"""What device plugins offer on a node: nothing unless the plugin's pod is Ready there and the node has the hardware.

So tolerations, affinity and labels have to be right for a serving pod to be scheduled, and so does the RDMA plugin's
configuration. Whether a real plugin finds the devices is not proved.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import lru_cache

from simulation.control_plane.api import Api, ApiError, Json

HARDWARE = "simulation/hardware"
"""Annotation of a node: `gpus`, `efaInterfaces` and `infinibandAdapters` in JSON."""

GPU = "nvidia.com/gpu"
EFA = "vpc.amazonaws.com/efa"
RDMA_PREFIX = "rdma"
MELLANOX = "15b3"


def hardware(*, gpus: int = 0, efa_interfaces: int = 0, infiniband_adapters: int = 0) -> dict[str, str]:
    """The annotation of a node with so many devices."""
    has = {"gpus": gpus, "efaInterfaces": efa_interfaces, "infinibandAdapters": infiniband_adapters}
    return {HARDWARE: json.dumps(has)}


def provide(api: Api, pods: list[Json]) -> None:
    """Has every node offer the devices of the plugins that are Ready on it, and none of the others'."""
    config_map = lru_cache(lambda namespace, name: _config_map(api, namespace, name))
    for node in api.items("/api/v1/nodes"):
        name, allocatable = node["metadata"]["name"], node["status"].get("allocatable", {})
        has = json.loads(node["metadata"].get("annotations", {}).get(HARDWARE, "{}"))
        offers: dict[str, int] = {}
        for pod in pods:
            if has and pod["spec"].get("nodeName") == name and _is_ready(pod):
                offers |= _offers(pod, has, config_map)
        extended = {kind for kind in allocatable if "/" in kind}
        wanted = {kind: str(offers.get(kind, 0)) for kind in extended | offers.keys()}
        change = {kind: count for kind, count in wanted.items() if allocatable.get(kind, "0") != count}
        if change:
            api.patch(f"/api/v1/nodes/{name}/status", {"status": {"capacity": change, "allocatable": change}})


_Read = Callable[[str, str], Json]


def _offers(pod: Json, has: dict[str, int], config_map: _Read) -> dict[str, int]:
    """Extended resources by the plugin's container, whose name no value of its chart changes."""
    names = {container["name"] for container in pod["spec"]["containers"]}
    offers: dict[str, int] = {}
    if "nvidia-device-plugin-ctr" in names and has["gpus"]:
        offers[GPU] = has["gpus"]
    if "aws-efa-k8s-device-plugin" in names and has["efaInterfaces"]:
        offers[EFA] = has["efaInterfaces"]
    if "k8s-rdma-shared-dp-ds" in names and has["infinibandAdapters"]:
        offers |= shared_rdma(pod, config_map)
    return offers


def shared_rdma(pod: Json, config_map: _Read) -> dict[str, int]:
    """What Mellanox/k8s-rdma-shared-dev-plugin makes of its `config.json`: slots for pods, not adapters.

    A configuration that it could not read has the real plugin end; here nothing is offered.
    """
    mounted = [volume["configMap"]["name"] for volume in pod["spec"].get("volumes", []) if "configMap" in volume]
    maps = [config_map(pod["metadata"]["namespace"], name) for name in mounted]
    try:
        entries = [
            entry for one in maps for entry in json.loads(one.get("data", {}).get("config.json", "{}"))["configList"]
        ]
        return {
            f"{entry.get('resourcePrefix', RDMA_PREFIX)}/{entry['resourceName']}": int(entry["rdmaHcaMax"])
            for entry in entries
            if _selects_infiniband(entry.get("selectors", {}))
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"config.json of {', '.join(mounted)}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return {}


def _selects_infiniband(selectors: Json) -> bool:
    """Each list that is given must hold the adapter; a configuration without any selects nothing."""
    vendors, links = selectors.get("vendors"), selectors.get("linkTypes")
    named = any(selectors.values())
    return named and (not vendors or MELLANOX in vendors) and (not links or "infiniband" in links)


def _config_map(api: Api, namespace: str, name: str) -> Json:
    try:
        return api.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
    except ApiError:
        return {}


def _is_ready(pod: Json) -> bool:
    if "deletionTimestamp" in pod["metadata"]:
        return False
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))
