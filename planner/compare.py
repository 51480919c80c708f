"""The smallest hardware for each model and GPU: the table that a choice starts from.

A shape is counted in GPUs, as memory wants it (1, 2, 4, 8 of a node, then whole nodes); its price is that of the
cheapest EC2 instances which hold that many, whole: AWS rents no half of a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from planner import throughput
from planner.alternatives import MOST_NODES, study_gpus
from planner.catalogue import CATALOGUE
from planner.hardware import A100_80, B200, GPU_TYPES, H100, H200, Gpu, InstanceType
from planner.kernels import Runs, runs
from planner.memory import Fit
from planner.models import Model
from planner.overhead import Load
from planner.throughput import Throughput

GPUS_OF_A_NODE = 8
COMPARED_GPUS = (A100_80, H100, H200, B200)
# The seven models of the comparison, smallest first, by family.
COMPARED = (
    "llama-3.1-8b-instruct",
    "qwen3.5-35b-a3b",
    "minimax-m2.5",
    "qwen3-235b-a22b",
    "qwen3.5-397b-a17b",
    "glm-5",
    "kimi-k2.5",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A checkpoint on the fewest GPUs of one kind that hold it.

    `fit` is None where vLLM has no kernels for it there, and where 4 nodes do not hold it either.
    """

    model: Model
    gpu: Gpu
    load: Load
    fit: Fit | None = None
    instance: InstanceType | None = None
    nodes: int = 0
    stated: Throughput | None = None

    @property
    def runs(self) -> Runs:
        """Whether vLLM has kernels for this checkpoint on this GPU, and why."""
        return runs(self.model, self.gpu)

    @property
    def gpus(self) -> int:
        """GPUs that the shape takes; 0 where none does."""
        return self.fit.shape.gpus if self.fit else 0

    @property
    def usd_per_hour(self) -> float | None:
        """On-demand price of the whole instances; None if unknown."""
        if self.instance is None or self.instance.usd_per_hour is None:
            return None
        return self.nodes * self.instance.usd_per_hour

    @property
    def usd_per_million(self) -> float | None:
        """USD per million output tokens at the stated throughput; None where price or throughput is unknown."""
        usd = self.usd_per_hour
        return None if usd is None or self.stated is None else self.stated.usd_per_million(usd)


def rows(models: Iterable[Model], load: Load, statements: tuple[Throughput, ...] = ()) -> Iterator[Row]:
    """Every checkpoint on every compared GPU."""
    for model in models:
        for gpu in COMPARED_GPUS:
            yield _row(model, gpu, load, statements)


def checkpoints(families: Iterable[str]) -> tuple[Model, ...]:
    """The checkpoints of the families, in every precision, in the families' order."""
    return tuple(model for family in families for model in CATALOGUE.values() if model.family == family)


def smallest_by_family(found: Iterable[Row]) -> tuple[Row, ...]:
    """Of each family and GPU the checkpoint that runs on the fewest GPUs; of equal ones that with the most bytes."""
    best: dict[tuple[str, str], Row] = {}
    for row in found:
        key = (row.model.family, row.gpu.name)
        if key not in best or _rank(row) < _rank(best[key]):
            best[key] = row
    return tuple(best.values())


def _rank(row: Row) -> tuple[bool, bool, int, float]:
    return (
        row.fit is None,
        row.runs.verdict == "no",
        row.gpus,
        -row.model.weights.linear_bytes - row.model.weights.expert_bytes,
    )


def _row(model: Model, gpu: Gpu, load: Load, statements: tuple[Throughput, ...]) -> Row:
    load = replace(load, max_model_len=min(load.max_model_len, model.context_tokens))
    if runs(model, gpu).verdict == "no":
        return Row(model=model, gpu=gpu, load=load)
    for gpus_per_node, nodes in _counts():
        fit = study_gpus(model, gpu, gpus_per_node, nodes, load)
        if fit is not None and fit.fits:
            instance, count = _cheapest(gpu, gpus_per_node, nodes)
            said = throughput.stated(statements, model.name, instance.name) if instance else None
            return Row(model=model, gpu=gpu, load=load, fit=fit, instance=instance, nodes=count, stated=said)
    return Row(model=model, gpu=gpu, load=load)


def _counts() -> Iterator[tuple[int, int]]:
    """GPUs per node and nodes, smallest first."""
    yield from ((gpus, 1) for gpus in (1, 2, 4, GPUS_OF_A_NODE))
    yield from ((GPUS_OF_A_NODE, nodes) for nodes in range(2, MOST_NODES + 1))


def _cheapest(gpu: Gpu, gpus_per_node: int, nodes: int) -> tuple[InstanceType | None, int]:
    """The cheapest instance type with enough of these GPUs in one node; unknown prices last."""
    holding = [kind for kind in GPU_TYPES.values() if kind.gpu is gpu and kind.gpus >= gpus_per_node]
    ranked = sorted(holding, key=lambda kind: (kind.usd_per_hour is None, kind.usd_per_hour or 0.0))
    return (ranked[0], nodes) if ranked else (None, 0)
