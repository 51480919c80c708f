"""The stand-in for `aws eks get-token`."""

from __future__ import annotations

import json
import os
import socket
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


@pytest.mark.parametrize(
    ("recorded", "sentence"),
    [
        ("", "There is no cluster"),
        ("glm", "is 'glm', not 'kimi'"),
        ("kimi", "does not run"),
    ],
)
def test_unreachable_cluster_is_a_clear_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: str, sentence: str
) -> None:
    monkeypatch.setenv("SIMULATION_HOME", str(tmp_path))
    # Bound but not listening: nobody else can take the port, and nobody answers on it.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if recorded:
            paths.control_plane().mkdir()
            ports = {"kube-apiserver": taken.getsockname()[1]}
            save(State(cluster=recorded, kubernetes_version="1.35", ports=ports, processes={}))
        done = _aws(tmp_path, "eks", "get-token", "--cluster-name", "kimi")
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr
    assert "make up" in done.stderr


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
