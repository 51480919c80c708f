"""Property documents: conversion from and to the engine's values, and paths into them.

Inside the simulation a resource's properties are plain JSON. The engine keeps track of secrets itself,
because the provider does not announce that it accepts them; so no secret wrapper ever arrives here.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pulumi.provider.experimental.property_value import PropertyValue, ResourceReference
from pulumi.runtime.rpc import UNKNOWN

Json: TypeAlias = Any
Properties: TypeAlias = dict[str, Any]

__all__ = ["UNKNOWN", "Json", "Properties", "absent", "at", "from_engine", "place", "to_engine", "values_at"]


def from_engine(properties: Mapping[str, PropertyValue]) -> Properties:
    """The engine's properties as JSON; unset ones are left out, whole numbers become `int`."""
    return {key: _plain(value) for key, value in properties.items() if value.value is not None}


def to_engine(properties: Properties) -> dict[str, PropertyValue]:
    """JSON properties as the engine takes them."""
    return {key: _wrapped(value) for key, value in properties.items()}


def _plain(value: PropertyValue) -> Json:
    content = value.value
    if isinstance(content, float):
        return int(content) if content.is_integer() else content
    if content is None or isinstance(content, (bool, str)):
        return content
    if isinstance(content, Mapping):
        return from_engine(content)
    if isinstance(content, Sequence) and not isinstance(content, str):
        return [_plain(item) for item in content]
    if isinstance(content, ResourceReference):
        return _plain(content.resource_id) if content.resource_id else content.urn
    raise TypeError(f"The simulated AWS provider takes no {type(content).__name__} (an asset or archive) yet.")


def _wrapped(value: Json) -> PropertyValue:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return PropertyValue(value)
    if isinstance(value, (int, float)):
        return PropertyValue(float(value))
    if isinstance(value, Mapping):
        return PropertyValue(to_engine(dict(value)))
    return PropertyValue([_wrapped(item) for item in value])


def values_at(document: Json, path: str) -> list[Json]:
    """Every value that `path` leads to: `networkInterfaces[].securityGroups[]` walks both lists."""
    found = [document]
    for step in path.split("."):
        name = step.removesuffix("[]")
        found = [node[name] for node in found if isinstance(node, dict) and node.get(name) is not None]
        if step.endswith("[]"):
            found = [item for node in found for item in (node if isinstance(node, list) else [node])]
    return found


def at(document: Json, path: str, default: Json = None) -> Json:
    """The one value that `path` leads to, or `default`."""
    return next(iter(values_at(document, path)), default)


def absent(document: Json, path: str) -> bool:
    """Whether nothing is set at `path`."""
    return not values_at(document, path)


def place(document: Properties, path: str, value: Json) -> None:
    """Sets `path` (without lists) to a copy of `value`; objects on the way are made."""
    *parents, last = path.split(".")
    node = document
    for name in parents:
        below = node.get(name)
        if not isinstance(below, dict):
            if below is not None:  # an unknown object stays unknown as a whole
                return
            below = node[name] = {}
        node = below
    node[last] = copy.deepcopy(value)
