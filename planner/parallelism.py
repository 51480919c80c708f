"""Which tensor and pipeline parallel sizes are legal for a model on a hardware shape, and which is chosen.

Tensor parallel stays inside a node: it exchanges activations twice a layer and wants NVLink. Pipeline
parallel crosses nodes: one hidden state a stage. So the choice is TP = GPUs per node, PP = nodes, if the
model allows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.attention import GroupedQueryAttention
from planner.models import Architecture, Model


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
    heads (`ModelConfig.verify_with_parallel_config` of vLLM).
    """
    attention = model.architecture.attention
    copies = tensor // attention.kv_heads if isinstance(attention, GroupedQueryAttention) else tensor
    if context == 1 or (copies and copies % context == 0):
        return ""
    return f"at tensor parallel {tensor} there are {max(1, copies)} copies of {model.title}'s KV cache to spread"


def tensor_problem(model: Model, tensor: int, *, data: int = 1, expert: bool = False) -> str:
    """Why the model cannot be split over `tensor` ranks, or an empty string."""
    architecture, unit = model.architecture, model.weights.unit
    for heads, what in _heads(architecture):
        if heads % tensor:
            return f"{tensor} does not divide the {heads} {what} of {model.title}"
    for width, ranks, what in _widths(architecture, tensor, data, expert=expert):
        if width % ranks:
            return f"{ranks} does not divide the width {width} of {model.title}'s {what}"
        if width // ranks % unit:
            return (
                f"a {ranks}th of the width {width} of {model.title}'s {what} is no multiple of {unit}, "
                f"the block of its {model.weights.title}"
            )
    return ""


def _heads(architecture: Architecture) -> tuple[tuple[int, str], ...]:
    linear = architecture.linear_attention
    heads = (architecture.attention.heads, "attention heads")
    return (heads,) if linear is None else (heads, (linear.key_heads, "linear attention heads"))


def _widths(architecture: Architecture, tensor: int, data: int, *, expert: bool) -> tuple[tuple[int, int, str], ...]:
    """Widths that are split, over how many ranks, and what has them."""
    experts = architecture.experts
    dense = (architecture.intermediate, tensor, "layers")
    if experts is None:
        return (dense,)
    routed = () if expert else ((experts.intermediate, tensor * data, "experts"),)
    return (*((dense,) if experts.dense_layers else ()), *routed)


def _aligned(tensor: int, gpus_per_node: int) -> bool:
    """A tensor parallel group fills whole nodes or lies inside one."""
    return tensor % gpus_per_node == 0 or gpus_per_node % tensor == 0
