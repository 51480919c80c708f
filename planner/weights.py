"""Bytes of weights: of a whole checkpoint, and of one GPU of one pipeline stage.

vLLM splits attention heads, experts, dense layers, embeddings and the output head over the tensor-parallel
ranks; MLA's down projections, the expert router and (in data mode) the vision tower are whole on every rank.
Data-parallel replicas hold everything but the routed experts, which are spread over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.hardware import Gpu
from planner.models import BF16_BYTES, Experts, Model
from planner.parallelism import Parallelism

# Marlin kernels, which compute FP8 weights on GPUs without FP8 arithmetic, want a bf16 scale per 128 values.
_MARLIN_SCALE_BYTES = BF16_BYTES / 128


def layers_per_stage(layers: int, stages: int) -> tuple[int, ...]:
    """How vLLM spreads layers over pipeline stages: what is left over goes to the stages before the last.

    The last stage is spared because it holds the output head. Same rule as `get_pp_indices` of vLLM 0.27.1
    (vllm/distributed/utils.py): 61 layers over 2 stages are 31 and 30.
    """
    counts = [layers // stages] * stages
    for offset in range(2, layers % stages + 2):
        counts[-offset] += 1
    return tuple(counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPart:
    """Weights of one kind on one GPU: `layers` times `parameters`, whose numbers `formula` gives."""

    name: str
    layers: int = 1
    parameters: float
    value_bytes: float
    formula: str

    @property
    def bytes(self) -> float:
        """All of them."""
        return self.layers * self.parameters * self.value_bytes

    @property
    def explained(self) -> str:
        """Bytes as a formula with its numbers."""
        layers = f"{self.layers} layers x " if self.layers > 1 else ""
        return f"{layers}({self.formula}) x {self.value_bytes:.8g} bytes"


def stage_parts(model: Model, shape: Parallelism, gpu: Gpu | None = None) -> tuple[tuple[WeightPart, ...], ...]:
    """The weights on each GPU of each pipeline stage; `gpu` tells what its kernels add to them."""
    first, stages = 0, []
    for stage, count in enumerate(layers_per_stage(model.architecture.layers, shape.pipeline)):
        parts = [*_layer_parts(model, range(first, first + count), shape, gpu)]
        if stage == 0:
            parts += [_embedding("embedding", model, shape), *_vision(model)]
        if stage == shape.pipeline - 1 and not (shape.pipeline == 1 and model.architecture.tied_embeddings):
            parts.append(_embedding("output head", model, shape))
        stages.append(tuple(part for part in parts if part.bytes))
        first += count
    return tuple(stages)


def stage_bytes(model: Model, shape: Parallelism, gpu: Gpu | None = None) -> tuple[float, ...]:
    """Bytes of weights on each GPU of each pipeline stage."""
    return tuple(sum(part.bytes for part in parts) for parts in stage_parts(model, shape, gpu))


def checkpoint_bytes(model: Model) -> float:
    """Bytes of the checkpoint as its architecture gives them: with draft layers, without vLLM's own copies."""
    architecture = model.architecture
    copies = architecture.layers * architecture.attention.runtime_copies(1) * BF16_BYTES
    return stage_bytes(model, Parallelism(1, 1))[0] - copies + _draft_bytes(model)


def parameters(model: Model) -> float:
    """Parameters of the model as its architecture gives them, draft layers left out."""
    in_bf16 = replace(model.weights, name="bf16", expert_bytes=BF16_BYTES, linear_bytes=BF16_BYTES)
    architecture = replace(model.architecture, draft_layers=0)
    return checkpoint_bytes(replace(model, weights=in_bf16, architecture=architecture)) / BF16_BYTES


def _vision(model: Model) -> tuple[WeightPart, ...]:
    """The vision tower, whole on every rank of the first stage (`--mm-encoder-tp-mode data`)."""
    vision, hidden = model.architecture.vision, model.architecture.hidden
    if vision is None:
        return ()
    formula = vision.parameters_formula(hidden)
    size = vision.parameters(hidden)
    return (WeightPart(name="image encoder", parameters=size, value_bytes=BF16_BYTES, formula=formula),)


