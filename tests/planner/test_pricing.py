"""The bill: parts, unknown prices, overrides."""

from __future__ import annotations

from typing import Any

import pytest

from planner import plan
from planner.pricing import PART_NAMES, Price, PricePart


def bill(raw: dict[str, Any]) -> Price:
    return plan(raw, api_key_given=True).price


def part(price: Price, name: str) -> PricePart:
    return next(part for part in price.parts if part.name == name)


def test_every_part_of_the_stack_is_on_the_bill(raw: dict[str, Any]) -> None:
    assert tuple(part.name for part in bill(raw).parts) == PART_NAMES


def test_the_total_is_the_sum_of_what_is_known(raw: dict[str, Any]) -> None:
    price = bill(raw)
    gpus, system = 2 * 55.04, 2 * 0.9072
    volumes = 4 * 200 * 0.08 / 730
    assert price.total_per_hour == pytest.approx(gpus + system + 0.10 + 0.045 + 0.005 + volumes)


def test_an_unconfirmed_price_is_unknown_and_makes_the_bill_incomplete(raw: dict[str, Any]) -> None:
    price = bill(raw)
    assert part(price, "weightCache").per_hour is None
    assert not price.complete


def test_a_price_in_the_stack_file_replaces_a_part(raw: dict[str, Any]) -> None:
    raw["prices"] = {"gpuNodes": 40.0, "weightCache": 0.6, "natTraffic": 0.1, "logs": 0.05}
    price = bill(raw)
    assert part(price, "gpuNodes").per_hour == pytest.approx(80.0)
    assert part(price, "weightCache").per_hour == pytest.approx(2400 * 0.6 / 730)
    assert price.complete


def test_every_known_price_says_where_and_when_it_was_read(raw: dict[str, Any]) -> None:
    for line in bill(raw).parts:
        assert line.source
        if line.unit_price is not None:
            assert line.date.startswith("202")


def test_reference_prices_hold_in_their_own_region_only(raw: dict[str, Any]) -> None:
    raw["platform"] |= {"region": "us-west-2", "availabilityZone": "us-west-2b"}
    price = bill(raw)
    assert price.total_per_hour == 0
    assert not price.complete


def test_an_existing_network_adds_no_gateway(raw: dict[str, Any]) -> None:
    subnets = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
    raw["platform"]["network"] = {
        "kind": "existing",
        "vpcId": "vpc-0123456789abcdef0",
        "controlPlaneSubnetIds": subnets,
        "gpuSubnetId": subnets[0],
    }
    assert {"natGateway", "publicIpv4"}.isdisjoint(part.name for part in bill(raw).parts)


def test_a_paused_stack_pays_no_gpu_nodes(raw: dict[str, Any]) -> None:
    raw["gpuNodes"]["count"] = 0
    assert "gpuNodes" not in {part.name for part in bill(raw).parts}
    assert bill(raw).total_per_hour < 3
