"""When the engine worked on what, read from the events of `pulumi up --json`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One resource's step: when it began and ended, in seconds since 1970. The engine gives whole seconds."""

    begin: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Whether both ran at some time, by more than a second that they might share by rounding."""
        return self.begin < other.end and other.begin < self.end


def spans(lines: Iterable[str]) -> dict[str, Span]:
    """The last step of every resource by its logical name; one that has not ended ends with the last event."""
    found: dict[str, Span] = {}
    running: set[str] = set()
    for event in (json.loads(line) for line in lines if line.startswith("{")):
        now = int(event.get("timestamp", 0))
        found |= {name: replace(found[name], end=now) for name in running if now}
        if name := _name(event, "resourcePreEvent"):
            found[name] = Span(begin=now, end=now)
            running.add(name)
        for kind in ("resOutputsEvent", "resOpFailedEvent"):
            running.discard(_name(event, kind))
    return found


def _name(event: dict[str, dict[str, dict[str, str]]], kind: str) -> str:
    metadata = event.get(kind, {}).get("metadata", {})
    return metadata["urn"].rpartition("::")[2] if metadata and metadata["op"] != "same" else ""
