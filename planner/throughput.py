"""Output tokens per second: always stated by the user, never invented, and what a million tokens cost at that rate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from planner.catalogue import CATALOGUE, find
from planner.checks import nearest, spelled
from planner.hardware import GPU_TYPES
from planner.refusals import Refusal, RefusedError

FLAG = "--tokens-per-second"
UNSTATED = f"give {FLAG}"
NO_SOURCE = "stated without a source"
_FORM = (
    "'NUMBER', 'MODEL=NUMBER' or 'MODEL@INSTANCE=NUMBER', each with ', SOURCE' behind it if you have one, "
    "as 'kimi-k2.5@p5.48xlarge=2400, our benchmark of 2026-11-30'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Output tokens per second of a whole deployment. `model` and `instance` are None where any is meant."""

    tokens_per_second: float
    source: str
    model: str | None = None
    instance: str | None = None

    def usd_per_million(self, usd_per_hour: float) -> float:
        """USD per million output tokens of hardware that is busy all the time."""
        return usd_per_hour / (self.tokens_per_second * 3600) * 1e6


def parse(text: str) -> Throughput:
    """Read one statement. Raises RefusedError."""
    figure, _, source = text.partition(",")
    left, separator, number = figure.rpartition("=")
    name, _, instance = left.strip().partition("@")
    try:
        tokens = float(number)
    except ValueError:
        tokens = math.nan
    if not 0.001 <= tokens <= 1e9:
        raise _refused(text, f"0.001 to 1e9 tokens per second, as {_FORM}", f"leave out {FLAG}")
    model = find(name)
    if separator and model is None:
        allowed = f"a model of the catalogue: {', '.join(CATALOGUE)}"
        raise _refused(text, allowed, f"{FLAG} '{text.replace(name, nearest(name, CATALOGUE), 1)}'")
    instance = spelled(instance, GPU_TYPES)
    if instance and instance not in GPU_TYPES:
        allowed = f"a GPU instance type: {', '.join(GPU_TYPES)}"
        raise _refused(text, allowed, f"{FLAG} '{text.replace(instance, nearest(instance, GPU_TYPES), 1)}'")
    return Throughput(
        tokens_per_second=tokens,
        source=source.strip() or NO_SOURCE,
        model=model.name if model else None,
        instance=instance or None,
    )


def _refused(text: str, allowed: str, typed: str) -> RefusedError:
    return RefusedError((Refusal(where=FLAG, given=repr(text), allowed=allowed, type_=(typed,)),))


def stated(statements: Iterable[Throughput], model: str, instance: str) -> Throughput | None:
    """The most exact statement about a model on an instance type, None if there is none."""
    fitting = [item for item in statements if item.model in (None, model) and item.instance in (None, instance)]
    return max(fitting, key=lambda item: (item.instance is not None, item.model is not None), default=None)
