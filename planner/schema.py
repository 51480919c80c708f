"""Reads a stack file's raw mapping into settings, and tells what pydantic refused in the file's own terms."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from planner import defaults
from planner.catalogue import CATALOGUE
from planner.checks import NotAllowedError, closest
from planner.hardware import GPU_TYPES
from planner.introspection import (
    bounds,
    field_at,
    keys_of,
    kinds_at,
    member,
    path_in_file,
    section_at,
    sections_by_kind,
    sections_of,
)
from planner.problems import Mend, Path, Problem, dotted, value_at
from planner.sections import Section
from planner.settings import Deployment

# A file that would do: what a mending command sets, and what stands in for refused values while rules are
# checked.
_EXAMPLE: dict[str, Any] = {
    "name": "kimi-k25",
    "model": "kimi-k2.5",
    "platform": {
        "region": "us-east-1",
        "availabilityZone": "us-east-1a",
        "kubernetesVersion": "1.35",
        "publicAccessCidrs": ["203.0.113.7/32"],
    },
    "gpuNodes": {"instanceType": "p5.48xlarge", "count": 2},
    "weights": {"kind": "fsx", "revision": "4d01dfe0332d63057c186e0b262165819efb6611"},
}
# Examples for choices that the example file does not make.
_CHOICES: dict[str, object] = {
    "platform.network.vpcId": "vpc-0123456789abcdef0",
    "platform.network.controlPlaneSubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "platform.network.gpuSubnetId": "subnet-0123456789abcdef2",
    "platform.context": "my-cluster",
    "platform.gpuNodeLabels": {"gpu-pool": "h100"},
    "platform.gpuNodeTolerations.key": "nvidia.com/gpu",
    "gpuNodes.instanceType.gpu": "h100-80gb",
    "gpuNodes.instanceType.gpus": 8,
    "gpuNodes.instanceType.vcpus": 192,
    "gpuNodes.instanceType.memoryGib": 2048,
    "weights.namespace": "models",
    "weights.claim": "weights",
    "weights.source.bucket": "my-models",
    "serving.image": defaults.IMAGE,
}
# What is allowed where the settings only hold a pattern, or nothing to take a text from.
_ALLOWED = {
    "name": "a DNS label, as kimi-k25",
    "model": f"one of {', '.join(CATALOGUE)}",
    "platform": "where the stack runs: region, availabilityZone and publicAccessCidrs at least",
    "platform.region": "an AWS region, as us-east-1",
    "platform.availabilityZone": "a zone of the region, as us-east-1a",
    "platform.kubernetesVersion": "1.33 or newer, as a quoted string",
    "platform.publicAccessCidrs": "a list of at least one network that you deploy from, as 203.0.113.7/32",
    "platform.admins": "ARNs of IAM roles or users, as arn:aws:iam::123456789012:role/Admin",
    "platform.network.vpcId": "the id of a VPC: vpc- and 8 to 17 hex digits",
    "platform.network.controlPlaneSubnetIds": "at least two subnet ids, in two availability zones",
    "platform.network.gpuSubnetId": "the id of a subnet: subnet- and 8 to 17 hex digits",
    "platform.context": "a context of the kubeconfig, as `kubectl config get-contexts` lists them",
    "platform.gpuNodeLabels": "labels that the GPU nodes carry and no other node, as gpu-pool: h100",
    "platform.gpuNodeTolerations.key": "the key of a taint, as nvidia.com/gpu",
    "gpuNodes": "the GPU nodes: instanceType and count",
    "gpuNodes.instanceType": f"one of {', '.join(GPU_TYPES)}",
    "gpuNodes.count": "0 (paused) to 16",
    "weights": "the weight cache: kind and revision at least",
    "weights.namespace": "the namespace of the claim",
    "weights.claim": "the name of a claim in weights.namespace",
    "weights.source.bucket": "the bucket's name",
    "weights.revision": "the commit of the model's repository: 40 hex digits",
}

# Pydantic's names for what is expected, in the words of a stack file.
_KINDS_OF_VALUE = {
    "missing": "a value",
    "string_type": "text (in quotes where it looks like a number)",
    "float_parsing": "a valid number",
    "int_parsing": "a valid whole number",
    "model_type": "a mapping of keys",
    "dict_type": "a mapping of keys",
    "tuple_type": "a list",
    "list_type": "a list",
}


def read(raw: Mapping[str, object]) -> tuple[Deployment, tuple[Problem, ...], tuple[Path, ...]]:
    """The settings, what is wrong with the file, and which values were replaced by examples because of that.

    The replaced settings let the rules that join several values look at what is sound, so that one run names
    every problem of the file.
    """
    if not isinstance(raw, Mapping):
        raw = {}
    try:
        return Deployment.model_validate(raw), (), ()
    except ValidationError as error:
        details = error.errors(include_url=False)
    found = tuple(_describe(raw, detail) for detail in details)
    # A list that lost a refused entry is "too short" as well: one of the two messages is enough.
    inner = tuple(problem.path[:-1] for problem in found if isinstance(problem.path[-1], int))
    problems = tuple(problem for problem in found if problem.path not in inner)
    settings, replaced = _with_examples(raw, [problem.path for problem in problems])
    return settings, problems, replaced


def _with_examples(raw: Mapping[str, object], refused: list[Path]) -> tuple[Deployment, tuple[Path, ...]]:
    """Replace refused values; where that is not enough, replace the sections around them too."""
    mended: dict[str, Any] = copy.deepcopy(dict(raw))
    replaced: list[Path] = []
    while True:
        before = tuple(replaced)
        for path in refused:
            while path in before:
                path = path[:-1]
            # What lies in a section that has just been replaced is gone with it.
            if not any(path[: len(other)] == other for other in replaced[len(before) :]):
                _replace(mended, path)
                replaced.append(path)
        try:
            return Deployment.model_validate(mended), tuple(replaced)
        except ValidationError as error:
            refused = [path_in_file(mended, detail["loc"]) for detail in error.errors()]


def _describe(raw: Mapping[str, object], detail: ErrorDetails) -> Problem:
    path = path_in_file(raw, detail["loc"])
    given = None if detail["type"] == "missing" else value_at(raw, path)
    if detail["type"] == "extra_forbidden":
        return _unknown_key(raw, path, given)
    if detail["type"].startswith("union_tag"):
        kinds = kinds_at(raw, path)
        kind = (*path, "kind")
        allowed, meant = " or ".join(kinds), _meant_kind(raw, path, kinds)
        return Problem(path=kind, given=value_at(raw, kind), allowed=allowed, mends=(Mend(kind, meant),))
    allowed, value = _allowed(raw, path, detail)
    mends = _mends(path, value)
    # Pulumi sets nothing inside a value that is no mapping or list: it has to go first.
    inside = given is not None and any(len(mend.path) > len(path) for mend in mends)
    return Problem(path=path, given=given, allowed=allowed, mends=(Mend(path, None), *mends) if inside else mends)


def _meant_kind(raw: Mapping[str, object], path: Path, kinds: list[str]) -> str:
    """The kind that looks like what was written, else the one that knows most of the keys beside it."""
    beside = value_at(raw, path)
    keys = set(beside) if isinstance(beside, Mapping) else set()
    known = {kind: len(keys & set(keys_of(section))) for kind, section in sections_by_kind(raw, path).items()}
    written = value_at(raw, (*path, "kind"))
    meant = closest(written, kinds) if isinstance(written, str) else None
    return meant or max(kinds, key=lambda kind: known[kind])


def _unknown_key(raw: Mapping[str, object], path: Path, given: object) -> Problem:
    section = section_at(raw, path[:-1]) or Deployment
    known = keys_of(section)
    others = [kind for kind, other in sections_by_kind(raw, path[:-1]).items() if path[-1] in keys_of(other)]
    if others:
        allowed = f"no such key here: it belongs to kind {' and '.join(others)}. Known here: {', '.join(known)}"
        return Problem(path=path, given=given, allowed=allowed, mends=(Mend(path, None),))
    meant = closest(str(path[-1]), [key for key in known if key != "kind"])
    hint = f"; did you mean {meant}?" if meant else "."
    mends = [Mend(path, None)]
    field = member(section, meant) if meant is not None else None
    # The value may have been meant for that key, unless a whole section or a value of its own stands there.
    free = meant is not None and value_at(raw, (*path[:-1], meant)) is None
    if meant is not None and free and field is not None and not sections_of(field.annotation):
        mends.append(Mend((*path[:-1], meant), given))
    allowed = f"no such key{hint} Known here: {', '.join(known)}"
    return Problem(path=path, given=given, allowed=allowed, mends=tuple(mends))


def _allowed(raw: Mapping[str, object], path: Path, detail: ErrorDetails) -> tuple[str, object]:
    """What is allowed at `path`, and a value that would do (None if none can be named)."""
    names = tuple(step for step in path if isinstance(step, str))
    field = field_at(raw, names)
    default = None if field is None or field.is_required() else field.get_default(call_default_factory=True)
    example = _example(path)
    if example is None:
        example = default
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, NotAllowedError):
        return cause.allowed, example if cause.suggestion is None else cause.suggestion
    message = _KINDS_OF_VALUE.get(detail["type"]) or detail["msg"].removeprefix("Input should be ")
    return _ALLOWED.get(dotted(names)) or (bounds(field) if field else "") or message, example


def _example(path: Path) -> object:
    """A value for `path` that would do; None if there is none to name."""
    found = value_at(_EXAMPLE, path)
    names = tuple(step for step in path if isinstance(step, str))
    return _CHOICES.get(dotted(names)) if found is None else found


def _mends(path: Path, value: object) -> tuple[Mend, ...]:
    """How to set `value`, leaf by leaf; an optional value that has no example is best taken out."""
    if isinstance(value, Mapping):
        return tuple(mend for key, inner in value.items() for mend in _mends((*path, key), inner))
    if isinstance(value, list):
        return tuple(mend for index, inner in enumerate(value) for mend in _mends((*path, index), inner))
    return (Mend(path, None if isinstance(value, Section | tuple) else value),)


def _replace(mended: dict[str, Any], path: Path) -> None:
    """Put the example's value at `path`; without one, take the value out. A list is replaced as a whole."""
    names = tuple(itertools.takewhile(lambda step: isinstance(step, str), path))
    if not names:
        mended.clear()
        mended.update(copy.deepcopy(_EXAMPLE))
        return
    parent = value_at(mended, names[:-1])
    example = _example(names)
    if not isinstance(parent, dict):
        _replace(mended, names[:-1])
    elif example is None:
        parent.pop(names[-1], None)
    else:
        parent[names[-1]] = copy.deepcopy(example)
