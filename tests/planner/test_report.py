"""The plan as text and as data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner import plan, report
from tests.planner.test_weight_rules import on_existing_cluster


def text(raw: dict[str, Any]) -> str:
    return report.plain_text(report.render(plan(raw, api_key_given=True)))


def test_plain_text_holds_no_control_sequence_and_at_most_100_columns(raw: dict[str, Any]) -> None:
    lines = text(raw).splitlines()
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) <= 100


def test_the_text_shows_memory_by_stage_kv_tokens_and_price_by_part(raw: dict[str, Any]) -> None:
    shown = text(raw)
    serving = plan(raw, api_key_given=True).serving
    assert serving is not None
    assert all(f"{stage.weights_gib:.1f}" in shown for stage in serving.fit.stages)
    assert f"{serving.fit.kv_tokens:,} KV tokens" in shown
    assert "gpuNodes" in shown
    assert "110.08" in shown
    assert "Total: at least 112.13 USD per hour" in shown


def test_a_complete_bill_is_no_lower_bound(raw: dict[str, Any]) -> None:
    raw["prices"] = {"weightCache": 0.6, "natTraffic": 0.1, "logs": 0.05}
    assert "at least" not in text(raw)


def test_a_paused_stack_says_so(raw: dict[str, Any]) -> None:
    raw["gpuNodes"]["count"] = 0
    assert "paused" in text(raw)


def test_a_paused_stack_on_an_existing_cluster_costs_nothing_of_its_own(raw: dict[str, Any]) -> None:
    stack = on_existing_cluster(raw, {"kind": "nvme"})
    stack["gpuNodes"] = {**stack["gpuNodes"], "count": 0}
    assert "Total: nothing that the stack makes" in text(stack)


def test_the_summary_is_plain_data(raw: dict[str, Any]) -> None:
    summary = report.summary(plan(raw, api_key_given=True))
    assert json.loads(json.dumps(summary)) == summary
    assert summary["model"] == "moonshotai/Kimi-K2.5"


def test_a_region_without_prices_has_no_total_and_says_how_to_read_them(raw: dict[str, Any]) -> None:
    raw["platform"] |= {"region": "us-west-2", "availabilityZone": "us-west-2b"}
    shown = " ".join(text(raw).split())
    assert "Total: unknown, as the price of every part" in shown
    assert shown.count("price --refresh --region us-west-2 --write") == 1
    assert "at an unknown price" in shown
    assert "0.00 USD" not in shown


def test_a_lower_bound_names_what_it_leaves_out(raw: dict[str, Any]) -> None:
    assert "without weightCache, natTraffic, logs" in " ".join(text(raw).split())


def test_the_outputs_say_what_the_first_token_costs(raw: dict[str, Any]) -> None:
    summary = report.summary(plan(raw, api_key_given=True))
    ways = summary["firstToken"]
    assert isinstance(ways, dict)
    assert ways["after_staging"].startswith("after about 63 min and at least ")
    assert "68 GPU-minutes paid while waiting for weights" in ways["overlap"]
    raw["gpuNodes"]["count"] = 0
    assert "firstToken" not in report.summary(plan(raw, api_key_given=True))


def test_the_plan_names_what_would_fit_too(raw: dict[str, Any]) -> None:
    made = plan(raw, api_key_given=True)
    assert "p5en.48xlarge" in [item.instance.name for item in made.alternatives]
    assert made.instance not in [item.instance for item in made.alternatives]
    text = report.plain_text(report.render(made))
    assert "Would fit too, GPU nodes alone:" in text
    assert "1 x p5en.48xlarge, TP 8 x PP 1" in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "32 x vpc.amazonaws.com/efa a node. All-reduce over all GPUs before serving: serving needs 150 GB/s"),
        ({"fabric": {"gate": "warn"}}, "it only warns"),
        ({"fabric": {"gate": "skip"}}, "Not tested: fabric.gate is skip"),
        (
            {"gpuNodes": {"instanceType": "p5en.48xlarge", "count": 1}},
            "One node: the test covers the links between its",
        ),
    ],
)
def test_the_plan_says_what_the_fabric_test_wants_to_see(
    raw: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    assert said in report.fabric_line(plan(raw | changes, api_key_given=True))
