"""The account's file under what the engine does to it: many calls at once, from several plugins."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simulation.aws.store import Row, Store


def row(number: int) -> Row:
    return Row(type="aws:ec2/vpc:Vpc", id=f"vpc-{number}", name="main", inputs={}, state={"number": number})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "account" / "aws.sqlite"


def test_first_use_by_many_at_once(path: Path) -> None:
    def add(number: int) -> None:
        with Store(path).transaction() as view:
            view.put(row(number))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(add, range(64)))
    assert len(Store(path).list_resources()) == 64
    assert {entry.name.partition("-")[0] for entry in path.parent.iterdir()} == {"aws.sqlite"}


def test_a_failed_transaction_leaves_nothing(path: Path) -> None:
    def fail() -> None:
        with Store(path).transaction() as view:
            view.put(row(1))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert Store(path).is_empty()


def test_only_its_owner_reads_the_file(path: Path) -> None:
    assert Store(path).is_empty()
    assert path.stat().st_mode & 0o077 == 0
