"""The recommendation: the smaller model first, the reasons, the break-even, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import memory
from planner.alternatives import Alternative
from planner.catalogue import CATALOGUE
from planner.kernels import runs
from planner.models import Model
from planner.overhead import Load
from planner.pricing import Price, PricePart
from planner.recommend import TIERS, Advice, Choice, Wish, recommend, tier
from planner.settings import Serving
from planner.throughput import Throughput

AROUND = 2.0
LOAD = replace(Load.of(Serving()), max_model_len=32_768)
FRONTIER = Wish(quality="frontier", load=LOAD)


def stack_price(model: Model, offer: Alternative) -> Price:  # noqa: ARG001 (the model does not change the bill here)
    """GPU nodes and 2 USD per hour for all else."""
    gpus = offer.usd_per_hour
    lines = (("gpuNodes", gpus), ("around", AROUND))
    parts = tuple(
        PricePart(
            name=name, title=name, quantity=1, unit="hour", unit_price=usd, per_hour=usd, source="a test", date=""
        )
        for name, usd in lines
    )
    return Price(parts=parts, total_per_hour=(gpus or 0.0) + AROUND, complete=gpus is not None)


def advise(wish: Wish) -> Advice:
    return recommend(wish, stack_price)


def families(advice: Advice) -> list[str]:
    return list(dict.fromkeys(choice.offer.model.family for choice in advice.choices))


def shapes(choices: tuple[Choice, ...], family: str) -> list[tuple[int, str]]:
    return [
        (choice.offer.hardware.nodes, choice.offer.hardware.instance.name)
        for choice in choices
        if choice.offer.model.family == family
    ]


@pytest.mark.parametrize("quality", list(TIERS))
def test_the_smaller_model_always_comes_first(quality: str) -> None:
    choices = advise(replace(FRONTIER, quality=quality)).choices  # type: ignore[arg-type]
    sizes = [choice.offer.model.total_parameters for choice in choices]
    assert sizes == sorted(sizes)
    assert [choice.rank for choice in choices] == list(range(1, len(choices) + 1))
    assert choices[0].reasons[0].startswith("the smallest")


def test_a_tier_is_told_by_total_parameters() -> None:
    by_tier = {name: tier(CATALOGUE[name]) for name in ("qwen3.5-35b-a3b", "minimax-m2.5", "glm-5", "kimi-k2.5")}
    assert list(by_tier.values()) == ["good-enough", "high", "frontier", "frontier"]


def test_the_tier_below_is_shown_until_it_was_measured_to_fail() -> None:
    first = advise(FRONTIER)
    assert families(first)[0] == "minimax-m2.5"
    assert "--measured-failure-of minimax-m2.5" in " ".join(first.choices[0].reasons)
    assert "qwen3.5-35b-a3b" not in families(first)
    after = advise(replace(FRONTIER, failed=(CATALOGUE["qwen3.5-397b-a17b-fp8"],)))
    assert families(after) == ["glm-5", "kimi-k2.5"]


def test_where_a_whole_tier_failed_the_next_one_is_recommended() -> None:
    advice = advise(Wish(quality="good-enough", load=LOAD, failed=(CATALOGUE["qwen3.5-35b-a3b"],)))
    assert advice.choices
    assert all(tier(choice.offer.model) == "high" for choice in advice.choices)


def test_one_node_of_h200_stands_beside_two_of_h100_with_the_difference() -> None:
    choices = advise(FRONTIER).choices
    found = shapes(choices, "kimi-k2.5")
    assert found.index((1, "p5en.48xlarge")) < found.index((2, "p5.48xlarge"))
    single = next(c for c in choices if c.offer.model.family == "kimi-k2.5" and c.offer.hardware.nodes == 1)
    assert f"{110.08 - 63.296:.2f} USD/h less than 2 x p5.48xlarge" in single.reasons


def test_every_choice_fits_its_load_runs_and_keeps_the_budget() -> None:
    wish = replace(FRONTIER, load=replace(LOAD, max_model_len=65_536), concurrency=8, budget=90.0)
    advice = advise(wish)
    assert advice.choices
    for choice in advice.choices:
        offer = choice.offer
        gpu = offer.hardware.instance.gpu
        assert gpu is not None
        assert runs(offer.model, gpu).verdict != "no"
        assert offer.price.total_per_hour <= 90.0
        fit = memory.fit(offer.model, gpu, offer.hardware.fit.shape, replace(wish.load, max_num_seqs=8))
        assert fit.concurrent_requests >= 8
        assert fit.shape.gpus == offer.hardware.instance.gpus * offer.hardware.nodes


def test_a_budget_of_what_is_shown_is_kept() -> None:
    (smallest, *_) = (choice.offer.price.total_per_hour for choice in advise(FRONTIER).choices)
    for budget, kept in ((round(smallest, 2), True), (round(smallest, 2) - 0.01, False)):
        totals = [choice.offer.price.total_per_hour for choice in advise(replace(FRONTIER, budget=budget)).choices]
        assert (smallest in totals) is kept


def test_more_requests_at_once_never_take_fewer_nodes() -> None:
    few, many = (advise(replace(FRONTIER, concurrency=count)) for count in (1, 40))
    for family in families(many):
        before = {name: nodes for nodes, name in shapes(few.choices, family)}
        assert all(nodes >= before.get(name, 1) for nodes, name in shapes(many.choices, family))


def test_what_is_left_out_says_why() -> None:
    advice = advise(replace(FRONTIER, load=replace(LOAD, max_model_len=200_000), budget=20.0))
    reasons = {item.title: item.reason for item in advice.excluded}
    assert "its context is 196,608 tokens, 200,000 are wanted" in reasons["MiniMax M2.5"]
    assert "above the budget of 20" in reasons["Kimi-K2.5"]
    assert not {"minimax-m2.5", "kimi-k2.5"} & set(families(advice))


def test_a_model_whose_context_is_too_short_is_never_recommended_whatever_the_budget() -> None:
    advice = advise(replace(FRONTIER, load=replace(LOAD, max_model_len=200_000)))
    assert "minimax-m2.5" not in families(advice)


def test_a_load_that_nothing_bears_is_left_out() -> None:
    advice = advise(replace(FRONTIER, concurrency=4000))
    assert advice.choices == ()
    assert "fit on no hardware whose price is known" in advice.excluded[0].reason


def test_the_break_even_is_what_the_stack_costs_a_day_at_the_price_of_the_api() -> None:
    choice = advise(replace(FRONTIER, api_price=2.0)).choices[0]
    usd = choice.offer.price.total_per_hour
    assert choice.break_even_tokens_per_day == pytest.approx(usd * 24 / 2.0 * 1e6)
    assert choice.break_even_tokens_per_second == pytest.approx(usd / 3600 / 2.0 * 1e6)
    assert advise(FRONTIER).choices[0].break_even_tokens_per_day is None


def test_a_stated_throughput_prices_a_million_tokens_of_the_whole_stack() -> None:
    said = Throughput(tokens_per_second=1000, source="ours", model="kimi-k2.5", instance="p5.48xlarge")
    choices = [c for c in advise(replace(FRONTIER, statements=(said,))).choices if c.stated]
    assert [c.offer.hardware.instance.name for c in choices] == ["p5.48xlarge"]
    assert choices[0].usd_per_million == pytest.approx((110.08 + AROUND) / 3.6)


def test_the_three_conditions_follow_what_was_said() -> None:
    unsaid = " ".join(advise(FRONTIER).conditions)
    assert "none is known to fail" in unsaid
    assert "--api-price" in unsaid
    assert "--sovereignty" in unsaid
    said = replace(FRONTIER, sovereignty=True, api_price=2.0, failed=(CATALOGUE["qwen3-235b-a22b"],))
    told = " ".join(advise(said).conditions)
    assert "measured to fail: Qwen3-235B-A22B" in told
    assert "beats 2 USD per million" in told
    assert "an API is no option" in told


def test_after_the_largest_failed_nothing_is_left_and_that_is_said() -> None:
    advice = advise(replace(FRONTIER, failed=(CATALOGUE["kimi-k2.5"],)))
    assert advice.choices == ()
    assert "Nothing in the comparison is larger" in " ".join(advice.conditions)
