"""What of a wish may give way where nothing keeps all of it: the first thing that has been tried and is enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from planner.alternatives import MOST_NODES, Alternative, study
from planner.hardware import GPU_TYPES, InstanceType
from planner.kernels import runs
from planner.models import Model
from planner.recommend import TIERS, StackPrice, Wish, ladder, recommend, within

SHORTEST_CONTEXT = 1024


def relaxation(wish: Wish, stack_price: StackPrice) -> str | None:
    """What to type instead; None where no price of any GPU node is known."""
    found = next(_one_thing(wish, stack_price), None)
    if found is not None:
        return found
    modest = replace(wish, concurrency=1, budget=None, failed=())
    further = "" if _holds(modest, stack_price) else next(_one_thing(modest, stack_price), None)
    if further is None:
        return None
    left_out = [flag for flag, given in (("--budget", wish.budget), ("--measured-failure-of", wish.failed)) if given]
    without = f", and leave out {' and '.join(left_out)}" if left_out else ""
    return f"{f'--concurrency 1 {further}'.strip()}{without}"


def _one_thing(wish: Wish, stack_price: StackPrice) -> Iterator[str]:
    """One flag that is enough by itself: money, requests, their length, what failed, quality."""
    if wish.budget is not None and (offers := recommend(replace(wish, budget=None), stack_price).choices):
        yield f"--budget {math.ceil(min(choice.offer.price.total_per_hour for choice in offers))}"
    fewer = max(1, _most_requests(wish, stack_price))
    if fewer < wish.concurrency and _holds(replace(wish, concurrency=fewer), stack_price):
        yield f"--concurrency {fewer}"
    if _holds(_of_length(wish, SHORTEST_CONTEXT), stack_price):
        holding = (length for length in _shorter(wish) if _holds(_of_length(wish, length), stack_price))
        yield f"--context {next(holding)}"
    if wish.failed and _holds(replace(wish, failed=()), stack_price):
        yield "leave out --measured-failure-of"
    for quality in TIERS:
        if quality != wish.quality and _holds(replace(wish, quality=quality), stack_price):
            yield f"--quality {quality}"


def _of_length(wish: Wish, length: int) -> Wish:
    return replace(wish, load=replace(wish.load, max_model_len=length))


def _shorter(wish: Wish) -> list[int]:
    """Shorter contexts, longest first: those of the models, and powers of two."""
    lengths = {model.context_tokens for family in ladder(wish) for model in family} | {
        2**power for power in range(10, 24)
    }
    return sorted((length for length in lengths if length < wish.load.max_model_len), reverse=True)


def _holds(wish: Wish, stack_price: StackPrice) -> bool:
    """Whether anything is recommended."""
    return any(
        _requests(model, instance, nodes, wish) >= wish.concurrency
        for model, instance, nodes in _largest(wish, stack_price)
    )


def _most_requests(wish: Wish, stack_price: StackPrice) -> int:
    """How many requests fit at once on the largest nodes within the budget, in two figures."""
    one = replace(wish, concurrency=1)
    largest = [
        (_requests(model, kind, nodes, one), model, kind, nodes) for model, kind, nodes in _largest(one, stack_price)
    ]
    best = 0
    for bound, model, kind, nodes in sorted(largest, key=lambda item: -item[0]):
        if bound <= best:
            break
        low, high = best, int(bound)
        while low < high:
            middle = (low + high + 1) // 2
            holds = _requests(model, kind, nodes, replace(wish, concurrency=middle)) >= middle
            low, high = (middle, high) if holds else (low, middle - 1)
        best = low
    return best if best < 100 else best // 10 ** (len(str(best)) - 2) * 10 ** (len(str(best)) - 2)


def _requests(model: Model, instance: InstanceType, nodes: int, wish: Wish) -> float:
    """Requests of full length at once, were so many sequences run; 0 where the model does not fit."""
    fit = study(model, instance, nodes, replace(wish.load, max_num_seqs=wish.concurrency))
    return fit.concurrent_requests if fit is not None and fit.fits else 0.0


def _largest(wish: Wish, stack_price: StackPrice) -> Iterator[tuple[Model, InstanceType, int]]:
    """Each model of the ladder that takes the context, on the most nodes that the budget allows."""
    for model in (model for family in ladder(wish) for model in family):
        if model.context_tokens < wish.load.max_model_len:
            continue
        for kind in GPU_TYPES.values():
            if kind.gpu is None or runs(model, kind.gpu).verdict == "no":
                continue
            counts = range(MOST_NODES if kind.efa else 1, 0, -1)
            nodes = next((count for count in counts if _affordable(model, kind, count, wish, stack_price)), None)
            if nodes is not None:
                yield model, kind, nodes


def _affordable(model: Model, kind: InstanceType, nodes: int, wish: Wish, stack_price: StackPrice) -> bool:
    fit = study(model, kind, nodes, wish.load)
    if fit is None:
        return False
    price = stack_price(model, Alternative(instance=kind, nodes=nodes, fit=fit))
    return "gpuNodes" not in price.unknown and within(price, wish.budget)
