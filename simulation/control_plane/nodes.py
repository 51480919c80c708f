"""The nodes of a managed node group: fake ones with the names, labels, taints and capacity that EKS gives.

Proves what the scheduler makes of labels, taints and capacity. Proves nothing about booting, joining, AMIs,
user data or network interfaces. GPUs and EFA appear when the device plugins run (`node_agent`).
"""

from __future__ import annotations

import http
import json
from dataclasses import dataclass

from simulation.control_plane.api import Api, ApiError, Json
from simulation.control_plane.devices import hardware
from simulation.control_plane.errors import ControlPlaneError
from simulation.control_plane.instance_types import instance_type
from simulation.control_plane.kwok import NODE_ANNOTATION
from simulation.control_plane.processes import wait_until
from simulation.control_plane.state import connect

GROUP_LABEL = "eks.amazonaws.com/nodegroup"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
GROUP_LABEL_KEYS = "simulation/group-labels"
"""Annotation that keeps which labels came from the group, so that one that it drops leaves the node too."""

NOT_READY_TAINT = "node.kubernetes.io/not-ready"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
WAIT_SECONDS = 60
FIRST_HOST = 11
LAST_HOST = 8191


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupSpec:
    """What a node group asks for."""

    name: str
    instance_type: str
    count: int
    labels: dict[str, str]
    taints: tuple[tuple[str, str, str], ...]
    """(key, value, effect), the effect as Kubernetes spells it: NoSchedule, PreferNoSchedule, NoExecute."""
    zone: str
    """Availability zone, for example us-east-1a."""


def scale_nodes(spec: NodeGroupSpec) -> None:
    """Makes or deletes nodes until the group has `spec.count` Ready ones with its labels and taints.

    Raises ControlPlaneError for an unknown instance type or effect, or if no control plane runs.
    """
    _check(spec)
    api = connect()
    nodes = _nodes_of(api, spec.name)
    for node in nodes[spec.count :]:
        _remove(api, node)
    for node in nodes[: spec.count]:
        _update(api, node, spec)
    for _ in range(spec.count - len(nodes)):
        _create(api, spec)
    wait_until(
        f"{spec.count} nodes of {spec.name} are Ready",
        lambda: sum(is_ready(node) for node in _nodes_of(api, spec.name)) == spec.count,
        seconds=WAIT_SECONDS,
    )


def remove_nodes(name: str) -> None:
    """Drains and deletes every node of the group and waits until they and their pods are gone."""
    api = connect()
    for node in _nodes_of(api, name):
        _remove(api, node)


def _check(spec: NodeGroupSpec) -> None:
    instance_type(spec.instance_type)
    for key, _, effect in spec.taints:
        if effect not in EFFECTS:
            raise ControlPlaneError(f"Taint {key}: effect {effect!r} is none of {', '.join(EFFECTS)}.")


def _nodes_of(api: Api, group: str) -> list[Json]:
    """Oldest first."""
    nodes = api.items("/api/v1/nodes", labelSelector=f"{GROUP_LABEL}={group}")
    return sorted(nodes, key=lambda node: (node["metadata"]["creationTimestamp"], node["metadata"]["name"]))


def _create(api: Api, spec: NodeGroupSpec) -> None:
    taken = {node["metadata"]["name"] for node in api.items("/api/v1/nodes")}
    for host in range(FIRST_HOST, LAST_HOST):
        address = f"10.0.{64 + host // 256}.{host % 256}"
        name = f"ip-{address.replace('.', '-')}.ec2.internal"
        if name in taken:
            continue
        try:
            api.create("/api/v1/nodes", _node(name, address, spec))
        except ApiError as error:
            # Another node group that scales at the same time took the name first.
            if error.status != http.HTTPStatus.CONFLICT:
                raise
        else:
            return


def _node(name: str, address: str, spec: NodeGroupSpec) -> Json:
    kind = instance_type(spec.instance_type)
    key, value = NODE_ANNOTATION
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": _standard_labels(name, spec) | spec.labels,
            "annotations": {key: value, GROUP_LABEL_KEYS: json.dumps(sorted(spec.labels))}
            | hardware(gpus=kind.gpus, efa_interfaces=kind.efa_interfaces),
        },
        "spec": {"providerID": f"aws:///{spec.zone}/i-{address.replace('.', '')}", "taints": _taints(spec)},
        "status": {
            "capacity": kind.capacity(),
            "allocatable": kind.allocatable(),
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "InternalDNS", "address": name},
                {"type": "Hostname", "address": name},
            ],
        },
    }


def _standard_labels(name: str, spec: NodeGroupSpec) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        INSTANCE_TYPE_LABEL: spec.instance_type,
        "topology.kubernetes.io/zone": spec.zone,
        "topology.kubernetes.io/region": spec.zone[:-1],
        GROUP_LABEL: spec.name,
    }


def _taints(spec: NodeGroupSpec) -> list[Json]:
    return [{"key": key, "value": value, "effect": effect} for key, value, effect in spec.taints]


def _update(api: Api, node: Json, spec: NodeGroupSpec) -> None:
    metadata = node["metadata"]
    dropped = set(json.loads(metadata["annotations"][GROUP_LABEL_KEYS])) - spec.labels.keys()
    # The control plane's own taints (not-ready, unschedulable) are not the group's to remove.
    system = [taint for taint in node["spec"].get("taints", []) if taint["key"].startswith("node.kubernetes.io/")]
    change = {
        "metadata": {
            "labels": dict.fromkeys(dropped) | spec.labels,
            "annotations": {GROUP_LABEL_KEYS: json.dumps(sorted(spec.labels))},
        },
        "spec": {"taints": system + _taints(spec)},
    }
    api.patch(_path(node), change)


def _remove(api: Api, node: Json) -> None:
    """Cordons, deletes the pods as a drain does (daemons excepted), then the node and what was left on it."""
    name = node["metadata"]["name"]
    api.patch(_path(node), {"spec": {"unschedulable": True}})
    for pod in _pods_on(api, name):
        if not _is_daemon(pod):
            api.delete(_pod_path(pod))
    wait_until(
        f"the pods of {name} are gone",
        lambda: all(_is_daemon(pod) for pod in _pods_on(api, name)),
        seconds=WAIT_SECONDS,
    )
    api.delete(_path(node))
    for pod in _pods_on(api, name):
        api.delete(_pod_path(pod), gracePeriodSeconds=0)
    wait_until(f"{name} is empty", lambda: not _pods_on(api, name), seconds=WAIT_SECONDS)


def _pods_on(api: Api, node: str) -> list[Json]:
    return api.items("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")


def _is_daemon(pod: Json) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", []))


def is_ready(node: Json) -> bool:
    """Whether the node is Ready and the control plane has noticed: until then a taint keeps pods off."""
    conditions = node["status"].get("conditions", [])
    reported = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return reported and all(taint["key"] != NOT_READY_TAINT for taint in node["spec"].get("taints", []))


def _path(node: Json) -> str:
    return f"/api/v1/nodes/{node['metadata']['name']}"


def _pod_path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
