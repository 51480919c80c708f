"""Whether vLLM has kernels for a checkpoint on a GPU: beside "fits", whether it "runs".

"unknown" where nobody who published it ran it with a released vLLM: the planner does not guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.attention import MultiHeadLatentAttention
from planner.hardware import Gpu
from planner.models import Model

Verdict = Literal["yes", "no", "unknown"]
_AMPERE, _HOPPER, _BLACKWELL, _BLACKWELL_WORKSTATION = (8, 0), (9, 0), (10, 0), (12, 0)


@dataclass(frozen=True, slots=True)
class Runs:
    """The verdict, and why."""

    verdict: Verdict
    why: str


def runs(model: Model, gpu: Gpu) -> Runs:
    """The worse of what precision and attention say."""
    found = (_precision(model, gpu), _attention(model, gpu))
    return max(found, key=lambda item: ("yes", "unknown", "no").index(item.verdict))


def _precision(model: Model, gpu: Gpu) -> Runs:
    capability = gpu.compute_capability
    if model.precision == "nvfp4" and capability < _BLACKWELL:
        return Runs("no", f"NVFP4 needs Blackwell; {gpu.name} multiplies no 4-bit floats")
    if model.precision == "fp8" and not gpu.has_fp8:
        return Runs("yes", f"weight-only: {gpu.name} has no FP8 arithmetic, Marlin kernels expand the weights")
    if capability < _AMPERE:
        return Runs("no", "older than Ampere")
    return Runs("yes", f"{model.precision} kernels for {gpu.name}")


def _attention(model: Model, gpu: Gpu) -> Runs:
    attention, capability = model.architecture.attention, gpu.compute_capability
    if not isinstance(attention, MultiHeadLatentAttention):
        return Runs("yes", "grouped query attention runs everywhere")
    if attention.indexer is not None:
        if capability < _HOPPER:
            return Runs("no", "sparse MLA has kernels for Hopper and Blackwell alone (DeepGEMM, FlashMLA)")
        if capability >= _BLACKWELL_WORKSTATION:
            return Runs("unknown", "sparse MLA on RTX cards: community builds only (vllm-project/vllm#53963)")
    if capability >= _BLACKWELL_WORKSTATION:
        return Runs("unknown", "MLA on RTX cards: reported with community builds of vLLM only")
    return Runs("yes", "MLA kernels")
