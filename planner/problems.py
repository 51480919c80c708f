"""What is wrong with a stack file, told so that it can be mended.

It says where, what was given, what is allowed and what to type. `schema.py` and the rules find them.
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

PREFIX = "deployment"
WIDTH = 100
Path = tuple[str | int, ...]
# The configuration values outside of `deployment` that rules ask for; both are secret.
API_KEY: Path = ("apiKey",)
HUB_TOKEN: Path = ("huggingFaceToken",)
_SECRETS = {
    API_KEY: 'pulumi config set --secret apiKey "$(openssl rand -hex 32)"',
    HUB_TOKEN: "pulumi config set --secret huggingFaceToken",
}


@dataclass(frozen=True, slots=True)
class Mend:
    """One change that helps: set the value at `path`, or remove it where `value` is None."""

    path: Path
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem. `path`: below `deployment`, in the file's spelling; `given`: None if it is missing."""

    path: Path
    given: object
    allowed: str
    mends: tuple[Mend, ...]


class SettingsError(Exception):
    """A stack file that is refused: its message names every problem of the file."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(render(problems))
        self.problems = tuple(problems)


def dotted(path: Path) -> str:
    """`("platform", "publicAccessCidrs", 0)` as `platform.publicAccessCidrs[0]`; a key with dots as `["a.b"]`."""
    text = ""
    for step in path:
        plain = isinstance(step, str) and not re.search(r"[][.\"\s]", step)
        text += f".{step}" if plain else f"[{json.dumps(step)}]"
    return text.removeprefix(".")


def config_command(mend: Mend) -> str:
    """The `pulumi config` command that makes the change."""
    if mend.path in _SECRETS:
        return _SECRETS[mend.path]
    where = f"--path {_quoted(dotted((PREFIX, *mend.path)))}"
    if mend.value is None:
        return f"pulumi config rm {where}"
    value = _shell(mend.value)
    # A value that begins with a dash would be taken for a flag of Pulumi's.
    return f"pulumi config set {where} {'-- ' if value.startswith('-') else ''}{value}"


def render(problems: Iterable[Problem], command: Callable[[Mend], str] = config_command) -> str:
    """All problems as one text; a command stands on one line of its own, so that it can be copied."""
    listed = tuple(problems)
    heading = "1 setting must be mended" if len(listed) == 1 else f"{len(listed)} settings must be mended"
    lines = [f"{heading} before anything is created:"]
    for number, problem in enumerate(listed, start=1):
        lines += ["", f"{number}. {place_of(problem)}"]
        lines += labelled("given", "nothing" if problem.given is None else _shorten(problem.given))
        lines += labelled("allowed", problem.allowed)
        lines += [f"   type:    {command(mend)}" for mend in problem.mends]
    return "\n".join(lines)


def place_of(problem: Problem) -> str:
    """Where the problem is, as Pulumi names it: `deployment.gpuNodes.count`, or a secret's key."""
    return dotted(problem.path if problem.path in _SECRETS else (PREFIX, *problem.path))


def touches(path: Path, other: Path) -> bool:
    """Whether one path lies inside the other."""
    length = min(len(path), len(other))
    return path[:length] == other[:length]


def value_at(raw: object, path: Path) -> object:
    """The value that stands at `path` in the file, None if there is none."""
    for step in path:
        if isinstance(raw, Mapping):
            raw = raw.get(step)
        elif isinstance(raw, Sequence) and not isinstance(raw, str) and isinstance(step, int) and step < len(raw):
            raw = raw[step]
        else:
            return None
    return raw


def labelled(label: str, text: str) -> list[str]:
    """The lines of `text` in a column of its own beside its label; its line breaks stay."""
    wrapped = [line for part in text.splitlines() for line in _wrap(part)] or [""]
    labels = (f"{label}:", *("" for _ in wrapped[1:]))
    return [f"   {name:<9}{line}" for name, line in zip(labels, wrapped, strict=True)]


def _wrap(line: str) -> list[str]:
    """A command stays whole, so that it can be copied."""
    if line.startswith("aws "):
        return [line]
    return textwrap.wrap(line, WIDTH - 12, break_on_hyphens=False, break_long_words=False)


def _shorten(value: object) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _quoted(text: str) -> str:
    """Always in quotes: brackets are the shell's."""
    return "'" + text.replace("'", "'\\''") + "'"


def _shell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else shlex.quote(str(value))
