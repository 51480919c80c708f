"""The commands that need no stack, on an account that holds something and on an empty one."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation import paths
from simulation.aws.account import Account
from simulation.aws.kubernetes import NoKubernetes
from simulation.aws.resources.common import BUCKET
from simulation.aws.store import Store
from simulation.cli import main


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    monkeypatch.setenv("SIMULATION_HOME", str(tmp_path))
    return Account(store=Store(paths.aws_store()), cluster=NoKubernetes())


@pytest.mark.parametrize("command", ["retained", "stop"])
def test_an_empty_home_is_nothing_to_talk_about(
    account: Account, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command]) == 0
    assert capsys.readouterr() == ("", "")
    assert account.store.is_empty()


@pytest.mark.parametrize("command", ["retained", "stop"])
def test_what_no_stack_knows_is_named(account: Account, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    account.create(BUCKET, "weights", {"bucket": "models"})
    assert main([command]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first == "retained: s3:Bucket weights (models) still bills"
    assert "make clean" in last


def test_a_bucket_is_told_what_it_holds(account: Account, capsys: pytest.CaptureFixture[str]) -> None:
    account.create(BUCKET, "weights", {"bucket": "models"})
    assert main(["objects", "models", "64"]) == 0
    with account.store.transaction() as view:
        assert view.content(BUCKET, "models") == 64
    assert main(["objects", "model", "64"]) == 1
    assert "error: There is no simulated bucket 'model'. There are: models." in capsys.readouterr().err
