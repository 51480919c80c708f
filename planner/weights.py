"""Bytes of weights: of a whole checkpoint, and of one GPU of one pipeline stage.

vLLM splits attention heads, experts, dense layers, embeddings and the output head over the tensor-parallel
ranks; MLA's down projections, the expert router and (in data mode) the vision tower are whole on every rank.
Data-parallel replicas hold everything but the routed experts, which are spread over all of them.
"""

from __future__ import annotations

from dataclasses import replace

from planner.hardware import Gpu
from planner.models import BF16_BYTES, Model
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


def stage_bytes(model: Model, shape: Parallelism, gpu: Gpu | None = None) -> tuple[float, ...]:
    """Bytes of weights on each GPU of each pipeline stage; `gpu` tells what its kernels add to them."""
    first = 0
    result = []
    counts = layers_per_stage(model.architecture.layers, shape.pipeline)
    embedding = _embedding_bytes(model) / shape.tensor
    for stage, count in enumerate(counts):
        total = sum(_layer_bytes(model, layer, shape, gpu) for layer in range(first, first + count))
        if stage == 0:
            total += embedding + vision_bytes(model)
        if stage == shape.pipeline - 1 and not (shape.pipeline == 1 and model.architecture.tied_embeddings):
            total += embedding
        result.append(total)
        first += count
    return tuple(result)


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


def vision_bytes(model: Model) -> float:
    """The vision tower, whole on every rank of the first stage (`--mm-encoder-tp-mode data`)."""
    architecture = model.architecture
    return BF16_BYTES * architecture.vision.parameters(architecture.hidden) if architecture.vision else 0.0


def _layer_bytes(model: Model, layer: int, shape: Parallelism, gpu: Gpu | None) -> float:
    """One layer's bytes on one rank."""
    architecture, scales = model.architecture, _marlin_scales(model, gpu)
    linear_bytes, expert_bytes = model.weights.linear_bytes + scales, model.weights.expert_bytes + scales
    hidden, attention, experts = architecture.hidden, architecture.attention, architecture.experts
    if architecture.linear_attention is not None and architecture.is_linear(layer):
        total = linear_bytes * architecture.linear_attention.parameters(hidden, shape.tensor)
    else:
        total = linear_bytes * attention.parameters(hidden, shape.tensor)
        total += BF16_BYTES * attention.runtime_copies(shape.tensor)
    if experts is None or layer < experts.dense_layers:
        return total + linear_bytes * _mlp(hidden, architecture.intermediate) / shape.tensor
    one = _mlp(hidden, experts.intermediate)
    total += linear_bytes * experts.shared * one / shape.tensor
    total += expert_bytes * _routed_share(experts.routed, shape) * one
    return total + BF16_BYTES * hidden * experts.routed  # the router


def _routed_share(routed: int, shape: Parallelism) -> float:
    """Experts' worth of weights on one rank: whole experts with expert parallel, slices of each without."""
    ranks = shape.tensor * shape.data
    return -(-routed // ranks) if shape.expert else routed / ranks


def _marlin_scales(model: Model, gpu: Gpu | None) -> float:
    blocks = model.precision == "fp8" and gpu is not None and not gpu.has_fp8
    return _MARLIN_SCALE_BYTES if blocks else 0.0


def _mlp(hidden: int, intermediate: int) -> int:
    """Gate, up and down projection."""
    return 3 * hidden * intermediate


def _embedding_bytes(model: Model) -> float:
    return BF16_BYTES * model.architecture.vocabulary * model.architecture.hidden


def _draft_bytes(model: Model) -> float:
    """Draft layers: each a layer of the model, and the projection that joins two hidden states."""
    architecture = model.architecture
    last = architecture.layers - 1
    one = _layer_bytes(model, last, Parallelism(1, 1), None) - BF16_BYTES * architecture.attention.runtime_copies(1)
    return architecture.draft_layers * (one + BF16_BYTES * 2 * architecture.hidden**2)
