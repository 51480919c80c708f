"""Whether vLLM has kernels for a precision on a GPU: fitting into its memory alone says nothing about that."""

from __future__ import annotations

from typing import Literal

from planner.hardware import Gpu
from planner.models import Model

Runs = Literal["yes", "no", "unknown"]


def runs(model: Model, gpu: Gpu) -> Runs:
    """yes / no / unknown."""
    capability = gpu.compute_capability
    if model.precision == "nvfp4":
        return "no" if capability < (10, 0) else "yes" if capability < (12, 0) else "unknown"
    if model.precision == "fp8" and capability < (8, 9):
        return "unknown"
    return "yes" if (8, 0) <= capability < (12, 0) else "unknown"
