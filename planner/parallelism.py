"""Which tensor and pipeline parallel sizes are legal for a model on a hardware shape, and which is chosen.

Tensor parallel stays inside a node: it exchanges activations twice a layer and wants NVLink. Pipeline
parallel crosses nodes: one hidden state a stage. So the choice is TP = GPUs per node, PP = nodes, if the
model allows it.

What is legal is what vLLM 0.27.1 starts with: the reasons name its checks. Vocabularies are padded and never a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.attention import GroupedQueryAttention
from planner.models import BF16_BYTES, Model


@dataclass(frozen=True, slots=True, order=True)
class Parallelism:
    """Tensor x pipeline x data parallel.

    `expert`: a rank holds whole experts instead of slices of all. `context`: over how many ranks of a tensor
    parallel group the KV cache is spread (decode context parallel).
    """

    tensor: int
    pipeline: int
    data: int = 1
    expert: bool = False
    context: int = 1

    @property
    def gpus(self) -> int:
        """GPUs that the shape takes."""
        return self.tensor * self.pipeline * self.data


def legal(
    model: Model, gpus_per_node: int, nodes: int, *, data: int = 1, expert: bool = False, context: int = 1
) -> tuple[Parallelism, ...]:
    """All TP x PP that use every GPU once; the preferred ones first.

    Preferred: TP inside the node, then the largest TP (fewest pipeline stages).
    """
    world = gpus_per_node * nodes // data
    found = [
        Parallelism(tensor, world // tensor, data, expert, context)
        for tensor in range(1, world + 1)
        if tensor * (world // tensor) * data == gpus_per_node * nodes
        and not tensor_problem(model, tensor, data=data, expert=expert)
        and world // tensor <= model.architecture.layers
        and not context_problem(model, tensor, context)
        and _aligned(tensor, gpus_per_node)
    ]
    return tuple(sorted(found, key=lambda shape: (shape.tensor > gpus_per_node, -shape.tensor)))


def choose(
    model: Model,
    gpus_per_node: int,
    nodes: int,
    tensor: int | None = None,
    pipeline: int | None = None,
    *,
    data: int = 1,
    expert: bool = False,
    context: int = 1,
) -> Parallelism | None:
    """The preferred legal shape that agrees with what the user fixed; None if there is none."""
    for shape in legal(model, gpus_per_node, nodes, data=data, expert=expert, context=context):
        if tensor in (None, shape.tensor) and pipeline in (None, shape.pipeline):
            return shape
    return None


def context_problem(model: Model, tensor: int, context: int) -> str:
    """Why the KV cache of a tensor-parallel group cannot be spread over `context` ranks, or an empty string.

    Only copies can be spread: MLA's cache is whole on every rank, GQA's heads are copied once there are more ranks than
    heads (`ModelConfig.verify_with_parallel_config` and `ParallelConfig` of vLLM).
    """
    attention = model.architecture.attention
    if context == 1:
        return ""
    if tensor % context:
        return f"{context} does not divide tensor parallel {tensor}"
    if not isinstance(attention, GroupedQueryAttention):
        return ""
    copies, queries = max(1, tensor // attention.kv_heads), attention.heads // attention.kv_heads
    if context > copies:
        return f"at tensor parallel {tensor} there are {copies} copies of {model.title}'s KV cache to spread"
    return f"{context} does not divide the {queries} query heads of a KV head" if queries % context else ""


def tensor_problem(model: Model, tensor: int, *, data: int = 1, expert: bool = False) -> str:
    """Why vLLM would not split the model over `tensor` ranks, or an empty string."""
    for heads, what in _heads(model):
        if heads % tensor:
            return f"{tensor} does not divide the {heads} {what} of {model.title}"
    attention = model.architecture.attention
    if isinstance(attention, GroupedQueryAttention) and attention.kv_heads % tensor and tensor % attention.kv_heads:
        return f"{tensor} neither divides the {attention.kv_heads} KV heads of {model.title} nor is a multiple of them"
    for width in _widths(model, tensor, data, expert=expert):
        if width.values % width.ranks:
            return f"{width.ranks} does not divide the width {width.values} of {model.title}'s {width.what}"
        if width.values // width.ranks % width.unit:
            return (
                f"a part in {width.ranks} of the width {width.values} of {model.title}'s {width.what} is no "
                f"multiple of {width.unit}, the block of its {model.weights.title}"
            )
    return ""


@dataclass(frozen=True, slots=True)
class _Width:
    """A width that is split over `ranks`, of which each part must be a multiple of `unit`, the block of scales."""

    values: int
    ranks: int
    what: str
    unit: int


def _heads(model: Model) -> tuple[tuple[int, str], ...]:
    """Each model's layers assert that these can be split (as vllm/model_executor/models/qwen3_next.py)."""
    linear, heads = model.architecture.linear_attention, (model.architecture.attention.heads, "attention heads")
    if linear is None:
        return (heads,)
    return heads, (linear.key_heads, "linear attention heads"), (linear.value_heads, "linear attention value heads")


def _widths(model: Model, tensor: int, data: int, *, expert: bool) -> Iterator[_Width]:
    """What vLLM splits: `Fp8MoEMethod`, `CompressedTensorsWNA16MoEMethod`, and of quantised linear layers those that
    `validate_fp8_block_shape` holds against their blocks, which are all but merged ones (gate and up, QKV)."""
    architecture, linear = model.architecture, model.architecture.linear_attention
    unit = model.weights.unit if model.weights.linear_bytes < BF16_BYTES else 1
    for values, what in architecture.attention.split_widths:
        yield _Width(values, tensor, what, unit)
    if linear is not None:
        yield _Width(linear.value_heads * linear.value_dim, tensor, "linear attention output", unit)
    experts = architecture.experts
    if experts is None or experts.dense_layers:
        yield _Width(architecture.intermediate, tensor, "layers", unit)
    if experts is None:
        return
    if not expert:
        yield _Width(experts.intermediate, tensor * data, "experts", model.weights.unit)
    # With whole experts on data parallel ranks, vLLM splits the sequence instead (`use_sequence_parallel_moe`).
    if experts.shared and not (expert and data > 1):
        yield _Width(experts.shared * experts.intermediate, tensor, "shared experts", unit)


def _aligned(tensor: int, gpus_per_node: int) -> bool:
    """A tensor parallel group fills whole nodes or lies inside one."""
    return tensor % gpus_per_node == 0 or gpus_per_node % tensor == 0
