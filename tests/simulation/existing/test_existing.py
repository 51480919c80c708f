"""The cluster that exists already: what it looks like, what a stack does in it, what it leaves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulation import environment, existing, paths, stackfile
from simulation.control_plane import ControlPlaneError
from simulation.control_plane.devices import shared_rdma
from simulation.control_plane.state import connect
from simulation.existing.__main__ import main
from simulation.existing.plugins import CONFIG_MAP, CONTAINERS, SHARED_RDMA
from tests.simulation.control_plane.objects import container, daemon, eventually

RDMA = "rdma/hca_shared_devices_a"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of an existing cluster whose owner has installed the NVIDIA plugin alone."""
    home = tmp_path_factory.mktemp("existing")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SIMULATION_HOME", str(home))
        try:
            existing.start(existing.Shape(plugins=("nvidia",)))
            yield home
        finally:
            existing.stop()


def kubectl(*arguments: str) -> Any:
    done = subprocess.run(
        ["kubectl", "--context=existing", *arguments, "--output=json"],
        env=environment.variables(os.environ, stackfile.EXISTING),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def offered(resource: str) -> dict[str, str]:
    nodes = kubectl("get", "nodes")["items"]
    return {node["metadata"]["name"]: node["status"]["allocatable"].get(resource, "0") for node in nodes}


@pytest.mark.slow
@pytest.mark.usefixtures("home")
class TestCluster:
    def test_its_nodes_are_of_no_cloud(self) -> None:
        nodes = {node["metadata"]["name"]: node for node in kubectl("get", "nodes")["items"]}
        assert set(nodes) == {"gpu-0", "gpu-1", "cpu-0", "cpu-1"}
        assert "eks.amazonaws.com" not in json.dumps(nodes)
        gpu = nodes["gpu-0"]
        assert gpu["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "h100-ib"
        assert gpu["spec"]["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
        assert "taints" not in nodes["cpu-0"]["spec"]
        assert offered("nvidia.com/gpu") == {"gpu-0": "8", "gpu-1": "8", "cpu-0": "0", "cpu-1": "0"}
        assert set(offered(RDMA).values()) == {"0"}, "nobody has installed the RDMA plugin"

    def test_the_stacks_own_rdma_plugin_offers_what_its_configuration_says(self) -> None:
        api, path = connect(), "/api/v1/namespaces/kube-system/configmaps"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP}}
        api.create(path, body | {"data": {"config.json": json.dumps(SHARED_RDMA)}})
        volume = {"name": "config", "configMap": {"name": CONFIG_MAP}}
        plugin = daemon(
            "rdma-shared-dp-ds",
            tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
            containers=[container(name=CONTAINERS["rdma"])],
            volumes=[volume],
        )
        daemons = "/apis/apps/v1/namespaces/kube-system/daemonsets"
        api.create(daemons, plugin)
        try:
            slots = {"gpu-0": "63", "gpu-1": "63", "cpu-0": "0", "cpu-1": "0"}
            eventually("both GPU nodes offer the fabric", lambda: offered(RDMA) == slots)
            own = {f"ConfigMap kube-system/{CONFIG_MAP}", "DaemonSet kube-system/rdma-shared-dp-ds"}
            assert own <= set(existing.left())
            assert not [one for one in existing.left() if "owners-nvidia-plugin" in one]
        finally:
            api.delete(f"{daemons}/rdma-shared-dp-ds")
            api.delete(f"{path}/{CONFIG_MAP}")
        eventually("none offers it without its plugin", lambda: set(offered(RDMA).values()) == {"0"})
        eventually("nothing is left", lambda: existing.left() == [])

    def test_what_helm_manages_is_left_over_too(self) -> None:
        api, path = connect(), "/api/v1/namespaces/default/configmaps"
        metadata = {"name": "forgotten", "labels": {"app.kubernetes.io/managed-by": "Helm"}}
        api.create(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        try:
            assert existing.left() == ["ConfigMap default/forgotten"]
            assert "  ConfigMap default/forgotten" in existing.report()
        finally:
            api.delete(f"{path}/forgotten")

    def test_another_start_is_refused(self) -> None:
        with pytest.raises(ControlPlaneError, match=r"simulation\.existing stop"):
            existing.start()


@pytest.mark.slow
def test_a_stack_lives_and_dies_without_aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATION_HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    shutil.copytree(Path(__file__).parent / "program", project)

    def pulumi(*arguments: str) -> str:
        prepared = environment.variables(os.environ, stackfile.EXISTING)
        command = ["pulumi", "--non-interactive", *arguments]
        done = subprocess.run(command, cwd=project, env=prepared, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    try:
        existing.start(existing.Shape(plugins=("nvidia", "rdma")))
        environment.prepare(cluster=False, say=print, project=project, stack=stackfile.EXISTING)
        preview = pulumi("preview")
        assert "Previewing update (simulated-infiniband)" in preview
        assert "aws" not in preview.lower()
        pulumi("up", "--yes", "--skip-preview")
        (pod,) = kubectl("get", "pods", "--namespace=kimi")["items"]
        assert pod["spec"]["nodeName"].startswith("gpu-")
        assert "Namespace kimi" in existing.left()
        pulumi("destroy", "--yes", "--skip-preview")
        assert existing.report() == "The stack has left nothing in the existing cluster."
    finally:
        existing.stop()
    assert not paths.control_plane().exists()
    assert not paths.existing_kubeconfig().exists()


def test_nothing_of_aws_is_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATION_HOME", str(tmp_path))
    theirs = {"PATH": os.environ["PATH"], "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "AKIA", "EDITOR": "vi"}
    prepared = environment.variables(environment.variables(theirs), stackfile.EXISTING)
    assert [name for name in prepared if name.startswith("AWS_")] == []
    assert shutil.which("pulumi-resource-aws", path=prepared["PATH"]) is None
    assert prepared["KUBECONFIG"] == f"{tmp_path}/kubeconfig"
    assert (prepared["PULUMI_STACK"], prepared["EDITOR"]) == ("simulated-infiniband", "vi")


def test_the_existing_clusters_home_is_entered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATION_HOME", str(tmp_path))
    existing.enter_home()
    existing.enter_home()
    assert paths.home() == tmp_path / "existing"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gpu-label", "h100"], "KEY=VALUE"),
        (["--gpu-taint", "gpu=present:Never"], "NoSchedule, PreferNoSchedule, NoExecute"),
    ],
)
def test_what_is_no_label_or_taint_is_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["start", *arguments])
    assert words in capsys.readouterr().err


def test_an_unknown_plugin_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SIMULATION_HOME", str(tmp_path))
    assert main(["start", "--plugins", "nvidia,efa"]) == 1
    assert "no plugin 'efa'; there are nvidia, rdma" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


ENTRY = {"resourceName": "ib", "rdmaHcaMax": 2}


@pytest.mark.parametrize(
    ("entry", "offers"),
    [
        (ENTRY | {"selectors": {"linkTypes": ["infiniband"]}}, {"rdma/ib": 2}),
        (ENTRY | {"selectors": {"vendors": ["15b3"]}, "resourcePrefix": "nvidia.com"}, {"nvidia.com/ib": 2}),
        (ENTRY | {"selectors": {"vendors": ["15b3"], "linkTypes": ["ether"]}}, {}),
        (ENTRY | {"selectors": {}}, {}),
        ({"resourceName": "ib", "selectors": {"vendors": ["15b3"]}}, {}),
    ],
)
def test_what_the_rdma_plugin_makes_of_its_configuration(entry: dict[str, Any], offers: dict[str, int]) -> None:
    data = {"config.json": json.dumps({"configList": [entry]})}
    pod = {
        "metadata": {"namespace": "kube-system"},
        "spec": {"volumes": [{"name": "config", "configMap": {"name": CONFIG_MAP}}]},
    }
    assert shared_rdma(pod, lambda _namespace, _name: {"data": data}) == offers
