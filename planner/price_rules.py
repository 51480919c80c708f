"""The rules about prices in a stack file: overrides belong to a part, and `maxHourlyPrice` is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner import checks, pricing
from planner.alternatives import Alternative
from planner.hardware import InstanceType
from planner.overhead import Load
from planner.platform_settings import EksPlatform
from planner.pricing import Price
from planner.problems import Mend, Path, Problem
from planner.rules import Facts, Rule, path
from planner.serving_rules import MEMORY_READS, NAMED_ALTERNATIVES, fitting, hardware_mends
from planner.settings import Deployment

LIMIT = path("maxHourlyPrice")


def bill_of(facts: Facts) -> Price:
    """The bill of the stack as configured."""
    return pricing.price(facts.settings, facts.instance)


def on_nodes(settings: Deployment, now: InstanceType, instance: InstanceType, nodes: int) -> Deployment:
    """The same stack with other GPU nodes than `now`. A price of the file's own is one of its own instance type."""
    changed: dict[str, object] = {"count": nodes}
    own = settings.prices
    if instance.name != now.name:
        changed["instance_type"] = instance.name
        own = {name: usd for name, usd in own.items() if name != "gpuNodes"}
    return settings.model_copy(update={"gpu_nodes": settings.gpu_nodes.model_copy(update=changed), "prices": own})


def prices_are_of_parts(facts: Facts) -> Iterator[Problem]:
    """A price belongs to a part of the bill."""
    for name, usd in facts.settings.prices.items():
        if name not in pricing.PART_NAMES:
            place: Path = ("prices", name)
            meant = checks.closest(name, pricing.PART_NAMES)
            mends = (Mend(place, None), *((Mend(("prices", meant), usd),) if meant else ()))
            yield Problem(path=place, given=usd, allowed=f"a part: {', '.join(pricing.PART_NAMES)}", mends=mends)


def price_within_limit(facts: Facts) -> Iterator[Problem]:
    """The parts whose price is known cost no more than `maxHourlyPrice`."""
    limit = facts.settings.max_hourly_price
    if limit is None:
        return
    bill = bill_of(facts)
    if "gpuNodes" in bill.unknown:
        platform = facts.settings.platform
        where = f" in {platform.region}" if isinstance(platform, EksPlatform) else ""
        reading = " or read it with `python -m planner price --refresh`" if where else ""
        allowed = (
            f"a limit that can be checked: the price of {facts.instance.name}{where} is unknown. Give it as "
            f"prices.gpuNodes (USD per node-hour){reading}"
        )
        yield Problem(path=LIMIT, given=limit, allowed=allowed, mends=(Mend(LIMIT, None),))
    elif _cents(bill.total_per_hour) > _cents(limit):
        cheaper = tuple(_cheaper(facts, limit))
        parts = ", ".join(f"{part.name} {part.per_hour:.2f}" for part in bill.parts if part.per_hour is not None)
        unknown = f"; {', '.join(bill.unknown)} unknown" if bill.unknown else ""
        fits = "\n".join(f"- {item}" for item in cheaper[:NAMED_ALTERNATIVES])
        offer = f"GPU nodes that keep it:\n{fits}" if fits else "No GPU nodes on which the model fits keep it."
        highest = Mend(LIMIT, math.ceil(bill.total_per_hour))
        yield Problem(
            path=LIMIT,
            given=f"{limit:g} USD per hour",
            allowed=f"at least {bill.total_per_hour:.2f}, what the stack costs by the hour ({parts}{unknown}). {offer}",
            mends=hardware_mends(facts, cheaper) if cheaper else (highest,),
        )


def _cheaper(facts: Facts, limit: float) -> Iterator[Alternative]:
    """GPU nodes on which the model fits and with which the stack keeps the limit."""
    for item in fitting(facts, Load.of(facts.settings.serving)):
        settings = on_nodes(facts.settings, facts.instance, item.instance, item.nodes)
        bill = pricing.price(settings, item.instance)
        if "gpuNodes" not in bill.unknown and _cents(bill.total_per_hour) <= _cents(limit):
            yield item


def _cents(usd: float) -> int:
    """As bills show it: a limit that reads like the total is kept."""
    return round(100 * usd)


PRICE_RULES: tuple[Rule, ...] = (Rule(prices_are_of_parts, (path("prices"),)),)
LIMIT_RULES: tuple[Rule, ...] = (
    Rule(price_within_limit, (LIMIT, path("prices"), path("platform"), path("weights"), *MEMORY_READS)),
)
