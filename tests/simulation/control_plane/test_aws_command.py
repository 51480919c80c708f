"""The stand-in for `aws eks get-token`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from simulation import control_plane, paths, tools
from simulation.control_plane.api import Json
from simulation.control_plane.state import State, save

AWS = paths.ROOT / "simulation" / "bin" / "aws"


def _aws(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"SIMULATION_HOME": str(home)}
    return subprocess.run([AWS, *arguments], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["s3", "ls"], "not `aws s3 ls`"),
        (["eks", "get-token"], "--cluster-name is missing"),
        (["eks", "get-token", "--cluster-name"], "--cluster-name is not known"),
        (["eks", "get-token", "--cluster-nam", "kimi"], "--cluster-nam is not known"),
    ],
)
def test_other_commands_are_refused(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    done = _aws(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_no_cluster_is_a_clear_failure(tmp_path: Path) -> None:
    done = _aws(tmp_path, "eks", "get-token", "--cluster-name", "kimi")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no cluster 'kimi'" in done.stderr
    assert "there is none" in done.stderr


def test_other_cluster_is_a_clear_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATION_HOME", str(tmp_path))
    paths.control_plane().mkdir()
    save(State(cluster="kimi", kubernetes_version="1.35", ports={}, processes={}))
    done = _aws(tmp_path, "eks", "get-token", "--cluster-name", "glm")
    assert done.returncode == 1
    assert "the cluster there is 'kimi'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("region", [[], ["--region", "us-east-1"]])
def test_credential_opens_the_cluster(cluster: Path, region: list[str]) -> None:
    done = _aws(cluster, *region, "eks", "get-token", "--cluster-name=kimi", "--output", "json")
    answer: Json = json.loads(done.stdout)
    assert answer["apiVersion"] == "client.authentication.k8s.io/v1beta1"
    assert answer["kind"] == "ExecCredential"
    exec_config = {"apiVersion": answer["apiVersion"], "command": str(AWS), "interactiveMode": "Never"}
    arguments = [*region, "eks", "get-token", "--cluster-name", "kimi"]
    assert "kube-system" in _kubectl_namespaces(cluster, exec_config | {"args": arguments})


def _kubectl_namespaces(home: Path, exec_config: Json) -> str:
    config = json.loads(control_plane.kubeconfig().read_text())
    config["users"][0]["user"] = {"exec": exec_config}
    file = home / "exec.kubeconfig"
    file.write_text(json.dumps(config))
    command = [str(tools.binary("kubectl")), f"--kubeconfig={file}", "get", "namespaces"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
