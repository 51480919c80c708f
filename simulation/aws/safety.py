"""The guard of real stacks: the simulated provider serves the simulation's own backend and no other.

A `pulumi-resource-aws` on PATH wins over the downloaded one. Were it to answer for a real stack, it would
write invented ids into that stack's state and report real resources as gone. So every call asks here first.
"""

from __future__ import annotations

import os
from pathlib import Path

from simulation import paths
from simulation.aws.errors import SimulationError

MARKER = ".simulated-backend"
"""The file that says: every stack in this folder is simulated. Made by `mark_backend` alone."""


class WrongBackendError(SimulationError):
    """The engine works on a stack that is not, beyond doubt, a simulated one."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"The pulumi-resource-aws found first on PATH is the SIMULATED AWS provider, and {found}. "
            "It refuses, because it could spoil a real stack's state with invented resources. "
            "For a real stack take this project's simulation/bin off PATH; "
            "for the simulated one use `make preview`, `make up`, `make destroy`."
        )


def mark_backend(backend: Path) -> None:
    """Makes `backend` and marks it as a folder of simulated stacks. Refuses one that holds other stacks."""
    if (backend / ".pulumi").exists() and not (backend / MARKER).exists():
        raise WrongBackendError(f"{backend} already holds stacks that it has not made")
    backend.mkdir(parents=True, exist_ok=True)
    (backend / MARKER).write_text("Pulumi state of simulated stacks; nothing here exists in AWS.\n")


def require_simulated_backend() -> None:
    """Raises WrongBackendError unless PULUMI_BACKEND_URL is the simulation's own, marked folder."""
    own = paths.backend().resolve()
    url = os.environ.get("PULUMI_BACKEND_URL", "")
    if not url.startswith("file://") or Path(url.removeprefix("file://")).resolve() != own:
        raise WrongBackendError(f"PULUMI_BACKEND_URL is {url or 'not set'}, not file://{own}")
    if not (own / MARKER).is_file():
        raise WrongBackendError(f"{own} carries no marker file {MARKER}")


def require_simulated_stack(urn: str) -> None:
    """Raises WrongBackendError unless the stack of `urn` lives in the simulation's own backend."""
    require_simulated_backend()
    stack, project = _stack_and_project(urn)
    stacks = paths.backend() / ".pulumi" / "stacks" / project
    if not any((stacks / f"{stack}{ending}").is_file() for ending in (".json", ".json.gz")):
        raise WrongBackendError(f"the stack {project}/{stack} does not live in {paths.backend().resolve()}")


def _stack_and_project(urn: str) -> tuple[str, str]:
    parts = urn.split("::")
    if not urn.startswith("urn:pulumi:") or len(parts) < 4:
        raise WrongBackendError(f"{urn!r} names no stack")
    return parts[0].removeprefix("urn:pulumi:"), parts[1]
