"""The rules about what users add to vLLM's command line: `serving.extraArgs`, and the flags of a model of their own.

What the plan decides is refused in any release of vLLM; whether a flag exists and takes such values is known of one
release alone (`vllm_flags.json`). With another `serving.vllmVersion` vLLM itself has to refuse, when it starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from planner import vllm
from planner.catalogue import precisions
from planner.checks import closest
from planner.problems import API_KEY, Mend, Path, Problem, dotted
from planner.rules import Facts, Rule, path
from planner.settings import Serving
from planner.vllm_flags import Argument, arguments, release

EXTRA_ARGUMENTS = path("serving.extraArgs")
MODEL_FLAGS = path("model.flags")

# What the plan decides by a setting, which is the one to change.
_SETTINGS = {
    "--api-key": API_KEY,
    "--enable-expert-parallel": path("serving.expertParallel"),
    "--gpu-memory-utilization": path("serving.gpuMemoryUtilization"),
    "--kv-cache-dtype": path("serving.kvCacheDtype"),
    "--max-model-len": path("serving.maxModelLen"),
    "--max-num-batched-tokens": path("serving.maxNumBatchedTokens"),
    "--max-num-seqs": path("serving.maxNumSeqs"),
    "--model": path("model"),
    "--nnodes": path("gpuNodes.count"),
    "--pipeline-parallel-size": path("serving.pipelineParallel"),
    "--revision": path("weights.revision"),
    "--tensor-parallel-size": path("serving.tensorParallel"),
}
# What is decided otherwise, and how.
_CACHE = "the KV cache gets what serving.gpuMemoryUtilization leaves it"
_ENDPOINT = f"Service and probes speak HTTP on port {vllm.PORT} of the leader"
_OPERATOR = "each pod is told its own by the operator"
_SPLIT = "one engine is split over all GPUs, by serving.tensorParallel and serving.pipelineParallel"
_FIXED = {
    "--api-server-count": "all pods get these arguments, and vLLM refuses this one where no HTTP is served",
    "--config": "arguments in a file cannot be checked: write them here",
    "--distributed-executor-backend": "always mp: the images hold no Ray",
    "--distributed-timeout-seconds": "ranks wait for the slowest load that the startup probe allows",
    "--grpc": _ENDPOINT,
    "--headless": _OPERATOR,
    "--help": "vLLM would print its flags and end",
    "--hf-token": "only staging asks the Hub; huggingFaceToken is its token",
    "--host": _ENDPOINT,
    "--kv-cache-memory-bytes": _CACHE,
    "--master-addr": _OPERATOR,
    "--master-port": "the workers' probes dial it",
    "--node-rank": _OPERATOR,
    "--num-gpu-blocks-override": _CACHE,
    "--port": _ENDPOINT,
    "--prefill-context-parallel-size": _SPLIT,
    "--shutdown-timeout": "it is part of the time that Kubernetes gives a pod to end",
    "--ssl-certfile": _ENDPOINT,
    "--ssl-keyfile": _ENDPOINT,
    "--uds": _ENDPOINT,
}


def extra_arguments(facts: Facts) -> Iterator[Problem]:
    """What is wrong with `serving.extraArgs`."""
    yield from _problems(facts, EXTRA_ARGUMENTS, facts.settings.serving.extra_args)


def model_flags(facts: Facts) -> Iterator[Problem]:
    """What is wrong with the flags of a model that the stack file describes."""
    if isinstance(facts.settings.model, Mapping):
        yield from _problems(facts, MODEL_FLAGS, facts.model.required_flags)


def _problems(facts: Facts, place: Path, words: Sequence[str]) -> Iterator[Problem]:
    """The last argument first: taking an entry out of the list moves those after it."""
    known = facts.settings.serving.vllm_version == release().version
    for argument in reversed(list(arguments(words))):
        found = _contradiction(facts, place, argument)
        if found is None and known:
            found = _unknown(facts, place, argument) if argument.flag is None else _values(place, argument)
        if found is not None:
            yield found


def _contradiction(facts: Facts, place: Path, argument: Argument) -> Problem | None:
    """An argument about something that the plan decides. Its value is not shown: it may be a key."""
    name = argument.flag.name if argument.flag else argument.written
    setting, reason = _SETTINGS.get(name), _reason(facts, name)
    if setting is None and reason is None:
        return None
    return Problem(
        path=(*place, argument.index),
        given=argument.written,
        allowed=f"not here: {reason or f'{dotted(setting or ())} is the setting for it'}",
        mends=(*(_moved(facts, setting, argument) if setting else ()), *_removed(place, argument)),
    )


def _reason(facts: Facts, name: str) -> str | None:
    """How something is decided that has no setting of its own, or None."""
    model = facts.model
    if name == "--served-model-name":
        return f"clients know the model by its repository, {model.repository}"
    if name == "--quantization":
        others = ", ".join(other.name for other in precisions(model).values() if other.name != model.name)
        other = f"; other precisions are models of their own: {others}" if others else ""
        return f"vLLM reads it from the checkpoint ({model.precision}) and refuses any other{other}"
    return _SPLIT if name.startswith("--data-parallel-") else _FIXED.get(name)


def _moved(facts: Facts, setting: Path, argument: Argument) -> tuple[Mend, ...]:
    """How to say the same with the setting, where the value would do there."""
    if setting == API_KEY:
        return () if facts.api_key_given else (Mend(API_KEY, ""),)
    section, *keys = setting
    if section != "serving":
        return ()
    value = next(iter(argument.values), not argument.written.startswith("--no-"))
    try:
        Serving.model_validate(dict.fromkeys(keys, value))
    except ValidationError:
        return ()
    return (Mend(setting, value),)


def _unknown(facts: Facts, place: Path, argument: Argument) -> Problem:
    """A word that vLLM would not take, with the flag that was probably meant."""
    flags = release().flags
    meant = closest(argument.written, [name for name in flags if name.startswith("--")])
    hint = f"; did you mean {meant}?" if meant else ""
    mends = _removed(place, argument)
    if meant is not None:
        other = replace(argument, written=meant, flag=flags[meant])
        if not _contradiction(facts, place, other) and not _values(place, other):
            attached = "" if argument.attached is None else f"={argument.attached}"
            mends = (Mend((*place, argument.index), f"{meant}{attached}"),)
    return Problem(
        path=(*place, argument.places[0]),
        given=argument.written or argument.values[0],
        allowed=f"a flag of vLLM {release().version}, and then its values{hint}",
        mends=mends,
    )


def _values(place: Path, argument: Argument) -> Problem | None:
    """Values that vLLM would not take for a flag that it knows."""
    flag, count = argument.flag, len(argument.values)
    if flag is None:
        return None
    if argument.spaced:
        joined = f"{argument.written}={argument.attached}"
        allowed = f"{joined}, or two entries of the list: no shell takes them apart"
        mends = (Mend((*place, argument.index), joined),)
        return Problem(path=(*place, argument.index), given=argument.written, allowed=allowed, mends=mends)
    wrong = [value for value in argument.values if flag.choices and value not in flag.choices]
    if flag.most is not None and count > flag.most:
        allowed = "no value" if flag.most == 0 else f"{flag.most} value"
    elif count < flag.least:
        allowed = f"a value, as the list's next entry or as {argument.written}=..."
    elif wrong:
        allowed = ", ".join(flag.choices)
    else:
        return None
    return Problem(
        path=(*place, argument.index),
        given=" ".join((argument.written, *argument.values)),
        allowed=f"{allowed} for {argument.written} (vLLM {release().version})",
        mends=_removed(place, argument),
    )


def _removed(place: Path, argument: Argument) -> tuple[Mend, ...]:
    """Take the argument out, its last word first."""
    return tuple(Mend((*place, index), None) for index in reversed(argument.places))


_READS = (path("model"), path("serving.vllmVersion"))
ARGUMENT_RULES: tuple[Rule, ...] = (
    Rule(extra_arguments, (*_READS, EXTRA_ARGUMENTS)),
    Rule(model_flags, _READS),
)
