"""What to run: from the quality that is wanted, the load and the money to a ranked list, the smaller model first.

The ladder is climbed one rung at a time: a model is worth its price only where a smaller one was measured and
failed. Quality is told by total parameters, which is all that can be said without the user's own evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from planner.alternatives import Alternative, alternatives
from planner.compare import COMPARED, checkpoints
from planner.hardware import H100, H200
from planner.kernels import runs
from planner.models import Model
from planner.overhead import Load
from planner.pricing import Price
from planner.throughput import Throughput, stated

Tier = Literal["good-enough", "high", "frontier"]
# Total parameters from which a model belongs to a tier. The models of the ladder: 8-35B, 229-397B, 744B and more.
TIERS: dict[Tier, float] = {"good-enough": 0.0, "high": 100e9, "frontier": 600e9}
# Beside the compared families one of the same size with a longer context.
CANDIDATES = (*COMPARED, "qwen3-235b-a22b-instruct-2507")

LARGEST = max(model.total_parameters for model in checkpoints(CANDIDATES))

StackPrice = Callable[[Model, Alternative], Price]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is wanted. `budget` in USD per hour for the whole stack; `api_price` in USD per million tokens."""

    quality: Tier
    load: Load
    concurrency: int = 1
    budget: float | None = None
    sovereignty: bool = False
    failed: tuple[Model, ...] = ()
    api_price: float | None = None
    statements: tuple[Throughput, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A checkpoint on hardware that holds it, and the bill of the whole stack."""

    model: Model
    hardware: Alternative
    price: Price

    @property
    def confirmed(self) -> bool:
        """Whether vLLM is known to have kernels for it."""
        gpu = self.hardware.instance.gpu
        return gpu is not None and runs(self.model, gpu).verdict == "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An offer with its place in the list and the reasons for it."""

    rank: int
    offer: Offer
    reasons: tuple[str, ...]
    stated: Throughput | None
    api_price: float | None

    @property
    def usd_per_million(self) -> float | None:
        """USD of the whole stack per million output tokens at the stated throughput; None where none is stated."""
        return None if self.stated is None else self.stated.usd_per_million(self.offer.price.total_per_hour)

    @property
    def break_even_tokens_per_day(self) -> float | None:
        """Tokens per day from which the stack is cheaper than the API; None without an API price."""
        if self.api_price is None:
            return None
        return self.offer.price.total_per_hour * 24 / self.api_price * 1e6

    @property
    def break_even_tokens_per_second(self) -> float | None:
        """The same, served evenly around the clock."""
        tokens = self.break_even_tokens_per_day
        return None if tokens is None else tokens / 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """A model that is not recommended, and why."""

    title: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The ranked choices, what was left out, and the conditions under which the largest models pay.

    `instead`: what to type where there is no choice; None where there is one, or nothing that would do.
    """

    choices: tuple[Choice, ...]
    excluded: tuple[Excluded, ...]
    conditions: tuple[str, ...]
    instead: str | None = None


def recommend(wish: Wish, stack_price: StackPrice) -> Advice:
    """Rank models and hardware. `stack_price` tells the bill of the whole stack on given GPU nodes."""
    kept: list[Offer] = []
    excluded: list[Excluded] = []
    for family in ladder(wish):
        offers = _offers(family, wish, stack_price)
        affordable = tuple(offer for offer in offers if within(offer.price, wish.budget))
        if affordable:
            kept.extend(_shown(affordable))
        else:
            excluded.append(Excluded(title=family[0].title, reason=_why_not(family, offers, wish)))
    choices = tuple(
        Choice(
            rank=rank,
            offer=offer,
            reasons=tuple(_reasons(offer, tuple(kept), wish)),
            stated=stated(wish.statements, offer.model.name, offer.hardware.instance.name),
            api_price=wish.api_price,
        )
        for rank, offer in enumerate(kept, start=1)
    )
    return Advice(choices=choices, excluded=tuple(excluded), conditions=tuple(_conditions(wish, choices)))


def within(price: Price, budget: float | None) -> bool:
    """Whether a bill keeps a budget, compared at the cent that is shown; None is no budget."""
    return round(price.total_per_hour, 2) <= round(math.inf if budget is None else budget, 2)


def tier(model: Model) -> Tier:
    """The rung of the ladder on which a model stands."""
    return max((name for name in TIERS if TIERS[name] <= model.total_parameters), key=lambda name: TIERS[name])


def ladder(wish: Wish) -> tuple[tuple[Model, ...], ...]:
    """Families of the wanted tier and the one below, smallest first; where all of them failed, of the next tier."""
    largest_failed = max((model.total_parameters for model in wish.failed), default=0.0)
    families = [family for name in CANDIDATES if (family := checkpoints((name,)))]
    families = [family for family in families if family[0].total_parameters > largest_failed]
    families.sort(key=lambda family: family[0].total_parameters)
    names = list(TIERS)
    for highest in range(names.index(wish.quality), len(names)):
        rungs = names[max(0, highest - 1) : highest + 1]
        found = tuple(family for family in families if tier(family[0]) in rungs)
        if found:
            return found
    return ()


def _offers(family: tuple[Model, ...], wish: Wish, stack_price: StackPrice) -> tuple[Offer, ...]:
    """One offer an instance type: the fewest nodes, then the most bytes a weight. The best come first."""
    best: dict[str, Offer] = {}
    for model in sorted(family, key=lambda model: -model.weights.expert_bytes - model.weights.linear_bytes):
        if model.context_tokens < wish.load.max_model_len:
            continue
        for item in alternatives(model, replace(wish.load, max_num_seqs=wish.concurrency), wish.concurrency):
            name, price = item.instance.name, stack_price(model, item)
            fewer = name not in best or item.nodes < best[name].hardware.nodes
            if fewer and "gpuNodes" not in price.unknown:
                best[name] = Offer(model=model, hardware=item, price=price)
    return tuple(sorted(best.values(), key=_preference))


def _preference(offer: Offer) -> tuple[bool, bool, float]:
    """One node goes before several: nothing then depends on the fabric, and no stage waits for another."""
    return not offer.confirmed, offer.hardware.nodes > 1, offer.price.total_per_hour


def _shown(offers: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """The best and the cheapest; where two nodes of H100 are among the offers, these and one node of H200 too."""
    best, cheapest = offers[0], min(offers, key=lambda offer: offer.price.total_per_hour)
    shapes = {(offer.hardware.instance.gpu, offer.hardware.nodes): offer for offer in offers}
    pair = (shapes.get((H200, 1)), shapes.get((H100, 2))) if (H100, 2) in shapes else ()
    return tuple(offer for offer in offers if offer in (best, cheapest, *pair))


def _why_not(family: tuple[Model, ...], offers: tuple[Offer, ...], wish: Wish) -> str:
    """Why nothing of a family is recommended."""
    context = max(model.context_tokens for model in family)
    if context < wish.load.max_model_len:
        return f"its context is {context:,} tokens, {wish.load.max_model_len:,} are wanted"
    if not offers:
        load = f"{wish.concurrency} requests of {wish.load.max_model_len:,} tokens at once"
        return f"{load} fit on no hardware whose price is known"
    cheapest = min(offer.price.total_per_hour for offer in offers)
    return f"the cheapest stack costs at least {cheapest:.2f} USD/h, above the budget of {wish.budget:.2f}"


def _reasons(offer: Offer, kept: tuple[Offer, ...], wish: Wish) -> Iterator[str]:
    model, hardware = offer.model, offer.hardware
    if offer is kept[0]:
        yield "the smallest that is left: measure this one first"
    if list(TIERS).index(tier(model)) < list(TIERS).index(wish.quality):
        yield f"below {wish.quality}: ruled out by nothing but --measured-failure-of {model.family}"
    yield f"{hardware.fit.concurrent_requests:.0f} requests of {hardware.fit.max_model_len:,} tokens at once"
    if hardware.nodes == 1:
        yield "one node: nothing depends on a fabric between nodes"
        for other in (other for other in kept if other.model.family == model.family and other.hardware.nodes > 1):
            saved = other.price.total_per_hour - offer.price.total_per_hour
            than = f"than {other.hardware.nodes} x {other.hardware.instance.name}"
            yield f"{abs(saved):.2f} USD/h {'less' if saved > 0 else 'more'} {than}"
    else:
        yield f"{hardware.nodes} nodes: pipeline stages talk over the fabric"
    if not offer.confirmed and hardware.instance.gpu:
        yield f"not confirmed that it runs: {runs(model, hardware.instance.gpu).why}"


def _conditions(wish: Wish, choices: tuple[Choice, ...]) -> Iterator[str]:
    """The three conditions under which a large model of one's own pays."""
    if wish.failed:
        names = ", ".join(model.title for model in wish.failed)
        yield f"Smaller models: measured to fail: {names}. What is no larger is left out."
        if not choices and max(model.total_parameters for model in wish.failed) >= LARGEST:
            yield "Nothing in the comparison is larger: what is left is an API, or another model in the catalogue."
    else:
        yield "Smaller models: none is known to fail. Measure rank 1 before paying for more (--measured-failure-of)."
    if wish.api_price is None:
        yield "Volume: give --api-price (USD per million tokens) to see from how many tokens a day a stack is cheaper."
    elif choices:
        yield f"Volume: each row says from how many tokens a day it beats {wish.api_price:g} USD per million tokens."
    if wish.sovereignty:
        yield "Sovereignty: data may not leave, so that an API is no option whatever it costs."
    else:
        yield "Sovereignty: not asked for (--sovereignty), so that below the break-even an API is the cheaper one."
