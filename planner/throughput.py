"""Output tokens per second: always stated by the user, never invented, and what a million tokens cost at that rate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

UNSTATED = "give --tokens-per-second"
NO_SOURCE = "stated without a source"
_FORM = (
    "'NUMBER', 'MODEL=NUMBER' or 'MODEL@INSTANCE=NUMBER', each with ', SOURCE' behind it if you have one, "
    "as 'kimi-k2.5@p5.48xlarge=2400, our benchmark of 2026-11-30'"
)


class StatementError(ValueError):
    """A stated figure that is refused; the message says what is allowed."""


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


def parse(text: str, models: Iterable[str], instances: Iterable[str]) -> Throughput:
    """Read one statement. Raises StatementError."""
    figure, _, source = text.partition(",")
    left, separator, number = figure.rpartition("=")
    model, _, instance = left.strip().partition("@")
    try:
        tokens = float(number)
    except ValueError:
        tokens = math.nan
    if not 0.001 <= tokens <= 1e9:
        raise StatementError(f"{text!r} states no tokens per second; allowed: 0.001 to 1e9, as {_FORM}")
    if separator and model not in (known := tuple(models)):
        raise StatementError(f"{text!r} names no model of the catalogue; allowed: {', '.join(known)}")
    if instance and instance not in (types := tuple(instances)):
        raise StatementError(f"{text!r} names no GPU instance type; allowed: {', '.join(types)}")
    return Throughput(
        tokens_per_second=tokens, source=source.strip() or NO_SOURCE, model=model or None, instance=instance or None
    )


def stated(statements: Iterable[Throughput], model: str, instance: str) -> Throughput | None:
    """The most exact statement about a model on an instance type, None if there is none."""
    fitting = [item for item in statements if item.model in (None, model) and item.instance in (None, instance)]
    return max(fitting, key=lambda item: (item.instance is not None, item.model is not None), default=None)
