"""Reading the AWS Price List: the requests that are made and what becomes of answers, with botocore's Stubber."""

from __future__ import annotations

import builtins
import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber
from typer.testing import CliRunner, Result

from planner import price_list, prices
from planner.cli import app
from planner.command_line import REFUSED
from planner.price_list import QUERIES, Change, PriceListError
from planner.prices import Reference, Region

TODAY = datetime.date(2026, 12, 1)
P5 = "on_demand/p5.48xlarge"


def product(usd: str, usage: str, begin: str = "0", **attributes: str) -> str:
    """One entry of a PriceList, as the API sends it: JSON in a string."""
    dimension = {"pricePerUnit": {"USD": usd}, "beginRange": begin, "unit": "Hrs"}
    return json.dumps(
        {
            "product": {"attributes": {"usagetype": usage, **attributes}},
            "terms": {"OnDemand": {"A.B": {"priceDimensions": {"A.B.C": dimension}}}},
        }
    )


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Stubber]]:
    """A real Price List client whose answers a test gives; one price alone is asked for."""
    monkeypatch.setattr(price_list, "QUERIES", {P5: QUERIES[P5]})
    client = boto3.client("pricing", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")
    with Stubber(client) as stub:
        yield client, stub


def known(usd: float | None = 55.04, *, confirmed: bool = True) -> Region:
    read = datetime.date(2026, 7, 20)
    return {P5: Reference(usd=usd, unit="hour", date=read, confirmed=confirmed, source="a table")}


def refreshed(aws: tuple[Any, Stubber], *answers: list[str], before: Region | None = None) -> Change:
    client, stub = aws
    for number, answer in enumerate(answers):
        more = {"NextToken": "next"} if number < len(answers) - 1 else {}
        stub.add_response("get_products", {"FormatVersion": "aws_v1", "PriceList": answer, **more})
    (change,) = price_list.refresh(client, "us-east-1", known() if before is None else before, TODAY)
    return change


def test_an_instance_is_asked_for_as_linux_on_demand_in_its_region(aws: tuple[Any, Stubber]) -> None:
    client, stub = aws
    wanted = {
        "regionCode": "eu-west-1",
        "instanceType": "p5.48xlarge",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    request = {"ServiceCode": "AmazonEC2", "FormatVersion": "aws_v1", "Filters": filters}
    stub.add_response("get_products", {"PriceList": [product("50", "EU-BoxUsage:p5.48xlarge")]}, request)
    (change,) = price_list.refresh(client, "eu-west-1", {}, TODAY)
    assert change.after is not None
    assert change.after.usd == 50
    stub.assert_no_pending_responses()


def test_a_new_price_is_confirmed_and_dated_today(aws: tuple[Any, Stubber]) -> None:
    change = refreshed(aws, [product("49.5", "BoxUsage:p5.48xlarge")])
    assert change.differs
    assert change.after == Reference(usd=49.5, unit="hour", date=TODAY, confirmed=True, source="AWS Price List")


def test_the_same_price_does_not_differ_and_is_dated_anew(aws: tuple[Any, Stubber]) -> None:
    change = refreshed(aws, [product("55.04", "BoxUsage:p5.48xlarge")])
    assert not change.differs
    assert change.after is not None
    assert change.after.date == TODAY


def test_a_price_that_was_unconfirmed_becomes_known(aws: tuple[Any, Stubber]) -> None:
    assert refreshed(aws, [product("55.04", "BoxUsage:p5.48xlarge")], before=known(confirmed=False)).differs


def test_later_pages_count_and_other_usage_free_tiers_and_volume_discounts_do_not(aws: tuple[Any, Stubber]) -> None:
    first = [product("9", "UnusedBox:p5.48xlarge"), product("0.0000000000", "BoxUsage:p5.48xlarge")]
    second = [product("40", "BoxUsage:p5.48xlarge", begin="10000"), product("50", "BoxUsage:p5.48xlarge")]
    change = refreshed(aws, first, second)
    assert change.after is not None
    assert change.after.usd == 50


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        ([], "not in the price list"),
        ([product("50", "BoxUsage:a"), product("60", "BoxUsage:b")], "2 prices match: 50, 60"),
    ],
)
def test_an_answer_without_exactly_one_price_changes_nothing(
    aws: tuple[Any, Stubber], answer: list[str], note: str
) -> None:
    change = refreshed(aws, answer)
    assert change.after is None
    assert not change.differs
    assert change.note == note
    assert price_list.merged(known(), (change,)) == known()