def _layer_parts(model: Model, layers: range, shape: Parallelism, gpu: Gpu | None) -> Iterator[WeightPart]:
    """The layers' weights on one rank, alike ones together."""
    architecture, scales, hidden = model.architecture, _marlin_scales(model, gpu), model.architecture.hidden
    linear_bytes, expert_bytes = model.weights.linear_bytes + scales, model.weights.expert_bytes + scales
    attention, experts, delta = architecture.attention, architecture.experts, architecture.linear_attention
    deltas = sum(map(architecture.is_linear, layers)) if delta is not None else 0
    full = len(layers) - deltas
    yield WeightPart(
        name="attention",
        layers=full,
        parameters=attention.parameters(hidden, shape.tensor),
        value_bytes=linear_bytes,
        formula=attention.parameters_formula(hidden, shape.tensor),
    )
    yield WeightPart(
        name="KV up projection again",
        layers=full,
        parameters=attention.runtime_copies(shape.tensor),
        value_bytes=BF16_BYTES,
        formula=attention.runtime_copies_formula(shape.tensor),
    )
    if delta is not None:
        yield WeightPart(
            name="linear attention",
            layers=deltas,
            parameters=delta.parameters(hidden, shape.tensor),
            value_bytes=linear_bytes,
            formula=delta.parameters_formula(hidden, shape.tensor),
        )
    mixed = 0 if experts is None else max(0, layers.stop - max(layers.start, experts.dense_layers))
    yield WeightPart(
        name="dense layers",
        layers=len(layers) - mixed,
        parameters=_mlp(hidden, architecture.intermediate) / shape.tensor,
        value_bytes=linear_bytes,
        formula=f"3 x {hidden} x {architecture.intermediate} / {shape.tensor}",
    )
    if experts is not None:
        yield from _expert_parts(experts, hidden, mixed, shape, linear_bytes, expert_bytes)


def _expert_parts(
    experts: Experts, hidden: int, layers: int, shape: Parallelism, linear_bytes: float, expert_bytes: float
) -> Iterator[WeightPart]:
    one, written = _mlp(hidden, experts.intermediate), f"3 x {hidden} x {experts.intermediate}"
    ranks = shape.tensor * shape.data
    # Whole experts with expert parallel, slices of each without.
    routed = -(-experts.routed // ranks) if shape.expert else experts.routed / ranks
    share = f"ceil({experts.routed} / {ranks})" if shape.expert else f"{experts.routed} / {ranks}"
    yield WeightPart(
        name="shared experts",
        layers=layers,
        parameters=experts.shared * one / shape.tensor,
        value_bytes=linear_bytes,
        formula=f"{experts.shared} x {written} / {shape.tensor}",
    )
    yield WeightPart(
        name="routed experts",
        layers=layers,
        parameters=routed * one,
        value_bytes=expert_bytes,
        formula=f"{share} experts x {written}",
    )
    yield WeightPart(
        name="router",
        layers=layers,
        parameters=hidden * experts.routed,
        value_bytes=BF16_BYTES,
        formula=f"{hidden} x {experts.routed}",
    )


def _marlin_scales(model: Model, gpu: Gpu | None) -> float:
    blocks = model.precision == "fp8" and gpu is not None and not gpu.has_fp8
    return _MARLIN_SCALE_BYTES if blocks else 0.0


def _mlp(hidden: int, intermediate: int) -> int:
    """Gate, up and down projection."""
    return 3 * hidden * intermediate


def _embedding(name: str, model: Model, shape: Parallelism) -> WeightPart:
    words, hidden = model.architecture.vocabulary, model.architecture.hidden
    return WeightPart(
        name=name,
        parameters=words * hidden / shape.tensor,
        value_bytes=BF16_BYTES,
        formula=f"{words} words x {hidden} / {shape.tensor}",
    )


def _draft_bytes(model: Model) -> float:
    """Draft layers: each a layer of the model, and the projection that joins two hidden states."""
    architecture = model.architecture
    last = range(architecture.layers - 1, architecture.layers)
    one = sum(part.bytes for part in _layer_parts(model, last, Parallelism(1, 1), None))
    copies = BF16_BYTES * architecture.attention.runtime_copies(1) * (not architecture.is_linear(last[0]))
    return architecture.draft_layers * (one - copies + BF16_BYTES * 2 * architecture.hidden**2)
