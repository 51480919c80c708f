"""What a model would fit on: the smallest count of each GPU instance type, cheapest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from planner import memory, parallelism, prices
from planner.hardware import GPU_TYPES, Gpu, InstanceType
from planner.kernels import runs
from planner.memory import Fit
from planner.models import Model
from planner.overhead import Load

# More pipeline stages than this idle each other: such a shape may fit and is still no advice.
MOST_NODES = 4
# What every model of the catalogue fits with on some instance type: proposed where a load is too much for all.
LIGHT = Load(gpu_memory_utilization=0.9, max_model_len=32_768, max_num_seqs=64, max_num_batched_tokens=8192)


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


def described(model: Model, item: Alternative) -> str:
    """One line for a message, with what the price does not say: that nobody is known to have run the model there."""
    unknown = item.instance.gpu is not None and runs(model, item.instance.gpu).verdict == "unknown"
    return f"{item} (not known to run)" if unknown else str(item)


def alternatives(
    model: Model, load: Load, requests: float = 1.0, kinds: Iterable[InstanceType] = tuple(GPU_TYPES.values())
) -> tuple[Alternative, ...]:
    """For each instance type the smallest count that fits `requests` of full length: by price, unknown ones last.

    Left out are GPUs for whose kind vLLM has no kernels of the model's precision.
    """
    usable = (kind for kind in kinds if kind.gpu is not None and runs(model, kind.gpu).verdict != "no")
    found = [found for instance in usable for found in _smallest(model, instance, load, requests)]
    return tuple(sorted(found, key=lambda item: (item.usd_per_hour is None, item.usd_per_hour or 0.0, item.nodes)))


def study(model: Model, instance: InstanceType, nodes: int, load: Load, *, expert: bool = False) -> Fit | None:
    """The best fit on `nodes` of `instance`: the first legal split that fits, else the preferred one."""
    return None if instance.gpu is None else study_gpus(model, instance.gpu, instance.gpus, nodes, load, expert=expert)


def study_gpus(
    model: Model, gpu: Gpu, gpus_per_node: int, nodes: int, load: Load, *, expert: bool = False
) -> Fit | None:
    """The same on any number of GPUs; None where the model cannot be split over them."""
    first = None
    for shape in parallelism.legal(model, gpus_per_node, nodes, expert=expert):
        fit = memory.fit(model, gpu, shape, load)
        if fit.fits:
            return fit
        first = first or fit
    return first


def _smallest(model: Model, instance: InstanceType, load: Load, requests: float) -> Iterator[Alternative]:
    for nodes in range(1, MOST_NODES + 1):
        if nodes > 1 and instance.name in GPU_TYPES and not instance.efa:
            return
        fit = study(model, instance, nodes, load)
        if fit is not None and fit.fits and fit.concurrent_requests >= requests:
            yield Alternative(instance=instance, nodes=nodes, fit=fit)
            return


def lighter(load: Load) -> Load:
    """The load with nothing above `LIGHT`."""
    return replace(
        load,
        gpu_memory_utilization=max(LIGHT.gpu_memory_utilization, load.gpu_memory_utilization),
        max_model_len=min(LIGHT.max_model_len, load.max_model_len),
        max_num_seqs=min(LIGHT.max_num_seqs, load.max_num_seqs),
        max_num_batched_tokens=min(LIGHT.max_num_batched_tokens, load.max_num_batched_tokens),
    )
