"""What it costs until the first token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner import plan, report
from planner.report_timeline import render_first_token
from planner.tables import plain_text
from planner.timeline import FirstToken, Pace, Phase, starts, until_first_token
from planner.weight_settings import Start
from tests.planner.test_weight_rules import on_existing_cluster

AROUND = 2.0521
GPUS = 110.08


def way(raw: dict[str, Any], pace: Pace | None = None, start: Start | None = None) -> FirstToken:
    found = until_first_token(plan(raw, api_key_given=True), pace, start)
    assert found is not None
    return found


def phase(found: FirstToken, name: str) -> Phase:
    return next(phase for phase in found.phases if phase.name == name)


def test_no_gpu_is_paid_before_the_weights_are_there(raw: dict[str, Any]) -> None:
    found = way(raw)
    assert [phase.name for phase in found.phases] == ["platform", "staging", "boot", "load"]
    assert [phase.gpus_paid for phase in found.phases] == [False, False, True, True]
    assert phase(found, "staging").usd_per_hour == pytest.approx(AROUND, abs=0.001)
    assert phase(found, "load").usd_per_hour == pytest.approx(AROUND + GPUS, abs=0.001)


def test_the_sum_is_every_phase_and_the_weights_through_nat_once(raw: dict[str, Any]) -> None:
    found = way(raw)
    assert found.download_usd == pytest.approx(595.15 * 0.045, rel=1e-3)
    assert found.usd == pytest.approx(sum(phase.usd for phase in found.phases) + 595.15 * 0.045, rel=1e-4)
    assert not found.complete


@pytest.mark.parametrize(
    ("hub", "capacity", "mb_per_second", "limit"),
    [
        (516.0, 2400, 516.0, "the hub"),
        (5000.0, 2400, 2343.75, "the file system"),
        (50_000.0, 24_000, 6250.0, "the system node's network"),
    ],
)
def test_staging_is_as_fast_as_its_slowest_part(
    raw: dict[str, Any], hub: float, capacity: int, mb_per_second: float, limit: str
) -> None:
    raw["weights"]["capacityGib"] = capacity
    staging = phase(way(raw, Pace(hub_mb_per_second=hub)), "staging")
    assert staging.seconds == pytest.approx(595_150 / mb_per_second, rel=1e-3)
    assert staging.source.endswith(f"limited by {limit}")


def test_gpu_nodes_made_beside_the_staging_wait_for_as_long_as_it_outlasts_their_boot(raw: dict[str, Any]) -> None:
    found = way(raw, Pace(boot_minutes=10), "overlap")
    idle = phase(way(raw), "staging").seconds - 600
    assert found.waiting_seconds == pytest.approx(idle)
    assert found.waiting_gpu_minutes == pytest.approx(16 * idle / 60)
    assert found.waiting_usd == pytest.approx(GPUS * idle / 3600)
    assert way(raw, Pace(boot_minutes=60), "overlap").waiting_usd == 0
    assert way(raw).waiting_usd == 0, "after_staging pays for no GPU before the weights are there"


def test_the_stack_file_chooses_when_gpu_nodes_start(raw: dict[str, Any]) -> None:
    assert way(raw).start == "after_staging"
    raw["weights"]["start"] = "overlap"
    found = way(raw)
    assert (found.start, [phase.name for phase in found.phases]) == ("overlap", ["platform", "staging, boot", "load"])


def test_both_starts_are_told_and_overlap_is_quicker_and_dearer(raw: dict[str, Any]) -> None:
    after, overlap = starts(plan(raw, api_key_given=True))
    assert after.seconds > overlap.seconds
    assert after.usd < overlap.usd


def test_disks_of_the_nodes_are_filled_from_the_bucket_while_gpus_are_paid(raw: dict[str, Any]) -> None:
    raw["weights"] = {"kind": "nvme", "revision": raw["weights"]["revision"]}
    found = way(raw)
    assert [phase.name for phase in found.phases] == ["platform", "staging", "boot", "fill disks", "load"]
    assert phase(found, "staging").source.endswith("limited by the scratch disk, written and read,")
    assert phase(found, "fill disks").seconds == pytest.approx(595.15e9 / 2.9e9, rel=1e-3)
    assert phase(found, "fill disks").waiting_seconds == phase(found, "fill disks").seconds


@pytest.mark.parametrize(("minutes", "seconds"), [(10, 1153), (60, 3600)])
def test_nodes_that_are_paid_anyway_boot_beside_the_staging(raw: dict[str, Any], minutes: int, seconds: int) -> None:
    found = plan(raw, api_key_given=True)
    reserved = replace(found, price=replace(found.price, purchase="reservation"))
    line = until_first_token(reserved, Pace(boot_minutes=minutes), "overlap")
    assert line is not None
    assert [phase.name for phase in line.phases] == ["platform", "staging, boot", "load"]
    assert all(phase.gpus_paid for phase in line.phases)
    assert line.phases[1].seconds == pytest.approx(seconds, abs=1)
    assert line.waiting_seconds == pytest.approx(max(0, 1153 - minutes * 60), abs=1)


def test_an_existing_network_pays_no_nat_of_the_stacks_own(raw: dict[str, Any]) -> None:
    subnets = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
    raw["platform"]["network"] = {
        "kind": "existing",
        "vpcId": "vpc-0123456789abcdef0",
        "controlPlaneSubnetIds": subnets,
        "gpuSubnetId": subnets[0],
    }
    assert way(raw).download_gb == way(raw).download_usd == 0


def test_an_unknown_gpu_price_makes_it_a_lower_bound(raw: dict[str, Any]) -> None:
    raw["platform"] |= {"region": "us-west-2", "availabilityZone": "us-west-2b"}
    found = way(raw)
    assert found.waiting_usd is None
    assert found.download_usd is None
    assert not found.complete


def test_a_paused_stack_has_no_first_token(raw: dict[str, Any]) -> None:
    raw["gpuNodes"]["count"] = 0
    assert until_first_token(plan(raw, api_key_given=True)) is None


def test_on_nodes_that_are_there_nothing_is_started_and_an_unknown_price_is_no_zero(raw: dict[str, Any]) -> None:
    disks = text_of(on_existing_cluster(raw, {"kind": "nvme"}))
    assert "start:" not in disks
    assert "0.00" not in disks
    assert "staging" not in disks


def test_the_plan_and_the_way_to_the_first_token_agree_on_how_long_disks_take(raw: dict[str, Any]) -> None:
    stack = plan(on_existing_cluster(raw, {"kind": "nvme"}), api_key_given=True)
    (found,) = starts(stack)
    (filling,) = (phase for phase in found.phases if phase.name == "fill disks")
    assert f"filled from the Hub in about {filling.seconds / 60:.0f} min" in report.where(stack)


def test_staging_from_a_bucket_into_a_claim_takes_time(raw: dict[str, Any]) -> None:
    claim = {"kind": "existing_claim", "namespace": "models", "claim": "weights"}
    source = {"source": {"kind": "s3", "bucket": "models", "endpoint": "https://s3.example"}}
    found = way(on_existing_cluster(raw, claim | source))
    (staging,) = (phase for phase in found.phases if phase.name == "staging")
    assert staging.seconds == pytest.approx(595e9 / 12.5e9, rel=0.01)


def text_of(raw: dict[str, Any]) -> str:
    found = way(raw)
    return plain_text(render_first_token(found))
