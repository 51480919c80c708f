"""What the commands share with the planner's: they read a stack file, refuse in its words, and know `--json`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from planner import checks
from planner.checks import NotAllowedError
from planner.command_line import STACK_KEY, ended, read, refuse

STACK_TAG = "vllm-multinode"
"""On everything that the stack makes in AWS; its value is the deployment's name."""

REGION = r"[a-z]{2}(-[a-z]+)+-\d"
StackFile = Annotated[FilePath, typer.Argument(help="A Pulumi.<stack>.yaml.")]
DEFAULT_STACK_FILE = FilePath("Pulumi.dev.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What a command that must work with any other setting being wrong needs of a stack file.

    `retained`: the stack file wants the weights to outlive `pulumi destroy`.
    """

    file: FilePath
    name: str
    region: str
    retained: bool

    @property
    def gpu_node_group(self) -> str:
        """The node group of the GPU nodes, in the cluster that has the stack's name."""
        return f"{self.name}-gpu"


def stack_of(file: FilePath) -> Stack:
    """The stack that a file describes, refused where it cannot tell which one in AWS is meant."""
    raw = read(file)[STACK_KEY]
    platform, weights = _section(raw, "platform"), _section(raw, "weights")
    if platform.get("kind", "eks") != "eks":
        allowed = "eks: in a cluster that is there already the stack makes nothing in AWS"
        refuse(f"{file}: platform.kind", allowed, given=platform["kind"])
    name, region = str(raw.get("name")), str(platform.get("region"))
    try:
        checks.deployment_name(name)
    except NotAllowedError as error:
        refuse(f"{file}: name", error.allowed, given=raw.get("name", "nothing"))
    if not re.fullmatch(REGION, region):
        allowed = "a region of AWS, as us-east-1"
        typed = "pulumi config set --path deployment.platform.region us-east-1"
        refuse(f"{file}: platform.region", allowed, typed, given=platform.get("region", "nothing"))
    return Stack(file=file, name=name, region=region, retained=weights.get("retain") is True)


def _section(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = raw.get(key)
    return found if isinstance(found, Mapping) else {}


class Command(TyperCommand):
    """One command of `python -m operations`; a refused one ends as the planner's do."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Run it."""
        typed = sys.argv[1:] if args is None else list(args)
        main = super().main
        ended(
            lambda alone: main(typed, prog_name, complete_var, standalone_mode and alone, windows_expand_args, **extra),
            typed,
            f"python -m operations.{self.name}",
        )


def app_of(command: Callable[..., None]) -> typer.Typer:
    """The application of a module that holds one command."""
    app = typer.Typer(add_completion=False)
    app.command(command.__name__, cls=Command)(command)
    return app
