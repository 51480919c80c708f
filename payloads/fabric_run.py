"""Starts this node's ranks with `torch.distributed.run`, watches them, and gathers what they left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from payloads import fabric_ranks, nccl_log, reporting
from payloads.fabric_settings import Settings
from payloads.nccl_log import NcclLog

POLL_SECONDS = 0.5
EVIDENCE_LINES = 1000
END_SECONDS = 20.0
"""Torch's launcher passes SIGTERM on to its ranks; after so long all of them are killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResult:
    """What one node's ranks left. `problem` is empty when all ended by themselves and well.

    `records` are the ranks' own files: rank, step, and where they got so far code, reason, seconds.
    `logged` counts the ranks that NCCL wrote a log for.
    """

    rank: int
    name: str
    problem: str
    records: list[dict[str, Any]]
    log: NcclLog
    logged: int

    def as_message(self) -> dict[str, Any]:
        """JSON's types only."""
        log = {key: sorted(value) if isinstance(value, frozenset) else value for key, value in asdict(self.log).items()}
        return asdict(self) | {"log": log}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> NodeResult:
        """The reverse of `as_message`."""
        log = dict(message["log"])
        for name in ("networks", "channels", "local"):
            log[name] = frozenset(log[name])
        for name in ("warnings", "missing"):
            log[name] = tuple(log[name])
        return cls(**message | {"log": NcclLog(**log)})


def measure(settings: Settings, stop: Callable[[float], str | None]) -> NodeResult:
    """Run the ranks to their end. `stop(seconds)` waits so long at most and returns why to stop early, or None."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = subprocess.Popen(
            launch_command(settings), env=rank_environment(folder), start_new_session=True, stdin=subprocess.DEVNULL
        )
        try:
            problem = _watch(process, settings.test_timeout, stop)
        finally:
            _end(process)
        return collect(settings, folder, problem)


def launch_command(settings: Settings) -> list[str]:
    """`torchrun` by its module name: the script is not on every image's PATH."""
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nnodes", str(settings.nodes), "--node-rank", str(settings.node_rank)),
        *("--nproc-per-node", str(settings.gpus), "--max-restarts", "0", "--monitor-interval", "0.2"),
        *("--master-addr", settings.leader, "--master-port", str(settings.port + 1)),
        *("-m", fabric_ranks.__name__),
    ]


def rank_environment(folder: Path) -> dict[str, str]:
    """The pod's own environment, which carries the fabric's settings, with NCCL told to write down what it does."""
    # One thread a rank: torch's launcher would set it too, with a warning.
    return os.environ | {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or "1",
        "FABRIC_RESULTS": str(folder),
    }


def _watch(process: subprocess.Popen[bytes], seconds: float, stop: Callable[[float], str | None]) -> str:
    until = time.monotonic() + seconds
    while process.poll() is None:
        if reason := stop(POLL_SECONDS):
            return reason
        if time.monotonic() > until:
            return f"the ranks did not finish within {seconds:g} s"
    return f"the ranks ended with status {process.returncode}" if process.returncode else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """The launcher ends its ranks; what it leaves behind, when it was killed itself, is in its process group."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.terminate()
        process.wait(END_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def collect(settings: Settings, folder: Path, problem: str) -> NodeResult:
    """Read what the ranks and NCCL wrote; one rank's NCCL log goes into the pod's log as evidence."""
    records = [json.loads(path.read_text()) for path in folder.glob("rank-*.json")]
    logs = {path.stem: path.read_text(errors="replace").splitlines() for path in sorted(folder.glob("nccl-*.log"))}
    for name, lines in list(logs.items())[:1]:
        reporting.log(f"NCCL's log of one rank ({name}):\n" + "\n".join(lines[:EVIDENCE_LINES]))
    return NodeResult(
        rank=settings.node_rank,
        name=settings.node_name,
        problem=problem,
        records=sorted(records, key=lambda record: int(record["rank"])),
        log=nccl_log.parse(line for lines in logs.values() for line in lines),
        logged=len(logs),
    )
