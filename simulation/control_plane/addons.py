"""EKS add-ons, each by the objects that others notice: daemons, deployments, the CSI driver's registration.

Proves that a stack's nodes leave room and tolerations for them, and that those which need a node without
taints have one. Proves nothing of what add-ons do: no pod network, service address, DNS, credentials or mount
comes from them.
"""

from __future__ import annotations

import http
from collections.abc import Iterator
from functools import partial

from simulation.control_plane.api import Api, ApiError, Json
from simulation.control_plane.errors import ControlPlaneError
from simulation.control_plane.processes import wait_until
from simulation.control_plane.state import connect

ADDON_LABEL = "simulation/eks-addon"
"""Marks every object of an add-on, with the add-on's name."""

WAIT_SECONDS = 30
"""How long an add-on may stay without a node that runs it; EKS itself waits for 20 minutes."""

ANY_TAINT: list[Json] = [{"operator": "Exists"}]
CRITICAL_ONLY: list[Json] = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


def install_addon(name: str) -> None:
    """Creates the add-on's objects, or does nothing to those that are there, and waits until its pods run.

    Raises ControlPlaneError for an unknown add-on, or if no node runs its pods in time: EKS calls that
    DEGRADED.
    """
    api = connect()
    for path, body in _objects(name):
        labelled = body | {"metadata": body["metadata"] | {"labels": {ADDON_LABEL: name}}}
        api.apply(path, labelled)
    for path, _ in _objects(name):
        try:
            wait_until(f"{path} runs", partial(_is_complete, api, path), seconds=WAIT_SECONDS)
        except ControlPlaneError:
            raise ControlPlaneError(
                f"Add-on {name} is DEGRADED: no node has run {path.rpartition('/')[2]} for {WAIT_SECONDS} s. "
                "Create it after a node group whose nodes have no taint that it does not tolerate."
            ) from None


def remove_addon(name: str) -> None:
    """Deletes the add-on's objects and waits until they and their pods are gone.

    Raises ControlPlaneError if unknown.
    """
    api = connect()
    for path, _ in _objects(name):
        api.delete(path, propagationPolicy="Foreground")
    for path, _ in _objects(name):
        wait_until(f"{path} is gone", partial(_is_gone, api, path), seconds=WAIT_SECONDS)


def _objects(name: str) -> Iterator[tuple[str, Json]]:
    """Path and body of each object of the add-on."""
    if name not in ADDONS:
        raise ControlPlaneError(f"The stand-in has no add-on {name!r}. Known are: {', '.join(ADDONS)}.")
    for kind, object_name, tolerations in ADDONS[name]:
        if kind == "CSIDriver":
            yield _csi_driver(object_name)
        else:
            yield _workload(kind, object_name, tolerations)


ADDONS: dict[str, list[tuple[str, str, list[Json]]]] = {
    "vpc-cni": [("DaemonSet", "aws-node", ANY_TAINT)],
    "kube-proxy": [("DaemonSet", "kube-proxy", ANY_TAINT)],
    "eks-pod-identity-agent": [("DaemonSet", "eks-pod-identity-agent", ANY_TAINT)],
    "coredns": [("Deployment", "coredns", CRITICAL_ONLY)],
    "metrics-server": [("Deployment", "metrics-server", CRITICAL_ONLY)],
    "eks-node-monitoring-agent": [("DaemonSet", "eks-node-monitoring-agent", ANY_TAINT)],
    "aws-fsx-csi-driver": [
        ("CSIDriver", "fsx.csi.aws.com", []),
        ("Deployment", "fsx-csi-controller", CRITICAL_ONLY),
        ("DaemonSet", "fsx-csi-node", ANY_TAINT),
    ],
}
"""Kind, name and tolerations of what each add-on is visible by; workloads stand in kube-system."""

REPLICAS = 2
REQUESTS = {"cpu": "50m", "memory": "64Mi"}


def _csi_driver(name: str) -> tuple[str, Json]:
    body = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": name},
        # As in the driver's own manifest: Lustre needs no attachment, so pods do not wait for one.
        "spec": {"attachRequired": False, "fsGroupPolicy": "ReadWriteOnceWithFSType"},
    }
    return f"/apis/storage.k8s.io/v1/csidrivers/{name}", body


def _workload(kind: str, name: str, tolerations: list[Json]) -> tuple[str, Json]:
    selector = {"k8s-app": name}
    container = {"name": name, "image": f"simulation/{name}", "resources": {"requests": REQUESTS}}
    pod = {
        "priorityClassName": "system-node-critical",
        "tolerations": tolerations,
        "containers": [container],
    }
    body: Json = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": selector}, "spec": pod},
        },
    }
    if kind == "Deployment":
        body["spec"]["replicas"] = REPLICAS
    return f"/apis/apps/v1/namespaces/kube-system/{kind.lower()}s/{name}", body


def _is_complete(api: Api, path: str) -> bool:
    """Whether every pod that is wanted is ready; a daemon without nodes wants none."""
    body = api.get(path)
    if body["kind"] == "CSIDriver":
        return True
    status = body.get("status", {})
    if status.get("observedGeneration", 0) < body["metadata"]["generation"]:
        return False
    if body["kind"] == "Deployment":
        return bool(status.get("availableReplicas", 0) >= body["spec"]["replicas"])
    return bool(status.get("numberReady", 0) >= status.get("desiredNumberScheduled", 0))


def _is_gone(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError as error:
        if error.status == http.HTTPStatus.NOT_FOUND:
            return True
        raise
    return False
