"""A resource's state as the real provider returns it: inputs, defaults and computed outputs in one."""

from __future__ import annotations

import copy
from collections.abc import Callable

from simulation.aws.schema import ResourceType
from simulation.aws.values import UNKNOWN, Json, Properties, absent, place, values_at

ValueOf = Callable[[str, Properties], Json]
"""Computes the output at a path from the state so far."""


def build(resource_type: ResourceType, inputs: Properties, old: Properties, value_of: ValueOf) -> Properties:
    """The state after a create (`old` empty) or an update."""
    state: Properties = {key: copy.deepcopy(value) for key, value in inputs.items() if not key.startswith("__")}
    for path, default in resource_type.defaults.items():
        if absent(state, path) and _has_block(state, path):
            place(state, path, default)
    for path in resource_type.outputs:
        if not absent(state, path) or not _has_block(state, path):
            continue
        kept = [] if path in resource_type.recomputed else values_at(old, path)
        place(state, path, kept[0] if kept else value_of(path, state))
    return state


def planned(resource_type: ResourceType, inputs: Properties, old: Properties) -> Properties:
    """The state as a preview shows it: what AWS has yet to compute is unknown."""
    return build(resource_type, inputs, old, lambda _path, _state: UNKNOWN)


def add_common(resource_type: ResourceType, state: Properties, region: str, default_tags: Properties) -> Properties:
    """Adds what every AWS resource carries: its region, and all tags with the provider's own."""
    if resource_type.regional:
        state.setdefault("region", region)
    if resource_type.tagged:
        tags = state.get("tags", {})
        state["tagsAll"] = {**default_tags, **tags} if isinstance(tags, dict) else UNKNOWN
    return state


def inputs_from(inputs: Properties, state: Properties) -> Properties:
    """`inputs` with the values that `state` has for them now: how a refresh tells what has drifted."""
    return {
        key: _follow(value, state.get(key, value)) for key, value in inputs.items() if key in state or key[:2] == "__"
    }


def as_read(resource_type: ResourceType, state: Properties, known: Properties) -> Properties:
    """`state` as a read finds it: what AWS does not tell has the value that was `known`, or none."""
    told = {key: value for key, value in state.items() if key not in resource_type.unread}
    return told | {key: known[key] for key in resource_type.unread if key in known}


def imported_inputs(inputs: Properties, state: Properties) -> Properties:
    """The inputs of a resource that the stack does not know yet. That its name was generated is not known either."""
    return inputs_from({**inputs, "__defaults": []}, state)


def _follow(given: Json, now: Json) -> Json:
    if isinstance(given, dict) and isinstance(now, dict):
        return {key: _follow(value, now[key]) for key, value in given.items() if key in now}
    return now


def _has_block(state: Properties, path: str) -> bool:
    block, dot, _ = path.rpartition(".")
    return not dot or not absent(state, block)