def test_the_throughput_of_a_file_system_is_told_apart(
    aws: tuple[Any, Stubber], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "fsx_persistent_2/125"
    monkeypatch.setattr(price_list, "QUERIES", {name: QUERIES[name]})
    answer = [
        product("0.7", "Storage", throughputCapacity="1000"),
        product("0.145", "Storage", throughputCapacity="125"),
        product("0.2", "Storage", throughputCapacity="1250"),
    ]
    change = refreshed(aws, answer, before={})
    assert change.after is not None
    assert change.after.usd == 0.145
    assert change.after.unit == "GB-month"


def test_a_refusal_of_aws_becomes_one_message(aws: tuple[Any, Stubber]) -> None:
    client, stub = aws
    stub.add_client_error("get_products", "AccessDeniedException", "no pricing:GetProducts")
    with pytest.raises(PriceListError, match="credentials"):
        tuple(price_list.refresh(client, "us-east-1", {}, TODAY))


def test_every_price_but_capacity_blocks_and_what_the_stack_never_has_can_be_read_anew() -> None:
    unread = set(prices.of(prices.REGION)) - set(QUERIES)
    unread = {name for name in unread if not name.startswith("capacity_block/")}
    assert unread == {"cross_zone/gb", "fsx_scratch_2", "gp3/throughput"}
    for name, query in QUERIES.items():
        reference = prices.of(prices.REGION)[name]
        assert query.unit == reference.unit, name


def run(*flags: str) -> Result:
    return CliRunner().invoke(app, ["price", "--refresh", *flags])


@pytest.fixture
def price_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the price file, which a command may write."""
    copy = tmp_path / "prices.yaml"
    copy.write_bytes(prices.FILE.read_bytes())
    monkeypatch.setattr(prices, "FILE", copy)
    return copy


def answer_once(aws: tuple[Any, Stubber], monkeypatch: pytest.MonkeyPatch) -> None:
    client, stub = aws
    request = {"ServiceCode": ANY, "Filters": ANY, "FormatVersion": ANY}
    stub.add_response("get_products", {"PriceList": [product("66.05", "BoxUsage:p5.48xlarge")]}, request)
    monkeypatch.setattr(price_list, "client", lambda: client)


def test_the_command_says_what_changed_and_writes_nothing_by_itself(
    aws: tuple[Any, Stubber], monkeypatch: pytest.MonkeyPatch, price_file: Path
) -> None:
    before = price_file.read_bytes()
    answer_once(aws, monkeypatch)
    result = run()
    assert result.exit_code == 0, result.output
    for expected in (P5, "55.04", "66.05", "+20.0 %", "nothing is written"):
        assert expected in result.stdout
    assert price_file.read_bytes() == before


def test_write_puts_the_new_price_into_the_file_and_leaves_the_others(
    aws: tuple[Any, Stubber], monkeypatch: pytest.MonkeyPatch, price_file: Path
) -> None:
    before = prices.read(price_file)["us-east-1"]
    answer_once(aws, monkeypatch)
    data = json.loads(run("--write", "--json").stdout)
    assert data["written"] is True
    assert data["prices"][0] | {"before": 55.04, "now": 66.05, "differs": True} == data["prices"][0]
    after = prices.read(price_file)["us-east-1"]
    assert after[P5].usd == 66.05
    assert {name for name in before if before[name] != after[name]} == {P5}


def test_a_region_that_the_list_does_not_know_is_refused_and_nothing_is_written(
    aws: tuple[Any, Stubber], monkeypatch: pytest.MonkeyPatch, price_file: Path
) -> None:
    client, stub = aws
    stub.add_response("get_products", {"PriceList": []})
    monkeypatch.setattr(price_list, "client", lambda: client)
    before = price_file.read_bytes()
    result = run("--write", "--region", "mars")
    assert result.exit_code == REFUSED
    assert "--region mars" in result.stderr
    assert price_file.read_bytes() == before


def test_without_boto3_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "boto3":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    result = run()
    assert result.exit_code == REFUSED
    assert "pip install boto3" in result.stderr


def test_a_profile_that_does_not_exist_becomes_one_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    result = run()
    assert result.exit_code == REFUSED
    assert "nobody" in result.stderr
    assert "Traceback" not in result.output


def test_a_file_that_cannot_be_written_becomes_one_message(
    aws: tuple[Any, Stubber], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer_once(aws, monkeypatch)
    prices.reference()
    monkeypatch.setattr(prices, "FILE", tmp_path / "nowhere" / "prices.yaml")
    result = run("--write")
    assert result.exit_code == REFUSED
    assert "No such file" in result.stderr


@pytest.mark.parametrize("flag", [["--write"], ["--region", "eu-west-1"]])
def test_flags_of_refresh_without_it_are_refused(flag: list[str]) -> None:
    result = CliRunner().invoke(app, ["price", *flag])
    assert result.exit_code == REFUSED
    assert "--refresh" in result.stderr
