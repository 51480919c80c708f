"""Runs the fabric test as its pods do: one real process a node, the files of `payloads/` side by side and nothing else
of the project in reach. NOT the pods' image: no GPU, no EFA, and Gloo on the CPU in the place of NCCL where ranks run.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAYLOADS = Path(__file__).parents[2] / "payloads"
RUN_TIMEOUT_SECONDS = 200
END_SECONDS = 30


@dataclass(slots=True, kw_only=True)
class FabricPods:
    """Two nodes of two ranks on this machine's loopback; a test changes `environment` or gives more to `start`.

    `python` is the interpreter; `prefixes` stand before the command of each node (to enter a namespace).
    """

    root: Path
    python: str = sys.executable
    prefixes: tuple[list[str], list[str]] = ([], [])
    environment: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copytree(PAYLOADS, self.root / "opt/payloads", ignore=shutil.ignore_patterns("__pycache__"))
        self.environment = {
            "FABRIC_NODES": "2",
            "FABRIC_LEADER": "127.0.0.1",
            "FABRIC_PORT": str(free_port_pair()),
            "FABRIC_GPUS": "2",
            "FABRIC_KIND": "none",
            "FABRIC_BACKEND": "gloo",
            "FABRIC_BYTES": str(256 * 1024),
            "FABRIC_WARM_UP": "1",
            "FABRIC_ITERATIONS": "3",
            "FABRIC_PEER_TIMEOUT_SECONDS": "30",
            "FABRIC_TEST_TIMEOUT_SECONDS": "60",
        } | self.environment

    def start(self, rank: int, **more: str) -> subprocess.Popen[str]:
        """Start one node's pod, with `more` variables."""
        return self.start_program(rank, "-m", "payloads.fabric_test", **more)

    def start_program(self, rank: int, *program: str, **more: str) -> subprocess.Popen[str]:
        """The same with something else for Python to run."""
        environment = {
            "PATH": os.environ["PATH"],
            "FABRIC_NODE_RANK": str(rank),
            "FABRIC_NODE_NAME": f"node-{rank}",
            "FABRIC_TERMINATION_LOG": str(self.root / f"termination-{rank}"),
            "TMPDIR": str(self.root),
        }
        process = subprocess.Popen(
            [*self.prefixes[rank], self.python, *program],
            cwd=self.root / "opt",
            env=environment | self.environment | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process

    def run(self, *changes: dict[str, str]) -> list[Ended]:
        """Run a node for each of `changes` (its own variables), or both as they are, to their ends."""
        processes = [self.start(rank, **change) for rank, change in enumerate(changes or ({}, {}))]
        return [self.wait(rank, process) for rank, process in enumerate(processes)]

    def wait(self, rank: int, process: subprocess.Popen[str]) -> Ended:
        """Wait for one node's end."""
        output, _ = process.communicate(timeout=RUN_TIMEOUT_SECONDS)
        return Ended(process.returncode, output, (self.root / f"termination-{rank}").read_text())

    def end(self) -> None:
        """End what still runs; a pod that is asked to ends its ranks first."""
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.communicate(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


@dataclass(frozen=True, slots=True)
class Ended:
    """How one node's pod ended."""

    code: int
    output: str
    termination_message: str

    @property
    def line(self) -> str:
        """The sentence for a person."""
        return self.termination_message.splitlines()[0]

    @property
    def verdict(self) -> dict[str, Any]:
        """The JSON object; the log ends with the same."""
        last = self.termination_message.splitlines()[-1]
        assert self.output.rstrip().endswith(last), self.output
        verdict: dict[str, Any] = json.loads(last)
        assert verdict["code"] == self.code
        return verdict


def free_port_pair() -> int:
    """A port that is free now, as is the next one."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            port = int(first.getsockname()[1])
            try:
                socket.create_server(("127.0.0.1", port + 1)).close()
            except OSError:
                continue
            return port
