"""What a destroyed stack forgot is found, and nothing else."""

from __future__ import annotations

import pytest

from simulation.control_plane import install_addon, leftovers, remove_addon
from simulation.control_plane.api import Api
from tests.simulation.control_plane.objects import container, daemon, eventually, job, nodes, sets, workers

pytestmark = pytest.mark.slow


@pytest.fixture
def settled(api: Api) -> None:
    """Waits until what other tests made is gone; a namespace takes some seconds to end."""
    path = "/api/v1/namespaces"
    eventually("only the four of a bare cluster", lambda: len(api.items(path)) == 4)


@pytest.mark.usefixtures("settled")
def test_bare_cluster_has_none(api: Api) -> None:
    install_addon("coredns")
    try:
        assert nodes(api, "gpu")
        assert leftovers() == []
    finally:
        remove_addon("coredns")


def test_forgotten_objects_are_named(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    api.create(sets(namespace), workers("infer", 2))
    service = {"metadata": {"name": "client"}, "spec": {"ports": [{"port": 8000}]}}
    api.create(f"{path}/services", service | {"apiVersion": "v1", "kind": "Service"})
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"metadata": {"name": "weights"}, "spec": claim}
    api.create(f"{path}/persistentvolumeclaims", body | {"apiVersion": "v1", "kind": "PersistentVolumeClaim"})
    api.create(f"/apis/batch/v1/namespaces/{namespace}/jobs", job("stage"))
    eventually("the leader exists", lambda: f"Pod {namespace}/infer-0" in leftovers())
    found = leftovers()
    assert {
        f"Namespace {namespace}",
        f"LeaderWorkerSet {namespace}/infer",
        f"Service {namespace}/client",
        f"PersistentVolumeClaim {namespace}/weights",
        f"Job {namespace}/stage",
    } <= set(found)
    assert not [one for one in found if one.startswith(("ServiceAccount", "ConfigMap", "Event", "Node"))]


@pytest.mark.usefixtures("settled")
def test_what_helm_manages_is_helms(api: Api) -> None:
    daemons = "/apis/apps/v1/namespaces/kube-system/daemonsets"
    body = daemon("exporter", tolerations=[{"operator": "Exists"}], containers=[container()])
    api.create(daemons, body)
    try:
        eventually("its pods exist", lambda: any(one.startswith("Pod kube-system/exporter") for one in leftovers()))
        assert "DaemonSet kube-system/exporter" in leftovers()
        api.patch(f"{daemons}/exporter", {"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}}})
        assert leftovers() == []
    finally:
        api.delete(f"{daemons}/exporter", propagationPolicy="Foreground")
        eventually(
            "it is gone",
            lambda: not any("exporter" in pod["metadata"]["name"] for pod in api.items("/api/v1/pods")),
        )
