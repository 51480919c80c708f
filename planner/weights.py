"""Bytes of weights: of a whole checkpoint, and of one GPU of one pipeline stage.

vLLM splits attention heads, experts, dense layers, embeddings and the output head over the tensor-parallel
ranks; MLA's down projections, the expert router and (in data mode) the vision tower are whole on every rank.
"""

from __future__ import annotations

from planner.models import BF16_BYTES, Architecture, Model


def layers_per_stage(layers: int, stages: int) -> tuple[int, ...]:
    """How vLLM spreads layers over pipeline stages: what is left over goes to the stages before the last.

    The last stage is spared because it holds the output head. Same rule as `get_pp_indices` of vLLM 0.27.1
    (vllm/distributed/utils.py): 61 layers over 2 stages are 31 and 30.
    """
    counts = [layers // stages] * stages
    for offset in range(2, layers % stages + 2):
        counts[-offset] += 1
    return tuple(counts)


def stage_bytes(model: Model, tensor_parallel: int, pipeline_parallel: int) -> tuple[float, ...]:
    """Bytes of weights on each GPU of each pipeline stage."""
    first = 0
    result = []
    counts = layers_per_stage(model.architecture.layers, pipeline_parallel)
    for stage, count in enumerate(counts):
        total = sum(_layer_bytes(model, layer, tensor_parallel) for layer in range(first, first + count))
        if stage == 0:
            total += _embedding_bytes(model) / tensor_parallel + vision_bytes(model)
        if stage == pipeline_parallel - 1:
            total += _embedding_bytes(model) / tensor_parallel
        result.append(total)
        first += count
    return tuple(result)


def checkpoint_bytes(model: Model) -> float:
    """Bytes of the checkpoint as its architecture gives them, without vLLM's own copies."""
    architecture = model.architecture
    copies = architecture.layers * architecture.attention.runtime_copies() * BF16_BYTES
    return stage_bytes(model, 1, 1)[0] - copies


def vision_bytes(model: Model) -> float:
    """The vision tower, whole on every rank of the first stage (`--mm-encoder-tp-mode data`)."""
    architecture = model.architecture
    return BF16_BYTES * architecture.vision.parameters(architecture.hidden) if architecture.vision else 0.0


def _layer_bytes(model: Model, layer: int, tensor_parallel: int) -> float:
    """One layer's bytes on one rank: what is split, and what every rank keeps whole."""
    architecture = model.architecture
    attention, experts = architecture.attention, architecture.experts
    split = model.linear_bytes * attention.sharded_parameters(architecture.hidden)
    split += BF16_BYTES * attention.runtime_copies()
    whole = model.linear_bytes * attention.replicated_parameters(architecture.hidden)
    if experts is None or layer < experts.dense_layers:
        split += model.linear_bytes * _mlp(architecture, architecture.intermediate)
    else:
        one = _mlp(architecture, experts.intermediate)
        split += (model.linear_bytes * experts.shared + model.expert_bytes * experts.routed) * one
        whole += BF16_BYTES * architecture.hidden * experts.routed  # the router
    return split / tensor_parallel + whole


def _mlp(architecture: Architecture, intermediate: int) -> int:
    """Gate, up and down projection."""
    return 3 * architecture.hidden * intermediate


def _embedding_bytes(model: Model) -> float:
    return BF16_BYTES * model.architecture.vocabulary * model.architecture.hidden
