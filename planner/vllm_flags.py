"""What `vllm serve` of one release takes, from `vllm_flags.json`, and how its parser reads a list of words.

`make flags` writes the file from vLLM's own parser, with the release and the day; a slow test holds it against that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("vllm_flags.json")
_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of vLLM: how many values it takes (`most` None: any number), and which, where vLLM names them."""

    name: str
    least: int
    most: int | None
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The flags of one release of vLLM, by each of their names."""

    version: str
    date: str
    flags: dict[str, Flag]

    def find(self, written: str) -> Flag | None:
        """The flag that vLLM takes a word for: by a name of its, or by a beginning that only one flag has."""
        if written in self.flags:
            return self.flags[written]
        begun = {self.flags[name].name for name in self.flags if name.startswith(written)}
        return self.flags[begun.pop()] if len(begun) == 1 and written.startswith("--") else None


@dataclass(slots=True)
class Argument:
    """A flag as written, at `index` of the list, with its values and their places; `flag` None: vLLM knows none.

    Values before any flag stand in an argument whose `written` is empty. `spaced`: flag and value are one word with a
    blank between them, as no shell would pass them on.
    """

    index: int
    written: str
    flag: Flag | None
    attached: str | None = None
    spaced: bool = False
    following: list[tuple[int, str]] = field(default_factory=list)

    @property
    def values(self) -> list[str]:
        """Values of either kind: after `=` or as words that follow."""
        return [*(() if self.attached is None else (self.attached,)), *(value for _, value in self.following)]

    @property
    def places(self) -> list[int]:
        """Every index of the list that it takes."""
        return [*([self.index] if self.written else []), *(index for index, _ in self.following)]


@cache
def release() -> Release:
    """The release that the file describes."""
    read = json.loads(FILE.read_text(encoding="utf-8"))
    flags: dict[str, Flag] = {}
    for name, entry in read["flags"].items():
        least, most = entry["values"]
        flag = Flag(name, least, most, tuple(entry.get("choices", ())))
        flags |= dict.fromkeys((name, *entry["names"]), flag)
    return Release(version=read["vllm"], date=read["date"], flags=flags)


def arguments(words: Sequence[str]) -> Iterator[Argument]:
    """The words by the flags they belong to, as vLLM's parser takes them."""
    current: Argument | None = None
    for index, word in enumerate(words):
        if word.startswith("-") and not _NUMBER.fullmatch(word):
            if current is not None:
                yield current
            current = _argument(index, word)
        else:
            current = current or Argument(index, "", None)
            current.following.append((index, word))
    if current is not None:
        yield current


def _argument(index: int, word: str) -> Argument:
    parts = re.match(r"([^=\s]*)(\s*=|\s*)(.*)", word, re.DOTALL)
    written, between, value = parts.groups() if parts else (word, "", "")
    attached, spaced = (value if between else None), between not in ("", "=")
    if written.startswith("--"):
        # A dash may be written as underscore; after a dot stands a key of the flag's JSON object.
        written = written.partition(".")[0].replace("_", "-")
    elif written.startswith("-O"):
        return Argument(index, "-O", release().flags["--optimization-level"], written[2:] or attached, spaced)
    found = release().find(written)
    if found is None and (short := release().flags.get(written[:2])):
        return Argument(index, written[:2], short, written[2:], spaced)
    return Argument(index, written, found, attached, spaced)
