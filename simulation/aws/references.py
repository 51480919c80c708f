"""Referential integrity: what a resource points at, and what points at it, within one transaction."""

from __future__ import annotations

from collections.abc import Iterator

from simulation.aws.errors import AwsError
from simulation.aws.resources import TABLE
from simulation.aws.schema import OnDelete, Reference, ResourceType
from simulation.aws.store import Row, View
from simulation.aws.values import Properties, at, values_at


def require_references(resource_type: ResourceType, inputs: Properties, view: View) -> None:
    """Raises AWS's own error for the first input that names something which does not exist."""
    for reference in resource_type.references:
        for value in values_at(inputs, reference.path):
            if value and not reference.outside(value) and not _exists(reference, value, view):
                code, message = reference.missing
                raise AwsError(code, message.format(value=value))


def require_unique(resource_type: ResourceType, inputs: Properties, view: View, old: Row | None) -> None:
    """Raises AWS's own error if the account already holds a resource with the same name or place."""
    for rule in resource_type.unique:
        own = [at(inputs, path) for path in rule.paths]
        if None in own:
            continue
        also = [at(inputs, path) for path in rule.also]
        for row in view.rows(resource_type.token):
            same = [at(row.state, path) for path in rule.paths] == own
            if same and [at(row.state, path) for path in rule.also] == also and (old is None or row.id != old.id):
                code, message = rule.error
                raise AwsError(code, message.format(*own))


def users_of(targets: list[Row], view: View) -> list[Row]:
    """The resources that keep `targets` from being deleted; what goes with them is left out."""
    gone = {(row.type, row.id) for row in [*targets, *followers_of(targets, view)]}
    return [
        row
        for row in view.rows()
        if (row.type, row.id) not in gone and any(_points(row, target, OnDelete.BLOCKS) for target in targets)
    ]


def followers_of(targets: list[Row], view: View) -> list[Row]:
    """The resources that AWS deletes along with `targets`, and those that go with them in turn."""
    followers: list[Row] = []
    for row in view.rows():
        known = [*targets, *followers]
        owned = any(row.owner == target.id for target in known)
        if row not in known and (owned or any(_points(row, target, OnDelete.FOLLOWS) for target in known)):
            followers.append(row)
    return followers


def _exists(reference: Reference, value: str, view: View) -> bool:
    if reference.key == "id":
        return view.get(reference.target, value) is not None
    return any(at(row.state, reference.key) == value for row in view.rows(reference.target))


def _points(row: Row, target: Row, on_delete: OnDelete) -> bool:
    return any(
        reference.target == target.type and reference.on_delete is on_delete and _name(target, reference) in values
        for reference, values in _pointers(row)
    )


def _pointers(row: Row) -> Iterator[tuple[Reference, list[str]]]:
    for reference in TABLE[row.type].references:
        yield reference, values_at(row.state, reference.path)


def _name(target: Row, reference: Reference) -> str:
    return target.id if reference.key == "id" else str(at(target.state, reference.key))
