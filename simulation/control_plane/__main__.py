"""`python -m simulation.control_plane`: tell how a Job shall end; stop the control plane by hand."""

from __future__ import annotations

import argparse
import sys

from simulation.control_plane import ControlPlaneError, jobs, leftovers, resume, stop


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns its exit status."""
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.command == "stop":
        stop()
    elif options.command == "resume":
        print("The control plane runs." if resume() else "There is no control plane to resume.")
    elif options.command == "leftovers":
        print("\n".join(leftovers()) or "Nothing would be left over.")
    elif options.reset:
        jobs.reset()
        print("Every Job completes at once again.")
    elif options.hold:
        jobs.hold(options.name)
        print(f"Jobs whose name begins with {options.name!r} run until something else is told.")
    else:
        jobs.finish(options.name, exit_code=options.exit_code, message=options.message, seconds=options.seconds)
        after = f" after {options.seconds:g} s" if options.seconds else ""
        print(f"Jobs whose name begins with {options.name!r} end with exit code {options.exit_code}{after}.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation.control_plane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    job = commands.add_parser("job", help="tell how Jobs shall end, those that run already included")
    job.add_argument("name", nargs="?", default="", help="what the Job's name begins with; without it, every Job")
    job.add_argument("--exit-code", type=int, default=0)
    job.add_argument("--message", default="", help="termination message")
    job.add_argument("--seconds", type=float, default=0.0, help="how long the pods run before they end")
    job.add_argument("--hold", action="store_true", help="keep the pods running until something else is told")
    job.add_argument("--reset", action="store_true", help="forget all that was told")
    commands.add_parser("leftovers", help="list what no add-on and no Helm release explains")
    commands.add_parser("resume", help="start again what a restart of the machine has ended")
    commands.add_parser("stop", help="end the control plane and forget its data")
    return parser


if __name__ == "__main__":
    sys.exit(main())
