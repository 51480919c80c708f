"""A model that the stack file describes itself, instead of naming one of the catalogue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner import checkpoint_config
from planner.catalogue import CATALOGUE
from planner.checkpoint_config import ConfigError
from planner.models import Model, Source
from planner.weights import parameters

# Keys of an inline model and their types; all but the first two may be left out.
KEYS: dict[str, type | tuple[type, ...]] = {
    "repository": str,
    "config": Mapping,
    "flags": list,
    "environment": Mapping,
    "toolCallParser": str,
    "reasoningParser": str,
    "minimumVllm": str,
    "gated": bool,
    "checkpointBytes": int,
    "licence": str,
}
_REQUIRED = ("repository", "config")
# The release whose layouts the planner was measured with; older ones are not refused without a reason.
_ANY_VLLM = "0.11.1"


def resolve(value: object) -> Model:
    """The model that `model:` of a stack file means: a name or a mapping. Raises ConfigError or KeyError."""
    return inline(value) if isinstance(value, Mapping) else CATALOGUE[str(value)]


def inline(entry: Mapping[str, Any]) -> Model:
    """The model that a mapping describes. Raises ConfigError, which says what is wrong with it."""
    _check(entry)
    found = checkpoint_config.read(entry["config"])
    repository = entry["repository"]
    model = Model(
        repository=repository,
        title=repository.rpartition("/")[2],
        family=repository.rpartition("/")[2].lower(),
        weights=found.precision,
        architecture=found.architecture,
        total_parameters=0.0,
        active_parameters=0.0,
        context_tokens=found.context_tokens,
        minimum_vllm=entry.get("minimumVllm", _ANY_VLLM),
        licence=entry.get("licence", "not stated"),
        sources=(Source(figures="all", where="the stack file", date=""),),
        checkpoint_bytes=entry.get("checkpointBytes"),
        required_flags=tuple(str(flag) for flag in entry.get("flags", ())),
        environment=tuple((str(name), str(value)) for name, value in entry.get("environment", {}).items()),
        tool_call_parser=entry.get("toolCallParser"),
        reasoning_parser=entry.get("reasoningParser"),
        gated=entry.get("gated", False),
    )
    return _counted(model)


def json_object(file: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises ConfigError."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(error.strerror)) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"no JSON: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError("one JSON object is expected")
    return content


def entry(repository: str, config: Mapping[str, Any], index: Mapping[str, Any] | None) -> dict[str, Any]:
    """What stands under `model:` of a stack file for a checkpoint. Raises ConfigError."""
    checkpoint_config.read(config)
    written: dict[str, Any] = {"repository": repository}
    if index is not None:
        metadata = index.get("metadata")
        size = metadata.get("total_size") if isinstance(metadata, Mapping) else None
        if not isinstance(size, int) or size <= 0:
            raise ConfigError("the index has no metadata.total_size, the bytes of all tensors")
        written["checkpointBytes"] = size
    return {**written, "config": {key: value for key, value in config.items() if key in checkpoint_config.KEYS}}


def _check(entry: Mapping[str, Any]) -> None:
    unknown = [key for key in entry if key not in KEYS]
    if unknown:
        raise ConfigError(f"an inline model has no key {unknown[0]}; known are {', '.join(KEYS)}")
    for key, kind in KEYS.items():
        if key in _REQUIRED and key not in entry:
            raise ConfigError(f"an inline model needs {key} (`python -m planner import config.json` writes one)")
        if key in entry and (not isinstance(entry[key], kind) or (kind is int and isinstance(entry[key], bool))):
            raise ConfigError(f"{key} of an inline model is of the wrong kind: {entry[key]!r}")
    owner, slash, name = entry["repository"].partition("/")
    if not (owner and slash and name):
        raise ConfigError("repository of an inline model is owner/name, as on the Hub")


def _counted(model: Model) -> Model:
    """With its parameters, as the architecture gives them: config.json does not say."""
    architecture = model.architecture
    total, active = parameters(model), parameters(model)
    if architecture.experts is not None:
        only = replace(architecture.experts, routed=architecture.experts.active)
        active = parameters(replace(model, architecture=replace(architecture, experts=only)))
    return replace(model, total_parameters=total, active_parameters=active)
