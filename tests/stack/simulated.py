"""A simulated stack of a test's own: the real program, engine and Kubernetes, in a folder and home of its own.

It proves what the engine, the Kubernetes provider, the API server, the scheduler and the LeaderWorkerSet controller do
with the program. It does not prove that AWS accepts the requests, nor that any container runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulation import environment, paths
from simulation.stackfile import SIMULATED, StackFile

LINKED = ("__main__.py", "components", "payloads", "planner", "simulation")
COPIED = ("Pulumi.yaml", "Pulumi.dev.yaml", "Pulumi.infiniband.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that the engine did: `update`, `create`, `delete`, `replace`, `same` ... and to what."""

    operation: str
    type: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A `pulumi` command that ended: its output and exit status."""

    status: int
    text: str


@dataclass(slots=True)
class SimulatedStack:
    """Runs `pulumi` on the program. `faults` is the next commands' SIMULATE_FAULTS."""

    folder: Path
    faults: str = ""
    variables: dict[str, str] = field(default_factory=dict)

    def pulumi(self, *arguments: str) -> Run:
        done = subprocess.run(
            ["pulumi", "--non-interactive", *arguments],
            cwd=self.folder,
            env={**self.variables, "SIMULATE_FAULTS": self.faults},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        return Run(status=done.returncode, text=done.stdout + done.stderr)

    def ok(self, *arguments: str) -> str:
        run = self.pulumi(*arguments)
        assert run.status == 0, run.text
        return run.text

    def up(self) -> str:
        return self.ok("up", "--yes", "--skip-preview")

    def destroy(self) -> Run:
        return self.pulumi("destroy", "--yes", "--skip-preview")

    def set(self, path: str, value: object) -> None:
        """`pulumi config set --path deployment.<path>`."""
        self.ok("config", "set", "--path", "--", f"deployment.{path}", str(value))

    def change(self, path: str, **values: object) -> None:
        """Sets all of these below `deployment.<path>` and removes those that are None."""
        gone = [key for key, value in values.items() if value is None]
        kept = [f"--plaintext=deployment.{path}.{key}={value}" for key, value in values.items() if key not in gone]
        if kept:
            self.ok("config", "set-all", "--path", *kept)
        for key in gone:
            self.ok("config", "rm", "--path", f"deployment.{path}.{key}")

    def up_events(self) -> list[str]:
        """Runs `up` and returns the engine's events, one JSON object a line."""
        run = self.pulumi("up", "--yes", "--skip-preview", "--json")
        lines = run.text.splitlines()
        assert run.status == 0, "\n".join(line for line in lines if '"severity":"error"' in line)
        return lines

    def up_steps(self) -> list[Step]:
        """Runs `up` and returns what the engine did, in order, without what stayed the same or was only read."""
        return [step for step in _steps(self.up_events()) if step.operation not in ("same", "read")]

    def output(self, name: str) -> Any:
        """One of the stack's outputs."""
        return json.loads(self.ok("stack", "output", name, "--json"))

    def state(self) -> list[dict[str, Any]]:
        """The resources in the exported state."""
        deployment = json.loads(self.ok("stack", "export"))["deployment"]
        return list(deployment.get("resources") or [])

    def get(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        """Objects in the cluster, by `kubectl get`; names an API error in full."""
        done = subprocess.run(
            ["kubectl", "get", kind, *arguments, "--output=json"],
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        return list(answer["items"]) if "items" in answer else [answer]

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["kubectl", *arguments],
            env=self.variables,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def make(folder: Path, *, cluster: bool, file: StackFile = SIMULATED) -> SimulatedStack:
    """A fresh stack in `folder`; SIMULATION_HOME must point to a home of its own."""
    folder.mkdir()
    for name in LINKED:
        (folder / name).symlink_to(paths.ROOT / name)
    for name in COPIED:
        shutil.copy(paths.ROOT / name, folder / name)
    environment.prepare(cluster=cluster, say=print, project=folder, stack=file)
    return SimulatedStack(folder=folder, variables=environment.variables(os.environ, file))


def _steps(lines: Iterable[str]) -> Iterator[Step]:
    for line in lines:
        event = json.loads(line) if line.startswith("{") else {}
        metadata = event.get("resourcePreEvent", {}).get("metadata")
        if metadata:
            yield _step(metadata["op"], metadata["urn"])


def _step(operation: str, urn: str) -> Step:
    _, _, kind, name = urn.split("::", 3)
    return Step(operation=operation, type=kind.rpartition("$")[2], name=name)
