"""Which tensor and pipeline parallel sizes are legal for a model on a hardware shape, and which is chosen.

Tensor parallel stays inside a node: it exchanges activations twice a layer and wants NVLink. Pipeline
parallel crosses nodes: one hidden state a stage. So the choice is TP = GPUs per node, PP = nodes, if the
model allows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.models import Model


@dataclass(frozen=True, slots=True, order=True)
class Parallelism:
    """Tensor parallel x pipeline parallel."""

    tensor: int
    pipeline: int


def legal(model: Model, gpus_per_node: int, nodes: int) -> tuple[Parallelism, ...]:
    """All TP x PP that use every GPU once; the preferred ones first.

    Preferred: TP inside the node, then the largest TP (fewest pipeline stages).
    """
    world = gpus_per_node * nodes
    found = [
        Parallelism(tensor, world // tensor)
        for tensor in range(1, world + 1)
        if world % tensor == 0
        and not tensor_problem(model, tensor)
        and world // tensor <= model.architecture.layers
        and _aligned(tensor, gpus_per_node)
    ]
    return tuple(sorted(found, key=lambda shape: (shape.tensor > gpus_per_node, -shape.tensor)))


def choose(
    model: Model, gpus_per_node: int, nodes: int, tensor: int | None = None, pipeline: int | None = None
) -> Parallelism | None:
    """The preferred legal shape that agrees with what the user fixed; None if there is none."""
    for shape in legal(model, gpus_per_node, nodes):
        if tensor in (None, shape.tensor) and pipeline in (None, shape.pipeline):
            return shape
    return None


def tensor_problem(model: Model, tensor: int) -> str:
    """Why the model cannot be split over `tensor` ranks, or an empty string."""
    architecture = model.architecture
    if architecture.attention.heads % tensor:
        return f"{tensor} does not divide the {architecture.attention.heads} attention heads of {model.title}"
    intermediate = architecture.experts.intermediate if architecture.experts else architecture.intermediate
    if intermediate % tensor:
        return f"{tensor} does not divide the width {intermediate} of {model.title}'s layers"
    return ""


def _aligned(tensor: int, gpus_per_node: int) -> bool:
    """A tensor parallel group fills whole nodes or lies inside one."""
    return tensor % gpus_per_node == 0 or gpus_per_node % tensor == 0
