"""The staging pod as the Job describes it, started here: its files, its command's program and its environment.

Its image, its mounts and the installation of its packages are not proved here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from payloads.staging_settings import ExitCode
from tests.components.graph import Graph


@pytest.fixture
def spec(graph: Graph) -> dict[str, Any]:
    made: dict[str, Any] = graph.one("staging-job").inputs["spec"]["template"]["spec"]
    return made


def materialise(graph: Graph, spec: dict[str, Any], root: Path) -> dict[str, str]:
    """Lays the ConfigMap's files where the container mounts them, below `root`; returns the container's environment."""
    (container,) = spec["containers"]
    mounts = {mount["name"]: root / mount["mountPath"].lstrip("/") for mount in container["volumeMounts"]}
    for folder in mounts.values():
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in graph.one("staging-payload").inputs["data"].items():
        (mounts["payload"] / name).write_text(text)
    given = {entry["name"]: str(entry["value"]) for entry in container["env"]}
    assert given["STAGE_DIRECTORY"].lstrip("/") == str(mounts["weights"].relative_to(root))
    given["PYTHONPATH"] = os.pathsep.join(str(root / part.lstrip("/")) for part in given["PYTHONPATH"].split(":"))
    return {**given, "STAGE_DIRECTORY": str(mounts["weights"])}


def test_the_program_starts_from_what_is_mounted(graph: Graph, spec: dict[str, Any], tmp_path: Path) -> None:
    environment = materialise(graph, spec, tmp_path)
    program = spec["containers"][0]["command"][-1].rpartition("exec python ")[2].split()
    done = subprocess.run(
        [sys.executable, *program],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            **environment,
            "HF_ENDPOINT": "http://127.0.0.1:1",
            "STAGE_ATTEMPTS": "1",
            "STAGE_TERMINATION_LOG": str(tmp_path / "verdict"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == ExitCode.NETWORK, done.stdout + done.stderr
    assert "weight staging failed (network" in (tmp_path / "verdict").read_text()


def test_packages_are_installed_where_python_looks_and_only_as_locked(spec: dict[str, Any]) -> None:
    (container,) = spec["containers"]
    install = container["command"][-1].partition(" && ")[0].split()
    target = install[install.index("--target") + 1]
    paths = next(entry["value"] for entry in container["env"] if entry["name"] == "PYTHONPATH").split(":")
    assert target in paths
    assert target in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert {"--require-hashes", "--only-binary=:all:"} <= set(install)


def test_the_weights_are_writable_for_staging_alone(spec: dict[str, Any]) -> None:
    (container,) = spec["containers"]
    mount = next(mount for mount in container["volumeMounts"] if mount["name"] == "weights")
    assert "readOnly" not in mount


def test_what_ends_without_a_verdict_shows_its_log(spec: dict[str, Any]) -> None:
    assert spec["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_the_job_waits_for_the_nodes_that_it_runs_on(graph: Graph) -> None:
    assert graph.one("system-nodes-group").urn in graph.one("staging-job").dependencies
