"""Where the stand-in keeps its state."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation import paths


def test_a_relative_home_is_meant_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIMULATION_HOME", "state")
    assert paths.home() == tmp_path / "state"


def test_the_default_home_lies_beside_the_project_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIMULATION_HOME", raising=False)
    assert paths.home() == paths.ROOT / ".simulation"
    assert (paths.ROOT / "Pulumi.yaml").is_file()
