"""What the planner's commands share: reading a stack file and flags, printing, refusing. It owns no command."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, NoReturn

import typer
import yaml
from rich.console import Console, RenderableType

from planner.catalogue import CATALOGUE
from planner.checks import closest
from planner.models import Model
from planner.plan import VALUE_RULES
from planner.plan import check as checked
from planner.problems import Mend, Problem, SettingsError, config_command, render
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
        refuse(str(error) if stack_file else _in_flags(error.problems))


def _in_flags(problems: tuple[Problem, ...]) -> str:
    """The problems, with flags to type instead of `pulumi config` commands."""

    def command(mend: Mend) -> str:
        flag = _FLAGS.get(tuple(str(step) for step in mend.path))
        if flag is None:
            return config_command(mend)
        return f"leave out {flag}" if mend.value is None else f"{flag} {mend.value}"

    return render(problems, command)


def read(stack_file: FilePath) -> Mapping[str, Any]:
    """The `config` of a stack file."""
    try:
        content = yaml.safe_load(stack_file.read_text(encoding="utf-8"))
    except OSError as error:
        refuse(f"{stack_file}: {error.strerror}")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        refuse(f"{stack_file} is no YAML: {error}")
    config = content.get("config") if isinstance(content, dict) else None
    if not isinstance(config, dict) or not isinstance(config.get(STACK_KEY), dict):
        refuse(f"{stack_file}: no mapping `{STACK_KEY}` below `config`; docs/configuration.md shows one")
    return config


def show(data: Mapping[str, object], tables: tuple[RenderableType, ...], *, as_json: bool) -> None:
    """Print the data as JSON, or the tables for people."""
    if as_json:
        typer.echo(json.dumps(data, indent=2))
    else:
        Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False).print(*tables, sep="\n")


def refuse(message: str) -> NoReturn:
    """End the command with exit status 2 and a message."""
    typer.echo(message, err=True)
    raise typer.Exit(REFUSED)


def positive(flag: str, value: float | None, what: str) -> None:
    """Refuse a number that is not greater than 0; None is a flag that was left out."""
    if value is not None and not SMALLEST <= value <= LARGEST:
        refuse(f"{flag} {value:g}\n   allowed: {SMALLEST:g} to {LARGEST:g} ({what}), or leave {flag} out")


def model_of(flag: str, name: str) -> Model:
    """The catalogue's entry of a model that a flag names."""
    if name not in CATALOGUE:
        meant = closest(name.lower(), CATALOGUE)
        hint = f"   type:    {flag} {meant}\n" if meant else ""
        refuse(f"{flag} {name}\n{hint}   allowed: {', '.join(CATALOGUE)}")
    return CATALOGUE[name]
