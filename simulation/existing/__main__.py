"""`python -m simulation.existing`: start the existing cluster in another shape than the usual one; end it."""

from __future__ import annotations

import argparse
import sys

from simulation import existing
from simulation.control_plane import ControlPlaneError
from simulation.existing import Shape
from simulation.existing.nodes import Taint

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns its exit status."""
    options = _parser().parse_args(arguments)
    existing.enter_home()
    try:
        if options.command == "start":
            existing.start(_shape(options))
            print("The existing cluster runs; `python -m simulation run --existing -- pulumi preview` uses it.")
        else:
            print(existing.report())
            existing.stop()
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _shape(options: argparse.Namespace) -> Shape:
    usual = Shape()
    return Shape(
        gpu_labels=dict(options.gpu_label) if options.gpu_label else usual.gpu_labels,
        gpu_taints=tuple(options.gpu_taint) if options.gpu_taint else usual.gpu_taints,
        plugins=options.plugins,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation.existing", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="start it; `run --existing` does so by itself for the usual shape")
    start.add_argument("--gpu-label", type=_label, action="append", metavar="KEY=VALUE", help="may be given again")
    start.add_argument("--gpu-taint", type=_taint, action="append", metavar="KEY=VALUE:EFFECT", help="likewise")
    start.add_argument(
        "--plugins",
        type=lambda text: tuple(text.split(",")),
        default=Shape().plugins,
        metavar="NAMES",
        help="device plugins that are there already: nvidia,rdma; by default none, so that the stack installs its own",
    )
    commands.add_parser("stop", help="say what the stack has left in it, end it, forget it")
    return parser


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is no label: KEY=VALUE")
    return key, value


def _taint(text: str) -> Taint:
    label, _, effect = text.rpartition(":")
    if effect not in EFFECTS:
        raise argparse.ArgumentTypeError(f"{text!r} is no taint: KEY=VALUE:EFFECT, the effect {', '.join(EFFECTS)}")
    return *_label(label), effect


if __name__ == "__main__":
    sys.exit(main())
