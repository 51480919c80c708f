"""Starting programs that outlive the caller, and ending exactly those.

Linux only: identities come from /proc.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from simulation.control_plane.errors import ControlPlaneError

POLL_SECONDS = 0.05
LOG_LINES_SHOWN = 8

# A child that ended stays a zombie until its parent reaps it, and this interpreter may be the parent.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One process of this machine and no other: the pid alone may have been given to somebody else since."""

    pid: int
    started: str
    """Boot id of the kernel and start time in its clock ticks."""

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        if child := _children.get(self.pid):
            child.poll()
        return _start_of(self.pid) == self.started


def launch(arguments: list[str], *, log: Path, environment: Mapping[str, str]) -> Identity:
    """Starts a program in a session of its own, its output appended to `log`.

    Raises ControlPlaneError if it cannot.
    """
    try:
        with log.open("ab") as output:
            child = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
                env=dict(environment),
                start_new_session=True,
            )
    except OSError as error:
        raise ControlPlaneError(f"{arguments[0]} cannot be started: {error}") from error
    _children[child.pid] = child
    return Identity(pid=child.pid, started=_start_of(child.pid))


def kill(identity: Identity) -> None:
    """Ends the process at once and waits until it is gone.

    Not gently: what the control plane keeps is thrown away with it, and a graceful API server waits for its
    clients.
    """
    if identity.is_alive:
        os.kill(identity.pid, signal.SIGKILL)
    wait_until(f"process {identity.pid} ends", lambda: not identity.is_alive, seconds=10)


def wait_until(what: str, check: Callable[[], bool], *, seconds: float, log: Path | None = None) -> None:
    """Returns as soon as `check` holds. Raises ControlPlaneError after `seconds`, with the end of `log`."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise ControlPlaneError(f"Waited {seconds:g} s in vain: {what}.{tail(log)}")
        time.sleep(POLL_SECONDS)


def _start_of(pid: int) -> str:
    try:
        # The command name, in parentheses, may itself hold blanks and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "gone"
    state, start_ticks = fields[0], fields[19]
    if state in "ZX":
        return "gone"
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{start_ticks}"


def tail(log: Path | None) -> str:
    """The last lines of a log as the end of an error message; empty if there is none."""
    if log is None or not log.is_file():
        return ""
    lines = log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return f" The end of {log}:\n" + "\n".join(lines)
