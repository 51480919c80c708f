"""What the simulation knows about a resource type: the vocabulary in which `resources` is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from simulation.aws.store import Row, View
from simulation.aws.values import Json, Properties

ACCOUNT = "000000000000"
PARTITION = "aws"


class OnDelete(Enum):
    """What becomes of a reference when its target is deleted."""

    BLOCKS = "AWS refuses to delete the target while it is used"
    FOLLOWS = "the resource that refers goes with its target"
    DANGLES = "AWS does not mind; the reference points at nothing from then on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An input that names another resource.

    `path` leads to the name (see `values.values_at`), `key` to the target's property that it must equal
    ("id": its id). `missing` is AWS's error code and message, with `{value}`, when there is none.
    `outside(value)` tells what needs no target in this account (AWS-managed policies, other accounts' roles).
    """

    path: str
    target: str
    missing: tuple[str, str]
    key: str = "id"
    on_delete: OnDelete = OnDelete.BLOCKS
    outside: Callable[[str], bool] = lambda _: False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    """Inputs that together may occur once in the account, and AWS's error (with `{}` for each of `paths`).

    All of `paths` must be set for the rule to hold; those of `also` are compared unset or not.
    """

    paths: tuple[str, ...]
    error: tuple[str, str]
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What an output is computed from.

    `state` holds the inputs, the defaults and the outputs that stand earlier in the table; `old` the state
    before an update, empty at creation; `kubernetes` what the cluster behind an EKS resource has told.
    """

    id: str
    region: str
    state: Properties
    view: View
    old: Properties = field(default_factory=dict)
    kubernetes: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A create, update or delete as a check sees it. `old` is the row so far; at delete `inputs` is its
    state.
    """

    region: str
    inputs: Properties
    view: View
    old: Row | None = None


Output: TypeAlias = Callable[[Facts], Json]
Check: TypeAlias = Callable[[Request], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """A resource that AWS makes along with another; its id stands at `id_path` in the owner's state."""

    type: str
    id_path: str
    inputs: Callable[[Properties], Properties]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType:
    """One AWS resource type.

    - `outputs`: what AWS computes, by path, in this order. An output that is also an input (a subnet's zone)
      is computed only where it is not given, and taking the input away later changes nothing, as with the
      real provider. One inside a block is computed only where the block is there.
    - `defaults`: what the provider fills in for inputs left out. Taking such an input away goes back to the
      default.
    - `recomputed`: outputs that an update changes; the others keep their value.
    - `forces_replacement`: inputs by path that cannot be changed in place. `replaces_when` adds those that
      can be changed in one direction only: (old, new) -> whether the resource must be replaced.
    - `autonamed`: the input that Pulumi names `logicalname-0123abc` when it is left out.
    - `unread`: inputs that the provider cannot read back: of an imported resource they are unknown, and a refresh
      leaves them as they were.
    - `checks`: what AWS refuses at create and update; `delete_checks`: at delete, beyond resources still in
      use.
    - `in_use`: AWS's error code and message, with `{id}`, for a resource that others still use.
    """

    token: str
    new_id: Callable[[Properties], str]
    outputs: Mapping[str, Output] = field(default_factory=dict)
    defaults: Properties = field(default_factory=dict)
    recomputed: frozenset[str] = frozenset()
    forces_replacement: frozenset[str] = frozenset()
    replaces_when: Mapping[str, Callable[[Json, Json], bool]] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    references: tuple[Reference, ...] = ()
    unique: tuple[Unique, ...] = ()
    autonamed: str | None = None
    owned: tuple[Owned, ...] = ()
    checks: tuple[Check, ...] = ()
    delete_checks: tuple[Check, ...] = ()
    in_use: tuple[str, str] = ("DependencyViolation", "resource {id} has a dependent object.")
    tagged: bool = True
    regional: bool = True

    @property
    def title(self) -> str:
        """The short name of messages and faults: `eks:NodeGroup`."""
        module, _, cls = self.token.removeprefix("aws:").partition("/")
        return f"{module}:{cls.partition(':')[2]}"
