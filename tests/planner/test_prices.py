"""The file of reference prices: what it holds, what it refuses, how old a price may be."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from planner import SettingsError, plan, prices
from planner.cli import app
from planner.command_line import REFUSED
from planner.hardware import GPU_TYPES, SYSTEM_TYPES
from planner.prices import PriceFileError, Reference

GOOD = "{usd: 1.5, unit: hour, date: 2026-07-20, confirmed: true, source: a list}"


def entry(date: str = "2026-07-20", *, usd: float | None = 1.5, confirmed: bool = True) -> Reference:
    return Reference(usd=usd, unit="hour", date=datetime.date.fromisoformat(date), confirmed=confirmed, source="a list")


def test_writing_what_was_read_changes_nothing_in_the_file(tmp_path: Path) -> None:
    copy = tmp_path / "prices.yaml"
    prices.write(copy, prices.read(prices.FILE))
    assert copy.read_text(encoding="utf-8") == prices.FILE.read_text(encoding="utf-8")


def test_every_instance_type_of_the_hardware_table_has_an_entry() -> None:
    known = prices.of(prices.REGION)
    assert {f"on_demand/{name}" for name in (*GPU_TYPES, *SYSTEM_TYPES)} <= set(known)


def test_every_price_names_its_source_and_no_price_is_confirmed_without_a_figure() -> None:
    for region in prices.reference().values():
        for name, found in region.items():
            assert found.source, name
            assert found.usd is not None or not found.confirmed, name


def test_capacity_blocks_are_an_estimate_at_best() -> None:
    blocks = [found for name, found in prices.of(prices.REGION).items() if name.startswith("capacity_block/")]
    assert blocks
    assert all(found.usd and found.known is None for found in blocks)


@pytest.mark.parametrize(("today", "stale"), [("2026-10-18", False), ("2026-10-19", True), ("2026-07-20", False)])
def test_a_price_is_old_after_90_days(today: str, stale: bool) -> None:
    assert entry("2026-07-20").stale(datetime.date.fromisoformat(today)) is stale


def test_a_price_that_is_not_confirmed_is_unknown() -> None:
    assert entry(confirmed=True).known == 1.5
    assert entry(confirmed=False).known is None


def test_an_unknown_region_has_no_prices() -> None:
    assert prices.of("xx-nowhere-1") == {}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("[]", "a mapping of regions"),
        ("us-east-1: 3", "us-east-1: a mapping of names"),
        ("us-east-1: {gp3: 0.08}", "gp3: exactly the keys usd, unit, date"),
        (f"us-east-1: {{gp3: {GOOD.replace('1.5', '-1')}}}", "usd is -1; allowed: a number greater than 0"),
        (f"us-east-1: {{gp3: {GOOD.replace('1.5', '0')}}}", "usd is 0"),
        (f"us-east-1: {{gp3: {GOOD.replace('1.5', '.inf')}}}", "usd is inf"),
        (f"us-east-1: {{gp3: {GOOD.replace('1.5', 'cheap')}}}", "usd is 'cheap'"),
        (f"us-east-1: {{gp3: {GOOD.replace('hour', 'day')}}}", "unit is 'day'; allowed: hour, GB-month"),
        (f"us-east-1: {{gp3: {GOOD.replace('2026-07-20', 'July')}}}", "date is 'July'; allowed: a date"),
        (f"us-east-1: {{gp3: {GOOD.replace('a list', chr(39) * 2)}}}", "source is a text"),
        ("us-east-1: [", "prices.yaml"),
    ],
)
def test_a_bad_price_file_is_refused_with_the_entry_and_what_is_allowed(
    tmp_path: Path, content: str, named: str
) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(PriceFileError) as caught:
        prices.read(file)
    assert named in str(caught.value)


def test_a_good_entry_is_read(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(f"eu-west-1: {{gp3: {GOOD}}}", encoding="utf-8")
    assert prices.read(file) == {"eu-west-1": {"gp3": entry()}}


def test_a_broken_price_file_is_refused_by_commands_and_by_the_stack_without_a_traceback(
    raw: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("us-east-1: {gp3: 0.08}", encoding="utf-8")
    monkeypatch.setattr(prices, "reference", lambda: prices.read(file))
    result = CliRunner().invoke(app, ["compare"])
    assert result.exit_code == REFUSED
    assert "gp3: exactly the keys" in result.stderr
    with pytest.raises(SettingsError, match=r"prices\.yaml"):
        plan(raw, api_key_given=True)
