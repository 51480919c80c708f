"""`python -m simulation`: sets the stand-in up and runs commands in its environment.

It owns the words of the command line and what they print; `environment` does the work.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from simulation import control_plane, environment, existing, paths, retained
from simulation.aws import objects
from simulation.aws.errors import SimulationError
from simulation.control_plane import ControlPlaneError
from simulation.stackfile import EXISTING, SIMULATED, StackFile
from simulation.tools.errors import SetupError


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit status; `run` and `shell` replace this process instead."""
    chosen = _parser().parse_args(arguments)
    try:
        return _dispatch(chosen)
    except (SetupError, SimulationError, ControlPlaneError) as error:
        _say(f"error: {error}")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation", description="The laptop-size stand-in.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    helps = {
        "tools": "build the programs that are missing, nothing else",
        "prepare": "make all that is missing: programs, backend, stack, stack file",
        "run": "prepare, then run a command in the environment: run -- pulumi preview",
        "env": "print the environment for a shell: source <(python -m simulation env)",
        "shell": "prepare, then open a shell in the environment",
        "retained": "list what the simulated account holds and no stack's state knows",
        "objects": "say how many objects a simulated bucket holds",
        "stop": "end every control plane; name what is kept in the account or left in the existing cluster",
    }
    made = {name: commands.add_parser(name, help=text, description=text) for name, text in helps.items()}
    for name in ("tools", "prepare", "run", "shell"):
        made[name].add_argument("--cluster", action="store_true", help="also the local control plane's programs")
    for name in ("prepare", "run", "shell", "env"):
        made[name].add_argument("--existing", action="store_true", help="on a cluster that exists already, without AWS")
    made["run"].add_argument("words", nargs="+", metavar="CMD", help="the command and its arguments, after --")
    made["objects"].add_argument("bucket")
    made["objects"].add_argument("count", type=int)
    return parser


def _dispatch(chosen: argparse.Namespace) -> int:
    if chosen.command in _ALONE:
        _ALONE[chosen.command](chosen)
        return 0
    stack = SIMULATED
    if chosen.existing:
        existing.enter_home()
        stack = EXISTING
    if chosen.command == "env":
        _print_exports(stack)
        return 0
    environment.prepare(cluster=chosen.cluster, say=_say, stack=stack)
    if chosen.command == "prepare":
        _say(f"Ready: stack {stack.stack}, state in {paths.home()}.")
        return 0
    if chosen.command == "run":
        return _become(chosen.words, stack)
    _say("Plain `pulumi`, `kubectl` and `aws` now see the simulation only. Leave with `exit`.")
    return _become(_shell(), stack)


def _shell() -> list[str]:
    """The user's shell; bash shows in its prompt that what is typed there reaches the simulation only."""
    shell = os.environ.get("SHELL") or "bash"
    if Path(shell).name != "bash":
        return [shell]
    rc = paths.home() / "bashrc"
    rc.write_text('[ -f ~/.bashrc ] && . ~/.bashrc\nPS1="(simulated) $PS1"\n')
    return [shell, "--rcfile", str(rc), "-i"]


def _become(words: list[str], stack: StackFile) -> int:
    try:
        os.execvpe(words[0], words, environment.variables(stack=stack))  # noqa: S606
    except FileNotFoundError:
        raise SetupError(f"there is no program {words[0]!r} on the prepared PATH.") from None


def _print_exports(stack: StackFile) -> None:
    """Only what differs from the present environment, so that sourcing it changes nothing else."""
    prepared = environment.variables(stack=stack)
    for name in (*environment.WITHHELD, *(name for name in os.environ if name.startswith("AWS_"))):
        if name not in prepared:
            print(f"unset {name}")
    for name, value in prepared.items():
        if os.environ.get(name) != value:
            print(f"export {name}={shlex.quote(value)}")


def _print_retained() -> None:
    """Silent if there is nothing, so that it can end every `destroy`."""
    kept = retained.listed()
    for one in kept:
        print(one)
    if kept:
        print("The next `up` can import it by the id in parentheses; `make clean` forgets it.")


def _stop() -> None:
    """Ends both control planes; what was kept, or left behind, is named one last time."""
    _print_retained()
    control_plane.stop()
    existing.enter_home()
    if paths.control_plane().exists():
        print(existing.report())
        existing.stop()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


_ALONE: dict[str, Callable[[argparse.Namespace], None]] = {
    "tools": lambda chosen: environment.build_tools(cluster=chosen.cluster, say=_say),
    "retained": lambda _: _print_retained(),
    "objects": lambda chosen: objects.fill(chosen.bucket, chosen.count),
    "stop": lambda _: _stop(),
}
"""Commands that need no prepared stack."""
