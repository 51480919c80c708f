"""The planner against published and measured start-ups: the medians that it has to keep."""

from __future__ import annotations

import statistics

from bench import memory_accuracy


def medians(names: tuple[str, ...]) -> list[float]:
    certain = [item for item in memory_accuracy.outcomes() if item.certain]
    errors = ([abs(error) for item in certain if (error := getattr(item, name)) is not None] for name in names)
    return [statistics.median(found) for found in errors]


def test_weights_are_within_2_percent_and_kv_tokens_within_5() -> None:
    weights, kv_gib, kv_tokens = medians(("weights", "kv_gib", "kv_tokens"))
    assert weights < 0.02
    assert kv_gib < 0.05
    assert kv_tokens < 0.05


def test_published_runs_alone_keep_the_medians() -> None:
    """Not only what was measured here, which the constants were read off."""
    found = [item for item in memory_accuracy.outcomes() if item.certain and not item.name.startswith("h200-")]
    tokens = [abs(item.kv_tokens) for item in found if item.kv_tokens is not None]
    assert statistics.median(tokens) < 0.05
