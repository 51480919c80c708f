"""What would stay in the cluster if it were deleted now: all that neither it, its add-ons nor a Helm release
explains.

Deleting a real EKS cluster under live objects does not delete what they hold in AWS (load balancers,
volumes), and pods that still run hold nodes and mounts. So a stack has to take its objects away first; what
this reports, it forgot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from simulation import paths
from simulation.control_plane.addons import ADDON_LABEL
from simulation.control_plane.api import Api, Json
from simulation.control_plane.state import connect

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

DERIVED_KINDS = {
    "APIService",
    "ComponentStatus",
    "CSINode",
    "Endpoints",
    "EndpointSlice",
    "Event",
    "IPAddress",
    "Lease",
    "Node",
}
"""Kept by the control plane or by node groups on account of other objects, which are reported themselves."""

AUTOMATIC_OBJECTS = {"ServiceAccount": "default", "ConfigMap": "kube-root-ca.crt"}
"""Made by the controller manager in every namespace."""

CONTROLLER_MANAGER = "kube-controller-manager"


@dataclass(frozen=True, slots=True)
class _Object:
    kind: str
    body: Json

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def labels(self) -> dict[str, str]:
        found: dict[str, str] = self.body["metadata"].get("labels", {})
        return found

    @property
    def owners(self) -> list[str]:
        return [owner["uid"] for owner in self.body["metadata"].get("ownerReferences", [])]

    def __str__(self) -> str:
        metadata = self.body["metadata"]
        namespace = metadata.get("namespace")
        return f"{self.kind} {namespace}/{metadata['name']}" if namespace else f"{self.kind} {metadata['name']}"


def leftovers(*, cluster_stays: bool = False) -> list[str]:
    """Every object that is left over, as "Kind namespace/name" ("Kind name" outside namespaces), sorted.

    Not reported: what a fresh cluster holds, add-ons, nodes, what kind of objects the control plane derives
    from others, Helm-managed objects with Helm's release secrets, and what any of these owns. In a cluster that
    outlives the stack (`cluster_stays`) Helm's are left over too. Raises ControlPlaneError if no control plane runs.
    """
    objects = list(_objects(connect()))
    known = set(json.loads(_baseline_file().read_text()))
    by_uid = {one.uid: one for one in objects}
    excused = _is_the_clusters if cluster_stays else _goes_with_the_cluster
    return sorted(str(one) for one in objects if one.uid not in known and not _is_explained(one, by_uid, excused))


def record_baseline(api: Api) -> None:
    """Remembers what is in the cluster now as what a bare one holds, unless that is known already."""
    if _baseline_file().exists():
        return
    _baseline_file().write_text(json.dumps([one.uid for one in _objects(api)]))


def _is_explained(one: _Object, by_uid: dict[str, _Object], excused: Callable[[_Object], bool]) -> bool:
    if excused(one):
        return True
    return any(owner in by_uid and _is_explained(by_uid[owner], by_uid, excused) for owner in one.owners)


def _is_the_clusters(one: _Object) -> bool:
    return ADDON_LABEL in one.labels or _is_automatic(one)


def _goes_with_the_cluster(one: _Object) -> bool:
    return _is_the_clusters(one) or _is_helms(one)


def _is_helms(one: _Object) -> bool:
    release_record = one.kind == "Secret" and one.body.get("type") == "helm.sh/release.v1"
    return release_record or one.labels.get("app.kubernetes.io/managed-by") == "Helm"


def _is_automatic(one: _Object) -> bool:
    metadata = one.body["metadata"]
    if AUTOMATIC_OBJECTS.get(one.kind) == metadata["name"]:
        return True
    # The controllers' own accounts appear one by one while the controller manager starts, some after the
    # baseline.
    makers = {entry["manager"] for entry in metadata.get("managedFields", [])}
    return one.kind == "ServiceAccount" and makers == {CONTROLLER_MANAGER}


def _objects(api: Api) -> Iterator[_Object]:
    for path, kind in _listable(api):
        for body in api.items(path):
            yield _Object(kind, body)


def _listable(api: Api) -> Iterator[tuple[str, str]]:
    """Path and kind of every type of object that can be listed, in each group's preferred version."""
    for root in ("/api", "/apis"):
        for group in api.get(root, accept=DISCOVERY)["items"]:
            version = group["versions"][0]
            name = group["metadata"].get("name")
            base = f"{root}/{name}/{version['version']}" if name else f"{root}/{version['version']}"
            for resource in version.get("resources", []):
                kind = resource["responseKind"]["kind"]
                if "list" in resource["verbs"] and kind not in DERIVED_KINDS:
                    yield f"{base}/{resource['resource']}", kind


def _baseline_file() -> Path:
    return paths.control_plane() / "baseline.json"
