"""What a model would fit on: the smallest count of each GPU instance type, cheapest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner import memory, parallelism, prices
from planner.hardware import GPU_TYPES, InstanceType
from planner.memory import Fit, Load
from planner.models import Model

# More pipeline stages than this idle each other: such a shape may fit and is still no advice.
MOST_NODES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """`nodes` of one instance type on which the model fits; the price is that of the GPU nodes alone."""

    instance: InstanceType
    nodes: int
    fit: Fit

    @property
    def usd_per_hour(self) -> float | None:
        """On-demand price of the nodes in the price table's region; None if unknown."""
        return None if self.instance.usd_per_hour is None else self.nodes * self.instance.usd_per_hour

    def __str__(self) -> str:
        """One line for a message."""
        usd = self.usd_per_hour
        cost = "price unknown" if usd is None else f"{usd:.2f} USD/h in {prices.REGION}"
        split = f"TP {self.fit.tensor_parallel} x PP {self.fit.pipeline_parallel}"
        return f"{self.nodes} x {self.instance.name}, {split}, {self.fit.kv_tokens:,} KV tokens, {cost}"


def alternatives(model: Model, load: Load) -> tuple[Alternative, ...]:
    """For each instance type the smallest count that fits: by price, unknown prices last."""
    found = [found for instance in GPU_TYPES.values() for found in _smallest(model, instance, load)]
    return tuple(sorted(found, key=lambda item: (item.usd_per_hour is None, item.usd_per_hour or 0.0, item.nodes)))


def study(model: Model, instance: InstanceType, nodes: int, load: Load) -> Fit | None:
    """The best fit on `nodes` of `instance`: the first legal split that fits, else the preferred one."""
    if instance.gpu is None:
        return None
    first = None
    for shape in parallelism.legal(model, instance.gpus, nodes):
        fit = memory.fit(model, instance.gpu, shape, load)
        if fit.fits:
            return fit
        first = first or fit
    return first


def _smallest(model: Model, instance: InstanceType, load: Load) -> Iterator[Alternative]:
    for nodes in range(1, MOST_NODES + 1):
        if nodes > 1 and not instance.efa:
            return
        fit = study(model, instance, nodes, load)
        if fit is not None and fit.fits:
            yield Alternative(instance=instance, nodes=nodes, fit=fit)
            return
