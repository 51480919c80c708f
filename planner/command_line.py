"""What the planner's commands share: reading a stack file and flags, printing, refusing. It owns no command."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, NoReturn

import typer
import yaml
from rich.console import Console, RenderableType
from typer._click.exceptions import UsageError  # typer has no public name for it
from typer.core import TyperGroup

from planner.catalogue import CATALOGUE, find
from planner.flags import unknown_name
from planner.models import Model
from planner.plan import VALUE_RULES
from planner.plan import check as checked
from planner.problems import SettingsError
from planner.refusals import Refusal, RefusedError, of_settings
from planner.rules import Facts
from planner.tables import WIDTH

STACK_KEY = "vllm-multinode:deployment"
API_KEY = "vllm-multinode:apiKey"
HUB_TOKEN = "vllm-multinode:huggingFaceToken"  # noqa: S105 (the key's name)
DOES_NOT_FIT = 1
# Beyond these a flag is a mistake, and arithmetic leaves the finite numbers.
SMALLEST, LARGEST = 1e-6, 1e9
REFUSED = 2

# Settings that flags set, by their path in the stack file.
_FLAGS = {
    ("model",): "--model",
    ("gpuNodes", "instanceType"): "--instance-type",
    ("gpuNodes", "count"): "--nodes",
    ("serving", "tensorParallel"): "--tensor-parallel",
    ("serving", "pipelineParallel"): "--pipeline-parallel",
    ("serving", "gpuMemoryUtilization"): "--gpu-memory-utilization",
    ("serving", "maxModelLen"): "--max-model-len",
    ("serving", "maxNumSeqs"): "--max-num-seqs",
    ("serving", "maxNumBatchedTokens"): "--max-num-batched-tokens",
    ("serving", "kvCacheDtype"): "--kv-cache-dtype",
}
# What flags do not say: it decides neither memory nor, in the price table's region, the price.
_BARE: dict[str, Any] = {
    "name": "planned",
    "model": "kimi-k2.5",
    "platform": {
        "region": "us-east-1",
        "availabilityZone": "us-east-1a",
        "publicAccessCidrs": ["203.0.113.0/24"],
    },
    "gpuNodes": {"instanceType": "p5.48xlarge", "count": 2},
    "weights": {"revision": "0" * 40},
    "serving": {},
}


def facts_of(stack_file: FilePath | None, flags: tuple[object, ...]) -> Facts:
    """Settings of the stack file, or bare ones, with the flags set on top; fit itself is not checked."""
    raw = copy.deepcopy(dict(_BARE if stack_file is None else read(stack_file)[STACK_KEY]))
    for (*sections, key), value in zip(_FLAGS, flags, strict=False):
        if value is not None:
            target = raw
            for section in sections:
                target = target.setdefault(section, {})
            target[key] = value
    try:
        return checked(raw, VALUE_RULES, api_key_given=True, hub_token_given=True)
    except SettingsError as error:
        raise of_settings(error, None if stack_file else _FLAGS) from None


def read(stack_file: FilePath) -> Mapping[str, Any]:
    """The `config` of a stack file."""
    try:
        content = yaml.safe_load(stack_file.read_text(encoding="utf-8"))
    except OSError as error:
        refuse(str(stack_file), f"a file that can be read: {error.strerror}{_stack_files_here()}")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        refuse(str(stack_file), f"YAML: {error}{_stack_files_here()}")
    config = content.get("config") if isinstance(content, dict) else None
    if not isinstance(config, dict) or not isinstance(config.get(STACK_KEY), dict):
        allowed = f"a file with a mapping `{STACK_KEY}` below `config`; docs/configuration.md shows one"
        refuse(str(stack_file), f"{allowed}{_stack_files_here()}")
    return config


def _stack_files_here() -> str:
    found = sorted(file.name for file in FilePath().glob("Pulumi.*.yaml"))
    return f"\nhere: {', '.join(found)}" if found else ""


def show(data: Mapping[str, object], tables: tuple[RenderableType, ...], *, as_json: bool) -> None:
    """Print the data as JSON, or the tables for people."""
    if as_json:
        typer.echo(json.dumps(data, indent=2))
    else:
        Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False).print(*tables, sep="\n")


def refuse(where: str, allowed: str, *typed: str, given: object = None) -> NoReturn:
    """End the command: say what is refused, what is allowed and what to type."""
    raise RefusedError((Refusal(where=where, given=given, allowed=allowed, type_=typed),))


def positive(flag: str, value: float | None, what: str) -> None:
    """Refuse a number that is not greater than 0; None is a flag that was left out."""
    if value is not None and not SMALLEST <= value <= LARGEST:
        refuse(flag, f"{SMALLEST:g} to {LARGEST:g} ({what})", f"leave out {flag}", given=f"{value:g}")


def model_of(flag: str, name: str) -> Model:
    """The catalogue's entry of a model that a flag names."""
    found = find(name)
    if found is None:
        raise RefusedError((unknown_name(flag, name, tuple(CATALOGUE)),))
    return found


class Commands(TyperGroup):
    """The commands of `python -m planner`; a refused one ends as `ended` says."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Run one command."""
        typed = sys.argv[1:] if args is None else list(args)
        main = super().main
        words = (word for word in typed[:1] if not word.startswith("-"))
        ended(
            lambda alone: main(typed, prog_name, complete_var, standalone_mode and alone, windows_expand_args, **extra),
            typed,
            " ".join(("python -m planner", *words)),
        )


def ended(run: Callable[[bool], int | None], typed: Sequence[str], command: str) -> NoReturn:
    """Exit as `run` says; a refused command with status 2, told on stderr, or with `--json` as an object on stdout.

    `run` is told whether it may tell of its own usage errors; `command`: how it is typed.
    """
    as_json = "--json" in typed
    try:
        status = run(not as_json)
    except RefusedError as error:
        refused = error
    except UsageError as error:
        if not as_json:
            raise
        refused = RefusedError((Refusal(where=command, allowed=error.format_message(), type_=(f"{command} --help",)),))
    else:
        sys.exit(status)
    typer.echo(json.dumps(refused.data(), indent=2) if as_json else str(refused), err=not as_json)
    sys.exit(REFUSED)
