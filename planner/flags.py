"""What a user typed to describe a case, and what is wrong with each value by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.catalogue import CATALOGUE, precisions
from planner.checks import closest
from planner.hardware import GPU_TYPES, GPUS

DEFAULT_MODEL = "kimi-k2.5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the user typed; None where nothing was."""

    model: str | None = None
    precision: str | None = None
    gpu: str | None = None
    instance_type: str | None = None
    gpus_per_node: int | None = None
    nodes: int | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    data_parallel: int | None = None
    decode_context_parallel: int | None = None
    expert_parallel: bool = False
    gpu_memory_utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    kv_cache_dtype: str | None = None


_LIMITS: dict[str, tuple[float, float, float]] = {
    # Lowest, highest, what to try.
    "gpus_per_node": (1, 72, 8),
    "nodes": (1, 64, 2),
    "tensor_parallel": (1, 128, 8),
    "pipeline_parallel": (1, 64, 2),
    "data_parallel": (1, 128, 1),
    "decode_context_parallel": (1, 64, 1),
    "gpu_memory_utilization": (0.05, 1.0, 0.9),
    "max_model_len": (1, 16_777_216, 131_072),
    "max_num_seqs": (1, 65_536, 64),
    "max_num_batched_tokens": (1, 4_194_304, 8192),
}


def flag(name: str) -> str:
    """A field of `Flags` as it is typed."""
    return "--" + name.replace("_", "-")


def numbers(flags: Flags) -> Iterator[str]:
    """A line for each number out of bounds."""
    for name, (low, high, example) in _LIMITS.items():
        given = getattr(flags, name)
        if given is not None and not low <= given <= high:
            yield f"{flag(name)} {given}: allowed are {low:g} to {high:g} (try {flag(name)} {example:g})"


def names(flags: Flags) -> Iterator[str]:
    """A line for each name that is not known, and for flags that exclude each other."""
    choices = (
        ("model", tuple(CATALOGUE)),
        ("gpu", tuple(GPUS)),
        ("instance_type", tuple(GPU_TYPES)),
        ("kv_cache_dtype", ("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2")),
    )
    for name, allowed in choices:
        given = getattr(flags, name)
        if given is not None and given not in allowed:
            nearest = closest(given, allowed) or allowed[0]
            yield f"{flag(name)} {given}: allowed are {', '.join(allowed)} (try {flag(name)} {nearest})"
    if flags.gpu is not None and flags.instance_type is not None:
        yield "--gpu and --instance-type both name the GPU (leave out one)"
    if flags.instance_type is not None and flags.gpus_per_node is not None:
        yield "--instance-type says how many GPUs a node has (leave out --gpus-per-node)"
    if flags.precision is not None and (flags.model or DEFAULT_MODEL) in CATALOGUE:
        known = tuple(precisions(CATALOGUE[flags.model or DEFAULT_MODEL]))
        if flags.precision not in known:
            listed = ", ".join(known)
            yield f"--precision {flags.precision}: there are checkpoints in {listed} (try --precision {known[0]})"
