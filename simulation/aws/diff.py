"""What a changed input does to a resource: nothing, an update or a replacement. Pure.

The engine hands over the old state, which holds inputs, defaults and outputs alike. A property that only the
state holds has changed if it is neither an output nor a default: then the program has taken the input away.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum

from simulation.aws.schema import ResourceType
from simulation.aws.values import UNKNOWN, Json, Properties

_UNORDERED = frozenset(
    {
        "enabledClusterLogTypes",
        "kubernetesGroups",
        "publicAccessCidrs",
        "routeTableIds",
        "securityGroupIds",
        "securityGroups",
        "subnetIds",
        "taints",
        "vpcSecurityGroupIds",
    }
)
_POLICIES = ("assumeRolePolicy", "policy")
_COMMON_OUTPUTS = frozenset({"id", "region", "tagsAll"})


class Kind(Enum):
    """How a property has changed."""

    ADD = "add"
    DELETE = "delete"
    UPDATE = "update"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A changed property: its path in the engine's notation (`scalingConfig.desiredSize`, `tags["a.b"]`)."""

    path: str
    kind: Kind
    replace: bool

    @property
    def key(self) -> str:
        """The top-level property."""
        return re.split(r"[.\[]", self.path, maxsplit=1)[0]


def changes(resource_type: ResourceType, old_state: Properties, new_inputs: Properties) -> list[Change]:
    """Every input that differs from the state."""
    old = {key: value for key, value in old_state.items() if not key.startswith("__")}
    new = {key: value for key, value in new_inputs.items() if not key.startswith("__")}
    return _Comparison(resource_type).objects(old, new, "", "")


class _Comparison:
    """Walks two documents; `path` is the engine's notation, `plain` the tables' (without indices)."""

    def __init__(self, resource_type: ResourceType) -> None:
        self._type = resource_type

    def objects(self, old: Properties, new: Properties, path: str, plain: str) -> list[Change]:
        found: list[Change] = []
        for key in sorted({*old, *new}):
            below, plain_below = _join(path, key), f"{plain}.{key}" if plain else key
            if key not in new:
                if not self._fills_in(plain_below, old[key]):
                    found.append(self._change(below, plain_below, Kind.DELETE, old[key], None))
            elif key not in old:
                if new[key] not in ([], {}, ""):
                    found.append(self._change(below, plain_below, Kind.ADD, None, new[key]))
            else:
                found += self.values(old[key], new[key], below, plain_below)
        return found

    def values(self, old: Json, new: Json, path: str, plain: str) -> list[Change]:
        if _equal(old, new, plain):
            return []
        if isinstance(old, dict) and isinstance(new, dict):
            return self.objects(old, new, path, plain)
        lists = isinstance(old, list) and isinstance(new, list)
        if lists and len(old) == len(new) and plain.rpartition(".")[2] not in _UNORDERED:
            pairs = enumerate(zip(old, new, strict=True))
            return [item for index, (a, b) in pairs for item in self.values(a, b, f"{path}[{index}]", plain)]
        return [self._change(path, plain, Kind.UPDATE, old, new)]

    def _fills_in(self, plain: str, value: Json) -> bool:
        """Whether the provider, not the program, has put `value` there."""
        outputs, defaults = self._type.outputs, self._type.defaults
        computed = plain in outputs or plain in _COMMON_OUTPUTS
        return computed or value in ([], {}, "") or (plain in defaults and defaults[plain] == value)

    def _change(self, path: str, plain: str, kind: Kind, old: Json, new: Json) -> Change:
        forced = plain == "region" or any(
            plain == name or plain.startswith(f"{name}.") for name in self._type.forces_replacement
        )
        decide = self._type.replaces_when.get(plain)
        if decide and None not in (old, new) and UNKNOWN not in (old, new):
            forced = forced or decide(old, new)
        return Change(path=path, kind=kind, replace=forced)


def _equal(old: Json, new: Json, plain: str) -> bool:
    name = plain.rpartition(".")[2]
    if name in _UNORDERED and isinstance(old, list) and isinstance(new, list):
        return sorted(map(_key, old)) == sorted(map(_key, new))
    if name in _POLICIES and isinstance(old, str) and isinstance(new, str):
        return bool(_parsed(old) == _parsed(new))
    return bool(old == new)


def _key(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def _parsed(policy: str) -> Json:
    try:
        return json.loads(policy)
    except ValueError:
        return policy


def _join(path: str, key: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key
