"""Whether a model fits: GiB per GPU for every pipeline stage, and the KV tokens that stay free."""

from __future__ import annotations

from dataclasses import dataclass

from planner.hardware import Gpu
from planner.kv_cache import CacheLayout, layout
from planner.models import GIB, Model
from planner.overhead import Load, OverheadTerm, Stage, overhead
from planner.parallelism import Parallelism
from planner.weights import WeightPart, layers_per_stage, stage_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFit:
    """One pipeline stage: GiB on each of its GPUs. `kv_gib` is negative when the rest is too much."""

    stage: int
    layers: int
    weights: tuple[WeightPart, ...]
    overhead: tuple[OverheadTerm, ...]
    kv_gib: float
    cache: CacheLayout
    max_model_len: int

    @property
    def weights_gib(self) -> float:
        """Sum of all weights."""
        return sum(part.bytes for part in self.weights) / GIB

    @property
    def overhead_gib(self) -> float:
        """Sum of all overhead terms."""
        return sum(term.gib for term in self.overhead)

    @property
    def kv_tokens(self) -> int:
        """Tokens that this stage can hold of requests of full length."""
        return self.cache.tokens(self.kv_gib * GIB, self.max_model_len)

    @property
    def requests(self) -> float:
        """Requests of full length that this stage can hold."""
        return self.cache.requests(self.kv_gib * GIB, self.max_model_len)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A model on GPUs of `usable_gib` each, of which vLLM takes `budget_gib`. Tokens are those of one replica."""

    shape: Parallelism
    usable_gib: float
    budget_gib: float
    stages: tuple[StageFit, ...]
    max_model_len: int

    @property
    def tensor_parallel(self) -> int:
        """Ranks that share each layer."""
        return self.shape.tensor

    @property
    def pipeline_parallel(self) -> int:
        """Stages that share the layers."""
        return self.shape.pipeline

    @property
    def kv_tokens(self) -> int:
        """Tokens of KV cache: every token needs room on every stage, so the tightest stage decides."""
        return min(stage.kv_tokens for stage in self.stages)

    @property
    def loads(self) -> bool:
        """Whether weights and overhead leave anything for the KV cache at all."""
        return all(stage.kv_gib > 0 for stage in self.stages)

    @property
    def fits(self) -> bool:
        """Whether one request of full length fits; vLLM refuses to start otherwise."""
        return self.loads and self.concurrent_requests >= 1

    @property
    def concurrent_requests(self) -> float:
        """Requests of full length that fit at once."""
        return min(stage.requests for stage in self.stages)


def fit(model: Model, gpu: Gpu, shape: Parallelism, load: Load) -> Fit:
    """Compute the fit on GPUs of one kind."""
    budget = gpu.usable_gib * load.gpu_memory_utilization
    counts = layers_per_stage(model.architecture.layers, shape.pipeline)
    weights = stage_parts(model, shape, gpu)
    stages = []
    first = 0
    for stage, (count, parts) in enumerate(zip(counts, weights, strict=True)):
        terms = overhead(model, Stage(number=stage, layers=count, shape=shape), load)
        weights_gib = sum(part.bytes for part in parts) / GIB
        stages.append(
            StageFit(
                stage=stage,
                layers=count,
                weights=parts,
                overhead=terms,
                kv_gib=budget - weights_gib - sum(term.gib for term in terms),
                cache=layout(model.architecture, range(first, first + count), shape, load.kv_value_bytes),
                max_model_len=load.max_model_len,
            )
        )
        first += count
    return Fit(
        shape=shape,
        usable_gib=gpu.usable_gib,
        budget_gib=budget,
        stages=tuple(stages),
        max_model_len=load.max_model_len,
    )
