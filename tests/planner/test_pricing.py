"""The bill: parts, unknown prices, overrides."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from planner import plan
from planner.bill_lines import Purchase
from planner.pricing import PART_NAMES, Price, PricePart, price


def bill(raw: dict[str, Any]) -> Price:
    return plan(raw, api_key_given=True).price


def part(whole: Price, name: str) -> PricePart:
    return next(part for part in whole.parts if part.name == name)


def test_every_part_of_the_stack_is_on_the_bill(raw: dict[str, Any]) -> None:
    on_fsx = {part.name for part in bill(raw).parts}
    raw["weights"] = {"kind": "nvme", "revision": raw["weights"]["revision"]}
    on_disks = {part.name for part in bill(raw).parts}
    assert on_fsx | on_disks == set(PART_NAMES)
    assert on_disks - on_fsx == {"scratchThroughput"}


def test_weights_on_the_nodes_disks_cost_the_bucket_and_the_scratch_disks(raw: dict[str, Any]) -> None:
    raw["weights"] = {"kind": "nvme", "revision": raw["weights"]["revision"]}
    assert part(bill(raw), "weightCache").per_hour == pytest.approx(595 * 0.023 / 730)
    assert part(bill(raw), "scratchThroughput").per_hour == pytest.approx(2 * 375 * 0.04 / 730)


def test_a_bucket_of_the_users_own_is_not_on_the_bill(raw: dict[str, Any]) -> None:
    source = {"kind": "s3", "bucket": "models"}
    raw["weights"] = {"kind": "nvme", "revision": raw["weights"]["revision"], "source": source}
    assert not {"weightCache", "scratchThroughput"} & {part.name for part in bill(raw).parts}


def test_the_total_is_the_sum_of_what_is_known(raw: dict[str, Any]) -> None:
    found = bill(raw)
    gpus, system = 2 * 55.04, 2 * 0.9072
    volumes = 4 * 200 * 0.08 / 730
    assert found.total_per_hour == pytest.approx(gpus + system + 0.10 + 0.045 + 0.005 + volumes)


def test_an_unconfirmed_price_is_unknown_and_makes_the_bill_incomplete(raw: dict[str, Any]) -> None:
    found = bill(raw)
    assert part(found, "weightCache").per_hour is None
    assert not found.complete


def test_a_price_in_the_stack_file_replaces_a_part(raw: dict[str, Any]) -> None:
    raw["prices"] = {"gpuNodes": 40.0, "weightCache": 0.6, "natTraffic": 0.1, "logs": 0.05}
    found = bill(raw)
    assert part(found, "gpuNodes").per_hour == pytest.approx(80.0)
    assert part(found, "weightCache").per_hour == pytest.approx(2400 * 0.6 / 730)
    assert found.complete


def test_every_known_price_says_where_and_when_it_was_read(raw: dict[str, Any]) -> None:
    for line in bill(raw).parts:
        assert line.source
        if line.unit_price is not None:
            assert line.date.startswith("202")


def test_reference_prices_hold_in_their_own_region_only(raw: dict[str, Any]) -> None:
    raw["platform"] |= {"region": "us-west-2", "availabilityZone": "us-west-2b"}
    found = bill(raw)
    assert found.total_per_hour == 0
    assert not found.complete


def test_an_existing_network_adds_no_gateway(raw: dict[str, Any]) -> None:
    subnets = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
    raw["platform"]["network"] = {
        "kind": "existing",
        "vpcId": "vpc-0123456789abcdef0",
        "controlPlaneSubnetIds": subnets,
        "gpuSubnetId": subnets[0],
    }
    assert {"natGateway", "natTraffic", "publicIpv4"}.isdisjoint(part.name for part in bill(raw).parts)


def test_a_paused_stack_pays_no_gpu_nodes(raw: dict[str, Any]) -> None:
    raw["gpuNodes"]["count"] = 0
    assert "gpuNodes" not in {part.name for part in bill(raw).parts}
    assert bill(raw).total_per_hour < 3


def test_a_month_has_730_hours(raw: dict[str, Any]) -> None:
    found = bill(raw)
    assert found.total_per_month == pytest.approx(730 * found.total_per_hour)


def on(raw: dict[str, Any], day: str, purchase: Purchase | None = None) -> Price:
    """The bill as of a day, with the GPU nodes bought in another way if told so."""
    found = plan(raw, api_key_given=True)
    today = datetime.date.fromisoformat(day)
    return price(found.settings, found.instance, purchase=purchase, today=today)


@pytest.mark.parametrize(("day", "usd"), [("2027-03-27", 0.10), ("2027-03-28", 0.60)])
def test_the_control_plane_costs_more_after_standard_support(raw: dict[str, Any], day: str, usd: float) -> None:
    assert part(on(raw, day), "controlPlane").per_hour == usd


@pytest.mark.parametrize(("day", "stale"), [("2026-10-18", False), ("2026-10-19", True)])
def test_a_price_older_than_90_days_is_marked(raw: dict[str, Any], day: str, stale: bool) -> None:
    assert part(on(raw, day), "gpuNodes").stale is stale


def test_a_price_of_the_stack_file_is_never_old(raw: dict[str, Any]) -> None:
    raw["prices"] = {"gpuNodes": 40.0}
    assert not part(on(raw, "2030-01-01"), "gpuNodes").stale


def test_a_reservation_costs_the_on_demand_price(raw: dict[str, Any]) -> None:
    reserved = part(on(raw, "2026-12-01", "reservation"), "gpuNodes")
    assert reserved.per_hour == pytest.approx(110.08)
    assert "used or not" in reserved.title


def test_a_capacity_block_is_paid_upfront_at_a_price_that_nobody_confirms(raw: dict[str, Any]) -> None:
    block = part(on(raw, "2026-12-01", "capacity_block"), "gpuNodes")
    assert block.per_hour is None
    assert "upfront" in block.title
    assert "39.33 USD per hour is not confirmed" in block.source
    assert "gpuNodes" in on(raw, "2026-12-01", "capacity_block").unknown


def test_a_confirmed_fsx_price_is_by_capacity_and_throughput(raw: dict[str, Any]) -> None:
    raw["weights"] |= {"throughputPerTib": 125, "capacityGib": 9600}
    assert part(bill(raw), "weightCache").per_hour == pytest.approx(9600 * 0.145 / 730)


def test_what_depends_on_use_is_unknown_and_says_its_rate(raw: dict[str, Any]) -> None:
    for name, rate in (("logs", "0.5 USD per GB"), ("natTraffic", "0.045 USD per GB")):
        assert part(bill(raw), name).per_hour is None
        assert rate in part(bill(raw), name).source
