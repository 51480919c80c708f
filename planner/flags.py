"""What a user typed to describe a case, and what is wrong with each value by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.catalogue import CATALOGUE, find, precisions
from planner.checks import nearest, spelled
from planner.hardware import GPU_TYPES, GPUS
from planner.refusals import Refusal

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


CACHE_TYPES = ("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2")
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


def canonical(flags: Flags) -> Flags:
    """The same with names as the tables spell them: case is ignored, and a model's repository names it too."""
    model = None if flags.model is None else find(flags.model)
    return replace(
        flags,
        model=model.name if model else flags.model,
        precision=flags.precision and flags.precision.lower(),
        gpu=flags.gpu and spelled(flags.gpu, GPUS),
        instance_type=flags.instance_type and spelled(flags.instance_type, GPU_TYPES),
    )


def numbers(flags: Flags) -> Iterator[Refusal]:
    """A problem for each number out of bounds."""
    for name, (low, high, example) in _LIMITS.items():
        given = getattr(flags, name)
        if given is not None and not low <= given <= high:
            typed = (f"{flag(name)} {example:g}",)
            yield Refusal(where=flag(name), given=given, allowed=f"{low:g} to {high:g}", type_=typed)


def names(flags: Flags) -> Iterator[Refusal]:
    """A problem for each name that is not known, and for flags that exclude each other."""
    choices = (
        ("model", tuple(CATALOGUE)),
        ("gpu", tuple(GPUS)),
        ("instance_type", tuple(GPU_TYPES)),
        ("kv_cache_dtype", CACHE_TYPES),
    )
    for name, allowed in choices:
        given = getattr(flags, name)
        if given is not None and given not in allowed:
            yield unknown_name(flag(name), given, allowed)
    if flags.gpu is not None and flags.instance_type is not None:
        yield _excluded("gpu", flags.gpu, "not beside --instance-type: both name the GPU")
    if flags.instance_type is not None and flags.gpus_per_node is not None:
        yield _excluded("gpus_per_node", flags.gpus_per_node, "not beside --instance-type, which says how many")
    if flags.precision is not None and (flags.model or DEFAULT_MODEL) in CATALOGUE:
        known = tuple(precisions(CATALOGUE[flags.model or DEFAULT_MODEL]))
        if flags.precision not in known:
            allowed_ = f"there are checkpoints in {', '.join(known)}"
            typed = (f"--precision {known[0]}",)
            yield Refusal(where="--precision", given=flags.precision, allowed=allowed_, type_=typed)


def unknown_name(flag_: str, given: str, known: tuple[str, ...]) -> Refusal:
    """A name that no table holds, with the nearest one to type."""
    typed = (f"{flag_} {nearest(given, known)}",)
    return Refusal(where=flag_, given=given, allowed=", ".join(known), type_=typed)


def _excluded(name: str, given: object, allowed: str) -> Refusal:
    return Refusal(where=flag(name), given=given, allowed=allowed, type_=(f"leave out {flag(name)}",))
