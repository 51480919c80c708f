"""`operations.capacity`: what it makes of offerings. moto has none: botocore's Stubber answers in its place."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from operations import capacity
from operations.check_quotas import P
from planner.command_line import REFUSED
from tests.operations.made import REGION
from tests.operations.stubbed import Answers, answering

NOW = datetime.datetime.now(tz=datetime.UTC)
SOON = (NOW + datetime.timedelta(days=3)).date()
DAY = datetime.timedelta(days=1)


def offering(number: int, zone: str, start: datetime.datetime, days: int, fee: float) -> dict[str, Any]:
    return {
        "CapacityBlockOfferingId": f"cb-{number}",
        "InstanceType": "p5.48xlarge",
        "InstanceCount": 2,
        "AvailabilityZone": f"{REGION}{zone}",
        "StartDate": start,
        "EndDate": start + days * DAY,
        "CapacityBlockDurationHours": 24 * days,
        "UpfrontFee": f"{fee}",
        "CurrencyCode": "USD",
    }


START = datetime.datetime.combine(SOON, datetime.time(11, 30), tzinfo=datetime.UTC)
OFFERINGS = [offering(2, "b", START + DAY, 2, 2880.0), offering(1, "a", START, 2, 3840.0)]


def run(monkeypatch: pytest.MonkeyPatch, *words: str, **changed: Any) -> Result:
    answers: Answers = {
        ("ec2", "describe_capacity_block_offerings"): {"CapacityBlockOfferings": OFFERINGS},
        ("ec2", "describe_instance_type_offerings"): {
            "InstanceTypeOfferings": [{"Location": f"{REGION}b"}, {"Location": f"{REGION}a"}]
        },
        ("service-quotas", "get_service_quota"): {"Quota": {"Value": 192.0}},
    }
    answers |= {("ec2", operation): value for operation, value in changed.items()}
    answering(monkeypatch, capacity, answers)
    result = CliRunner().invoke(capacity.app, ["Pulumi.dev.yaml", *words])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


@pytest.mark.usefixtures("aws")
def test_offers_come_by_their_start_with_the_price_of_an_instance_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, "--days", "2", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [(offer["id"], offer["per_instance_hour"], offer["upfront"]) for offer in found["offers"]] == [
        ("cb-1", 40.0, 3840.0),  # 2 instances for 48 hours
        ("cb-2", 30.0, 2880.0),
    ]
    assert found["zones"] == [f"{REGION}a", f"{REGION}b"]
    assert found["on_demand_per_instance_hour"] == 55.04
    (quota,) = found["quota"]
    assert quota["level"] == "fail"
    assert P.code in quota["do"]


@pytest.mark.usefixtures("aws")
def test_people_read_zones_times_and_that_it_is_paid_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = run(monkeypatch, "--days", "2").stdout
    assert "3,840.00 USD" in text
    assert START.strftime("%Y-%m-%d %H:%M") in text
    assert "paid in full when bought" in text
    assert f"A block in {REGION}b needs the stack there" in text


@pytest.mark.usefixtures("aws")
def test_the_request_names_type_count_hours_and_first_day(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        asked.update(request)
        return {"CapacityBlockOfferings": []}

    result = run(monkeypatch, "--days", "14", "--from", str(SOON), describe_capacity_block_offerings=answer)
    assert result.exit_code == capacity.NO_OFFER
    assert "No capacity block is offered" in result.stdout
    first = datetime.datetime.combine(SOON, datetime.time(), tzinfo=datetime.UTC)
    assert asked == {
        "InstanceType": "p5.48xlarge",
        "InstanceCount": 2,
        "CapacityDurationHours": 336,
        "StartDateRange": first,
    }


@pytest.mark.usefixtures("aws")
def test_a_missing_permission_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, "--json", describe_capacity_block_offerings="UnauthorizedOperation")
    assert result.exit_code == REFUSED
    (problem,) = json.loads(result.stdout)["problems"]
    assert "ec2:DescribeCapacityBlockOfferings" in problem["allowed"]


@pytest.mark.parametrize("days", ["0", "15", "183", "-1"])
def test_a_block_lasts_days_or_whole_weeks(days: str) -> None:
    result = CliRunner().invoke(capacity.app, ["Pulumi.dev.yaml", f"--days={days}", "--json"])
    assert result.exit_code == REFUSED
    assert json.loads(result.stdout)["problems"][0]["where"] == "--days"


@pytest.mark.parametrize("first", [NOW - 2 * DAY, NOW + 60 * DAY])
def test_a_block_starts_within_eight_weeks(first: datetime.datetime) -> None:
    result = CliRunner().invoke(capacity.app, ["Pulumi.dev.yaml", f"--from={first.date()}", "--json"])
    assert result.exit_code == REFUSED
    assert json.loads(result.stdout)["problems"][0]["where"] == "--from"
