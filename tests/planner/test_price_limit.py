"""`maxHourlyPrice`: a stack above it is refused with its parts and with what keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from planner import SettingsError, plan
from planner.problems import Problem, dotted
from tests.planner.test_weight_rules import on_existing_cluster


def refused(raw: dict[str, Any]) -> Problem:
    with pytest.raises(SettingsError) as caught:
        plan(raw, api_key_given=True, hub_token_given=True)
    (problem,) = caught.value.problems
    assert dotted(problem.path) == "maxHourlyPrice"
    return problem


def test_a_stack_above_the_limit_names_its_parts_what_is_unknown_and_cheaper_fits(raw: dict[str, Any]) -> None:
    raw["maxHourlyPrice"] = 100
    problem = refused(raw)
    assert problem.given == "100 USD per hour"
    for expected in ("at least 112.13", "gpuNodes 110.08", "systemNodes 1.81", "weightCache, natTraffic, logs unknown"):
        assert expected in problem.allowed
    assert "1 x p5en.48xlarge" in problem.allowed


def test_every_cheaper_fit_that_is_named_keeps_the_limit(raw: dict[str, Any]) -> None:
    raw["maxHourlyPrice"] = 70
    offers = [line for line in refused(raw).allowed.splitlines() if line.startswith("- ")]
    assert offers
    for offer in offers:
        nodes, instance = offer.removeprefix("- ").split(",")[0].split(" x ")
        raw["gpuNodes"] = {"instanceType": instance, "count": int(nodes)}
        assert plan(raw, api_key_given=True).price.total_per_hour <= 70


@pytest.mark.parametrize("limit", [112.13, 112.134, 112.14, 1000])
def test_a_stack_below_the_limit_is_accepted(raw: dict[str, Any], limit: float) -> None:
    raw["maxHourlyPrice"] = limit
    assert plan(raw, api_key_given=True).settings.max_hourly_price == limit


def test_a_cent_below_what_is_shown_is_refused(raw: dict[str, Any]) -> None:
    raw["maxHourlyPrice"] = 112.12
    assert "at least 112.13" in refused(raw).allowed


def test_a_cheaper_fit_that_costs_what_is_shown_keeps_the_limit(raw: dict[str, Any]) -> None:
    """One p5en and all around it: 65.3262 USD per hour, shown as 65.33."""
    raw["maxHourlyPrice"] = 65.33
    assert "1 x p5en.48xlarge" in refused(raw).allowed
    raw["gpuNodes"] = {"instanceType": "p5en.48xlarge", "count": 1}
    assert plan(raw, api_key_given=True).serving is not None
    raw["gpuNodes"] = {"instanceType": "p5.48xlarge", "count": 2}
    raw["maxHourlyPrice"] = 65.32
    assert "1 x p5en.48xlarge" not in refused(raw).allowed


def test_a_limit_that_no_hardware_keeps_says_so_and_is_mended_by_a_higher_one(raw: dict[str, Any]) -> None:
    raw["maxHourlyPrice"] = 5
    problem = refused(raw)
    assert "No GPU nodes on which the model fits keep it" in problem.allowed
    assert [mend.value for mend in problem.mends] == [113]


def test_an_override_counts(raw: dict[str, Any]) -> None:
    raw |= {"maxHourlyPrice": 90, "prices": {"gpuNodes": 40.0}}
    assert plan(raw, api_key_given=True).price.total_per_hour < 90
    raw["prices"]["weightCache"] = 9.0
    assert "weightCache 29.59" in refused(raw).allowed


def test_a_limit_that_cannot_be_checked_is_refused(raw: dict[str, Any]) -> None:
    raw["platform"] |= {"region": "us-west-2", "availabilityZone": "us-west-2b"}
    raw["maxHourlyPrice"] = 500
    assert "the price of p5.48xlarge in us-west-2 is unknown" in refused(raw).allowed
    raw["prices"] = {"gpuNodes": 60.0}
    assert plan(raw, api_key_given=True).price.total_per_hour == pytest.approx(120)


def test_a_paused_stack_keeps_a_small_limit(raw: dict[str, Any]) -> None:
    raw["gpuNodes"]["count"] = 0
    raw["maxHourlyPrice"] = 3
    assert plan(raw, api_key_given=True).serving is None


def test_a_cheaper_fit_has_the_fabric_that_the_stack_asks_for(raw: dict[str, Any]) -> None:
    raw |= {"model": "llama-3.1-8b-instruct", "maxHourlyPrice": 15}
    raw["serving"]["maxModelLen"] = 16_384
    raw["gpuNodes"] = {"instanceType": "p5.48xlarge", "count": 1}
    problem = refused(raw)
    assert "1 x g6.12xlarge" in problem.allowed
    assert "g6e.2xlarge" not in problem.allowed


def test_a_price_of_the_old_hardware_goes_with_it(raw: dict[str, Any]) -> None:
    raw |= {"maxHourlyPrice": 70, "prices": {"gpuNodes": 50.0}}
    mends = {dotted(mend.path): mend.value for mend in refused(raw).mends}
    assert mends.items() >= {"gpuNodes.instanceType": "g7e.48xlarge", "prices.gpuNodes": None}.items()


def test_fewer_described_nodes_keep_their_own_price_and_the_limit(raw: dict[str, Any]) -> None:
    raw = on_existing_cluster(raw, {"kind": "nvme"}) | {"prices": {"gpuNodes": 10.0}, "maxHourlyPrice": 25}
    raw["gpuNodes"]["count"] = 4
    problem = refused(raw)
    assert "GPU nodes that keep it:\n- 2 x 8 x H100 80 GB" in problem.allowed
    assert [(dotted(mend.path), mend.value) for mend in problem.mends] == [("gpuNodes.count", 2)]
    raw["gpuNodes"]["count"] = 2
    assert plan(raw, api_key_given=True).price.total_per_hour == pytest.approx(20)
