"""The hardware table: network cards and EFA interfaces, on which the launch template is built."""

from __future__ import annotations

import pytest

from planner.hardware import GPU_TYPES, SYSTEM_TYPES


@pytest.mark.parametrize(
    ("name", "cards", "efa", "first"),
    [
        ("p5.48xlarge", 32, 32, True),
        ("p5e.48xlarge", 32, 32, True),
        ("p5en.48xlarge", 16, 16, True),
        ("p5.4xlarge", 1, 1, True),
        ("p4d.24xlarge", 4, 4, True),
        ("p4de.24xlarge", 4, 4, True),
        ("p6-b200.48xlarge", 8, 8, True),
        ("p6-b300.48xlarge", 17, 16, False),
        ("g7e.48xlarge", 4, 4, True),
        ("g6e.48xlarge", 4, 4, True),
        ("g6e.2xlarge", 1, 0, False),
    ],
)
def test_efa_interfaces_of_an_instance_type(name: str, cards: int, efa: int, first: bool) -> None:
    kind = GPU_TYPES[name]
    assert (kind.network_cards, kind.efa, kind.first_card_efa) == (cards, efa, first)


def test_cuda_offers_less_than_what_the_instance_type_lists() -> None:
    for kind in GPU_TYPES.values():
        assert kind.gpu is not None
        assert 0.95 < kind.gpu.usable_gib * 1024 / kind.gpu.memory_mib <= 1


def test_a_price_that_nobody_lists_is_unknown() -> None:
    assert GPU_TYPES["p5e.48xlarge"].usd_per_hour is None


def test_system_types_hold_the_staging_job() -> None:
    for kind in SYSTEM_TYPES.values():
        assert kind.vcpus >= 16
        assert kind.memory_gib >= 32
