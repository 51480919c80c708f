"""What the section classes declare: fields, bounds and kinds, by the path of a setting in the stack file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from planner.problems import Path, value_at
from planner.sections import Section
from planner.settings import Deployment


def bounds(field: FieldInfo) -> str:
    """The limits of a number, from the field's own declaration."""
    low = [item.ge for item in field.metadata if isinstance(item, annotated_types.Ge)]
    high = [item.le for item in field.metadata if isinstance(item, annotated_types.Le)]
    if low and high:
        return f"{low[0]} to {high[0]}"
    return f"at least {low[0]}" if low else ""


def path_in_file(raw: object, location: tuple[int | str, ...]) -> Path:
    """Pydantic's location without the tags of discriminated unions, which are no keys of the file."""
    path: list[str | int] = []
    for step in location:
        here = value_at(raw, tuple(path))
        if step in _TAGS and not (isinstance(here, Mapping) and step in here):
            continue
        path.append(step)
    return tuple(path)


def _tags(section: type[Section]) -> frozenset[str]:
    """Every name by which pydantic tells the choices of a union apart, below `section`."""
    choices = [choice for field in section.model_fields.values() for choice in sections_of(field.annotation)]
    return frozenset(_kind(section)).union(*map(_tags, choices))


def field_at(raw: Mapping[str, object], names: tuple[str, ...]) -> FieldInfo | None:
    """The declaration of the setting at `names`, None where the path leaves the settings."""
    section = section_at(raw, names[:-1]) if names else None
    return member(section, names[-1]) if section is not None else None


def section_at(raw: Mapping[str, object], path: Path) -> type[Section] | None:
    """The section at `path`, of several kinds the one that the file chose; None outside of the settings."""
    section: type[Section] = Deployment
    for depth, step in enumerate(path, start=1):
        field = member(section, step)
        choices = sections_of(field.annotation) if field is not None else ()
        if not choices:
            return None
        kind = value_at(raw, (*path[:depth], "kind"))
        section = next((choice for choice in choices if kind in _kind(choice)), choices[0])
    return section


def member(section: type[Section], key: str | int) -> FieldInfo | None:
    """The declaration of a key, in either spelling."""
    return next((field for name, field in section.model_fields.items() if key in (name, field.alias)), None)


def kinds_at(raw: Mapping[str, object], path: Path) -> list[str]:
    """The kinds among which a section at `path` chooses."""
    return list(sections_by_kind(raw, path))


def sections_by_kind(raw: Mapping[str, object], path: Path) -> dict[str, type[Section]]:
    """The sections among which the one at `path` chooses by its kind."""
    field = field_at(raw, tuple(step for step in path if isinstance(step, str)))
    return {kind: choice for choice in sections_of(field.annotation if field else None) for kind in _kind(choice)}


def keys_of(section: type[Section]) -> tuple[str, ...]:
    """The keys of a section, in the file's spelling."""
    return tuple(field.alias or name for name, field in section.model_fields.items())


def _kind(section: type[Section]) -> tuple[str, ...]:
    field = section.model_fields.get("kind")
    return get_args(field.annotation) if field is not None else ()


def sections_of(annotation: Any) -> tuple[type[Section], ...]:  # noqa: ANN401 (any type annotation)
    """The section classes in a type annotation."""
    candidates = (annotation, *get_args(annotation))
    plain = (get_args(item)[0] if get_origin(item) is Annotated else item for item in candidates)
    return tuple(item for item in plain if isinstance(item, type) and issubclass(item, Section))


_TAGS = _tags(Deployment) | {"named", "described"}
