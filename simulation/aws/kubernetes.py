"""The Kubernetes cluster behind the simulated EKS: what AWS resources do to it.

The cluster itself is `simulation.control_plane`, which a preview never starts. `SIMULATE_KUBERNETES=0` leaves
it out altogether, for tests of the AWS graph alone.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from simulation import control_plane
from simulation.aws.errors import AwsError
from simulation.aws.lookups import instance_type
from simulation.aws.resources.common import CLUSTER, NODE_GROUP, SUBNET
from simulation.aws.store import View
from simulation.aws.values import Properties, at, values_at
from simulation.aws.versions import DEFAULT_KUBERNETES
from simulation.control_plane import ClusterAccess, NodeGroupSpec

VARIABLE = "SIMULATE_KUBERNETES"
_ADDON = "aws:eks/addon:Addon"
_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}


class Cluster(Protocol):
    """What the AWS side asks of the Kubernetes side."""

    def start(self, cluster: str, kubernetes_version: str) -> ClusterAccess: ...
    def leftovers(self) -> list[str]: ...
    def stop(self) -> None: ...
    def install_addon(self, name: str) -> None: ...
    def remove_addon(self, name: str) -> None: ...
    def scale_nodes(self, spec: NodeGroupSpec) -> None: ...
    def remove_nodes(self, name: str) -> None: ...


class NoKubernetes:
    """No cluster at all: the AWS graph alone. Its endpoint answers nobody, its authority has thrown its key away."""

    def start(self, cluster: str, kubernetes_version: str) -> ClusterAccess:  # noqa: ARG002
        authority = (Path(__file__).parent / "nobody.pem").read_bytes()
        return ClusterAccess(endpoint="https://127.0.0.1:1", certificate_authority=base64.b64encode(authority).decode())

    def leftovers(self) -> list[str]:
        return []

    def stop(self) -> None: ...
    def install_addon(self, name: str) -> None: ...
    def remove_addon(self, name: str) -> None: ...
    def scale_nodes(self, spec: NodeGroupSpec) -> None: ...
    def remove_nodes(self, name: str) -> None: ...


def from_environment() -> Cluster:
    """The control plane, or none if SIMULATE_KUBERNETES is 0."""
    return NoKubernetes() if os.environ.get(VARIABLE) == "0" else control_plane


Deed = Callable[[Cluster], Properties]
"""Something to do to the cluster, outside of any transaction; returns what the outputs need to know."""


def on_create(token: str, inputs: Properties, view: View) -> Deed:
    """What creating the AWS resource does to the cluster."""
    if token == CLUSTER:
        return lambda cluster: _start(cluster, inputs)
    if token == _ADDON:
        return _silent(lambda cluster: cluster.install_addon(inputs["addonName"]))
    if token == NODE_GROUP:
        nodes = _nodes(inputs, view)
        return _silent(lambda cluster: _first_nodes(cluster, nodes))
    return lambda _: {}


def on_update(token: str, inputs: Properties, view: View) -> Deed:
    """What updating the AWS resource does to the cluster: only node groups reach it."""
    if token != NODE_GROUP:
        return lambda _: {}
    nodes = _nodes(inputs, view)
    return _silent(lambda cluster: cluster.scale_nodes(nodes))


def on_delete(token: str, state: Properties) -> Deed:
    """What deleting the AWS resource does to the cluster."""
    if token == CLUSTER:
        return _silent(_stop)
    if token == NODE_GROUP:
        return _silent(lambda cluster: cluster.remove_nodes(state["nodeGroupName"]))
    if token == _ADDON:
        return _silent(lambda cluster: cluster.remove_addon(state["addonName"]))
    return lambda _: {}


def _silent(deed: Callable[[Cluster], None]) -> Deed:
    def run(cluster: Cluster) -> Properties:
        deed(cluster)
        return {}

    return run


def _start(cluster: Cluster, inputs: Properties) -> Properties:
    access = cluster.start(inputs["name"], at(inputs, "version", DEFAULT_KUBERNETES))
    return {"endpoint": access.endpoint, "certificateAuthority": access.certificate_authority}


def _first_nodes(cluster: Cluster, nodes: NodeGroupSpec) -> None:
    try:
        cluster.scale_nodes(nodes)
    except Exception:
        cluster.remove_nodes(nodes.name)  # the next attempt bears another generated name
        raise


def _stop(cluster: Cluster) -> None:
    left = cluster.leftovers()
    if left:
        raise AwsError(
            "SimulatedLeftovers",
            f"The cluster still holds {len(left)} objects that the stack has made: "
            f"{', '.join(left[:10])}. In AWS "
            "they would go with the cluster, but what they hold (volumes, load balancers, network "
            "interfaces) would stay.",
        )
    cluster.stop()


def _nodes(inputs: Properties, view: View) -> NodeGroupSpec:
    name, capacity = inputs["nodeGroupName"], at(inputs, "capacityType", "ON_DEMAND")
    subnet = view.get(SUBNET, at(inputs, "subnetIds[]", ""))
    taints = values_at(inputs, "taints[]")
    return NodeGroupSpec(
        name=name,
        instance_type=instance_type(view, inputs),
        count=int(at(inputs, "scalingConfig.desiredSize", 0)),
        labels={
            **inputs.get("labels", {}),
            "eks.amazonaws.com/nodegroup": name,
            "eks.amazonaws.com/capacityType": capacity,
        },
        taints=tuple((taint["key"], at(taint, "value", ""), _EFFECTS[taint["effect"]]) for taint in taints),
        zone=subnet.state["availabilityZone"] if subnet else "",
    )
