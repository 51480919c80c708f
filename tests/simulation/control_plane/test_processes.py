"""Processes are ended by identity, never by number alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from simulation.control_plane.errors import ControlPlaneError
from simulation.control_plane.processes import Identity, kill, launch, wait_until


@pytest.fixture
def sleeper(tmp_path: Path) -> Identity:
    return launch(["/bin/sleep", "60"], log=tmp_path / "log", environment={})


def test_only_the_very_process_is_killed(sleeper: Identity) -> None:
    recycled = replace(sleeper, started="another boot/1")
    kill(recycled)
    assert sleeper.is_alive
    kill(sleeper)
    assert not sleeper.is_alive


def test_process_has_its_own_session(sleeper: Identity) -> None:
    try:
        assert os.getsid(sleeper.pid) == sleeper.pid
    finally:
        kill(sleeper)


def test_missing_program_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ControlPlaneError, match="/no/such/program cannot be started"):
        launch(["/no/such/program"], log=tmp_path / "log", environment={})


def test_vain_wait_shows_the_end_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "etcd.log"
    log.write_text("first\nbind: address already in use\n")
    with pytest.raises(ControlPlaneError, match="address already in use"):
        wait_until("etcd comes up", lambda: False, seconds=0, log=log)
