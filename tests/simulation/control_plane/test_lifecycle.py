"""Start, restart of the machine, stop."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulation import control_plane, paths
from simulation.control_plane import ControlPlaneError, processes, state
from simulation.control_plane.processes import Identity

CUT_SHORT = """
import os
from simulation.control_plane import lifecycle
lifecycle.record_baseline = lambda api: os._exit(9)
lifecycle.start("kimi", "1.35")
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SIMULATION_HOME", str(tmp_path))
    yield tmp_path
    control_plane.stop()


@pytest.mark.usefixtures("home")
def test_nothing_to_resume_to_stop_or_to_reach() -> None:
    assert control_plane.resume() is False
    control_plane.stop()
    with pytest.raises(ControlPlaneError, match="No local control plane"):
        control_plane.leftovers()
    with pytest.raises(ControlPlaneError, match="No local control plane"):
        control_plane.kubeconfig()


@pytest.mark.slow
def test_other_version_is_refused_before_anything_starts(home: Path) -> None:
    with pytest.raises(ControlPlaneError, match=r"'1\.31' was asked for\. Ask for '1\.35'"):
        control_plane.start("kimi", "1.31")
    assert list(home.iterdir()) == []


@pytest.mark.slow
def test_program_that_ends_leaves_nothing_behind(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Identity] = []
    launch = processes.launch

    def failing(arguments: list[str], *, log: Path, environment: dict[str, str]) -> Identity:
        wrong = ["--no-such-flag"] if log.stem == "kube-apiserver" else []
        started.append(launch([*arguments, *wrong], log=log, environment=environment))
        return started[-1]

    monkeypatch.setattr(processes, "launch", failing)
    with pytest.raises(ControlPlaneError, match=r"kube-apiserver ended while it was starting(.|\n)*no-such-flag"):
        control_plane.start("kimi", "1.35")
    assert [one.is_alive for one in started] == [False, False]
    assert list(home.iterdir()) == []


@pytest.mark.slow
def test_life_of_a_cluster(home: Path) -> None:
    # The caller dies after everything was started and before anything else was noted.
    done = subprocess.run([sys.executable, "-c", CUT_SHORT], cwd=paths.ROOT, check=False)
    assert done.returncode == 9
    access = control_plane.start("kimi", "1.35")
    assert control_plane.leftovers() == []
    assert base64.b64decode(access.certificate_authority).startswith(b"-----BEGIN CERTIFICATE-----")
    assert control_plane.start("kimi", "1.35") == access
    with pytest.raises(ControlPlaneError, match="is cluster 'kimi'"):
        control_plane.start("other", "1.35")

    kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}
    state.connect().create("/api/v1/namespaces/default/configmaps", kept)
    assert control_plane.leftovers() == ["ConfigMap default/kept"]

    before = _processes()
    for one in before:
        processes.kill(one)
    with pytest.raises(ControlPlaneError, match="No local control plane runs"):
        control_plane.leftovers()
    assert control_plane.start("kimi", "1.35") == access
    assert control_plane.leftovers() == ["ConfigMap default/kept"]

    after = _processes()
    assert len(after) == len(before)
    assert not set(after) & set(before)
    control_plane.stop()
    assert not any(one.is_alive for one in after)
    assert list(home.iterdir()) == []


def _processes() -> list[Identity]:
    recorded = state.load()
    assert recorded is not None
    return list(recorded.processes.values())
