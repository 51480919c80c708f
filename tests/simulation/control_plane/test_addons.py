"""Add-ons need nodes that they can run on."""

from __future__ import annotations

import pytest

from simulation.control_plane import ControlPlaneError, addons, install_addon, remove_addon
from simulation.control_plane.api import Api

pytestmark = pytest.mark.slow


def test_csi_driver_registers_without_attachment(api: Api) -> None:
    path = "/apis/storage.k8s.io/v1/csidrivers"
    install_addon("aws-fsx-csi-driver")
    try:
        assert api.get(f"{path}/fsx.csi.aws.com")["spec"]["attachRequired"] is False
    finally:
        remove_addon("aws-fsx-csi-driver")
    assert api.items(path) == []
    assert api.items("/apis/apps/v1/namespaces/kube-system/daemonsets") == []


def test_daemons_reach_tainted_nodes(api: Api) -> None:
    install_addon("vpc-cni")
    try:
        assert api.get("/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node")["status"]["numberReady"] == 4
    finally:
        remove_addon("vpc-cni")


def test_dns_without_a_node_is_degraded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addons, "WAIT_SECONDS", 1)
    system = [node for node in api.items("/api/v1/nodes") if "taints" not in node["spec"]]
    for node in system:
        api.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"unschedulable": True}})
    try:
        with pytest.raises(ControlPlaneError, match="coredns is DEGRADED: no node"):
            install_addon("coredns")
    finally:
        for node in system:
            api.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"unschedulable": None}})
        remove_addon("coredns")


@pytest.mark.usefixtures("cluster")
def test_unknown_addon_names_the_known_ones() -> None:
    with pytest.raises(ControlPlaneError, match=r"'aws-ebs-csi-driver'\. Known are: vpc-cni, kube-proxy"):
        install_addon("aws-ebs-csi-driver")
