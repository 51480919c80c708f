"""The stand-in charts, rendered and installed by the real engine and its Kubernetes provider."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulation import control_plane, environment, paths
from simulation.control_plane.api import Api, Json
from tests.simulation.control_plane.objects import ALL_DEVICES, GPU_TOLERATION, eventually, nodes

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "charts_program.py"
EFA_VALUES = {"tolerations": [GPU_TOLERATION]}


class Charts:
    """A Pulumi project of nothing but Helm releases."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = environment.variables() | {"PULUMI_STACK": "charts"}
        (folder / "Pulumi.yaml").write_text("name: charts\nruntime: python\n")
        shutil.copy(PROGRAM, folder / "__main__.py")
        (folder / "kubeconfig").write_text(control_plane.kubeconfig().read_text())
        environment.prepare_home()
        assert self._pulumi("stack", "init", "charts").returncode == 0

    def up(self, *releases: Json) -> subprocess.CompletedProcess[str]:
        (self._folder / "releases.json").write_text(json.dumps(releases))
        return self._pulumi("up", "--yes", "--skip-preview", "--non-interactive")

    def destroy(self) -> None:
        done = self._pulumi("destroy", "--yes", "--skip-preview", "--non-interactive", "--remove")
        assert done.returncode == 0, done.stdout

    def _pulumi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        pulumi = shutil.which("pulumi", path=self._environment["PATH"])
        assert pulumi, "no engine: python -m simulation tools"
        return subprocess.run(
            [pulumi, *arguments],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@pytest.fixture
def charts(cluster: Path, tmp_path: Path) -> Iterator[Charts]:  # noqa: ARG001 - its variable has to be in force
    project = Charts(tmp_path)
    yield project
    project.destroy()


def _nvidia(values: dict[str, Any], namespace: str = "kube-system") -> Json:
    return _release("nvidia-device-plugin", values, namespace)


def _efa(values: dict[str, Any]) -> Json:
    return _release("aws-efa-k8s-device-plugin", values, "kube-system")


def _release(chart: str, values: dict[str, Any], namespace: str) -> Json:
    path = paths.ROOT / "simulation" / "charts" / chart
    return {"name": chart, "chart": str(path), "values": values, "namespace": namespace}


def _offered(api: Api, group: str) -> set[tuple[str, ...]]:
    return {tuple(node["status"]["allocatable"].get(one, "0") for one in ALL_DEVICES) for node in nodes(api, group)}


def test_both_plugins_land_on_every_gpu_node_and_on_no_other(charts: Charts, api: Api) -> None:
    done = charts.up(_nvidia({"mofedEnabled": False}), _efa(EFA_VALUES))
    assert done.returncode == 0, done.stdout
    eventually("all devices", lambda: _offered(api, "gpu") == {("8", "32")})
    assert _offered(api, "system") == {("0", "0")}
    gpu_nodes = {node["metadata"]["name"] for node in nodes(api, "gpu")}
    plugins = [pod for pod in api.items("/api/v1/pods") if "device-plugin" in pod["spec"]["containers"][0]["name"]]
    assert len(plugins) == 4
    assert {pod["spec"]["nodeName"] for pod in plugins} == gpu_nodes
    assert control_plane.leftovers() == []
    again = charts.up(_nvidia({"mofedEnabled": False}), _efa(EFA_VALUES))
    assert "4 unchanged" in again.stdout, again.stdout


def test_efa_plugin_without_toleration_reaches_no_gpu_node(charts: Charts, api: Api) -> None:
    done = charts.up(_nvidia({}), _efa({}))
    assert done.returncode == 0, done.stdout
    eventually("GPUs without EFA", lambda: _offered(api, "gpu") == {("8", "0")})


def test_unknown_value_and_default_namespace_are_refused(charts: Charts) -> None:
    done = charts.up(_nvidia({"toleration": [GPU_TOLERATION]}))
    assert done.returncode != 0
    assert "toleration" in done.stdout
    done = charts.up(_nvidia({}, namespace="default"))
    assert done.returncode != 0
    assert 'refuses the namespace "default"' in done.stdout
