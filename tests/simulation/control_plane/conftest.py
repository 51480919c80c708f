"""One real control plane for all slow tests of this folder, in a home of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulation import control_plane
from simulation.control_plane.api import Api
from simulation.control_plane.state import connect
from tests.simulation.control_plane.objects import CLUSTER, GPU_NODES, SYSTEM_NODES, device_plugin


@pytest.fixture(scope="session")
def running_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a cluster with two system nodes and two GPU nodes, without device plugins."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SIMULATION_HOME", str(home))
        try:
            control_plane.start(CLUSTER, "1.35")
            control_plane.scale_nodes(SYSTEM_NODES)
            control_plane.scale_nodes(GPU_NODES)
            # Only this fixture's own steps see the variable; other tests have homes of their own.
            patched.undo()
            yield home
        finally:
            patched.setenv("SIMULATION_HOME", str(home))
            control_plane.stop()


@pytest.fixture
def cluster(running_cluster: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of the running cluster, in force for one test; what was told of Jobs is forgotten after it."""
    monkeypatch.setenv("SIMULATION_HOME", str(running_cluster))
    yield running_cluster
    control_plane.jobs.reset()


@pytest.fixture
def api(cluster: Path) -> Api:  # noqa: ARG001 - fixtures cannot use `usefixtures`
    """An administrator's client of the cluster."""
    return connect()


@pytest.fixture
def namespace(api: Api, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for one test, gone after it."""
    name = request.node.name.replace("_", "-")[:60].strip("-")
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    api.create("/api/v1/namespaces", body)
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def device_plugins(api: Api) -> Iterator[None]:
    """Daemons with the containers of both device plugins, tolerating everything."""
    path = "/apis/apps/v1/namespaces/kube-system/daemonsets"
    for container in ("nvidia-device-plugin-ctr", "aws-efa-k8s-device-plugin"):
        api.create(path, device_plugin(container))
    yield
    for container in ("nvidia-device-plugin-ctr", "aws-efa-k8s-device-plugin"):
        api.delete(f"{path}/{container}")
