"""Bytes of weights: of a whole checkpoint, and of one GPU of one pipeline stage.

vLLM splits attention heads, experts, dense layers, embeddings and the output head over the tensor-parallel
ranks; MLA's down projections, the expert router and (in data mode) the vision tower are whole on every rank.
"""

from __future__ import annotations

from planner.models import Architecture, Model


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
    copies = architecture.layers * architecture.attention.runtime_copies() * model.other_bytes
    return stage_bytes(model, 1, 1)[0] - copies


def vision_bytes(model: Model) -> float:
    """The vision tower, whole on every rank of the first stage (`--mm-encoder-tp-mode data`)."""
    architecture = model.architecture
    return (
        model.other_bytes * architecture.vision.parameters(architecture.hidden)
        if architecture.vision
        else 0.0
    )


def _layer_bytes(model: Model, layer: int, tensor_parallel: int) -> float:
    architecture = model.architecture
    attention = architecture.attention
    split = attention.sharded_parameters(architecture.hidden) + attention.runtime_copies()
    whole = attention.replicated_parameters(architecture.hidden)
    experts = architecture.experts
    if experts is None or layer < experts.dense_layers:
        split += _mlp(architecture, architecture.intermediate)
        return model.other_bytes * (split / tensor_parallel + whole)
    split += experts.shared * _mlp(architecture, experts.intermediate)
    whole += architecture.hidden * experts.routed
    routed = experts.routed * _mlp(architecture, experts.intermediate)
    return (
        model.other_bytes * (split / tensor_parallel + whole) + model.expert_bytes * routed / tensor_parallel
    )


def _mlp(architecture: Architecture, intermediate: int) -> int:
    """Gate, up and down projection."""
    return 3 * architecture.hidden * intermediate


def _embedding_bytes(model: Model) -> float:
    return model.other_bytes * model.architecture.vocabulary * model.architecture.hidden
