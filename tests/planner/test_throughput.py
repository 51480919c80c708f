"""Stated throughputs: forms, refusals, and which statement counts."""

from __future__ import annotations

import pytest

from planner.refusals import RefusedError
from planner.throughput import Throughput, parse, stated


@pytest.mark.parametrize(
    ("text", "model", "instance", "number", "source"),
    [
        ("2400", None, None, 2400.0, "stated without a source"),
        ("kimi-k2.5=2.4e3", "kimi-k2.5", None, 2400.0, "stated without a source"),
        ("kimi-k2.5@p5.48xlarge=2400, ours, of May", "kimi-k2.5", "p5.48xlarge", 2400.0, "ours, of May"),
    ],
)
def test_a_statement_names_model_hardware_number_and_source(
    text: str, model: str | None, instance: str | None, number: float, source: str
) -> None:
    assert parse(text) == Throughput(tokens_per_second=number, source=source, model=model, instance=instance)


@pytest.mark.parametrize("text", ["", "fast", "0", "-3", "nan", "inf", "kimi-k2.5=", "kimi-k2.5"])
def test_what_is_no_number_above_zero_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match=r"0\.001 to 1e9"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [("kimi=5", "kimi-k2.5=5"), ("@p5.48xlarge=5", "kimi-k2.5@p5.48xlarge=5"), ("glm-5@p5=5", "glm-5@p5.48xlarge=5")],
)
def test_an_unknown_model_or_instance_is_refused_with_what_is_known(text: str, allowed: str) -> None:
    with pytest.raises(RefusedError, match=allowed):
        parse(text)


def test_the_most_exact_statement_counts() -> None:
    every, model, exact = parse("1"), parse("glm-5=2"), parse("glm-5@p5.48xlarge=3")
    assert stated((exact, every, model), "glm-5", "p5.48xlarge") is exact
    assert stated((exact, every, model), "glm-5", "p5en.48xlarge") is model
    assert stated((exact, every, model), "kimi-k2.5", "p5.48xlarge") is every
    assert stated((exact, model), "kimi-k2.5", "p5.48xlarge") is None


def test_a_million_tokens_cost_the_time_that_they_take() -> None:
    assert parse("1000").usd_per_million(36.0) == pytest.approx(10.0)
