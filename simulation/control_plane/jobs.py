"""How Jobs shall end. Told at any time, also before the cluster exists; `node_agent` carries it out.

A Job of which nothing is told completes at once with exit code 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from simulation import paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of every pod of a Job."""

    exit_code: int = 0
    message: str = ""
    """The termination message, cut to the kubelet's 4096 bytes."""
    config_map: dict[str, dict[str, str]] = field(default_factory=dict)
    """ConfigMaps of the Job's namespace by name, with the data that the pods write before they end."""
    seconds: float = 0.0
    """How long the pods run before that, from their start, which the API keeps in whole seconds."""
    held: bool = False
    """Whether the pods go on running until something else is told."""


def finish(
    name: str,
    *,
    exit_code: int = 0,
    message: str = "",
    config_map: Mapping[str, Mapping[str, str]] | None = None,
    seconds: float = 0.0,
) -> None:
    """Has the pods of every Job whose name begins with `name` end so `seconds` after their start.

    Pods that run already are included.

    `config_map` maps the name of a ConfigMap to the data that the pods merge into it first, with their own
    service account's rights; where that is refused they end with exit code 1 and the refusal as their
    message.
    """
    data = {map_name: dict(values) for map_name, values in (config_map or {}).items()}
    _tell(name, Outcome(exit_code=exit_code, message=message, config_map=data, seconds=seconds))


def hold(name: str) -> None:
    """Has the pods of every Job whose name begins with `name` run until `finish` or `reset`."""
    _tell(name, Outcome(held=True))


def reset() -> None:
    """Forgets all that was told."""
    _file().unlink(missing_ok=True)


def told() -> dict[str, Outcome]:
    """All that was told, by the beginning of the Job's name."""
    try:
        kept = json.loads(_file().read_text())
    except FileNotFoundError:
        return {}
    return {name: Outcome(**outcome) for name, outcome in kept.items()}


def outcome_of(job: str, outcomes: Mapping[str, Outcome]) -> Outcome:
    """What was told for the Job: the longest name that it begins with decides."""
    fitting = [name for name in outcomes if job.startswith(name)]
    return outcomes[max(fitting, key=len)] if fitting else Outcome()


def _tell(name: str, outcome: Outcome) -> None:
    outcomes = told() | {name: outcome}
    paths.home().mkdir(parents=True, exist_ok=True)
    fresh = _file().with_suffix(".new")
    fresh.write_text(json.dumps({key: asdict(value) for key, value in outcomes.items()}, indent=2))
    fresh.replace(_file())


def _file() -> Path:
    return paths.home() / "jobs.json"
