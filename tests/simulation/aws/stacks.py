"""A stack of a test's own, run by the real engine on simulated AWS without a Kubernetes cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from simulation import environment, paths
from simulation.aws.safety import mark_backend


@dataclass(frozen=True)
class Answer:
    """What a `pulumi` command has printed and returned."""

    text: str
    status: int


@dataclass(frozen=True)
class Stack:
    """Runs `pulumi` in a copy of the program, in the prepared environment."""

    folder: Path
    variables: dict[str, str]

    def pulumi(self, *arguments: str) -> Answer:
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Answer(text=done.stdout + done.stderr, status=done.returncode)

    def ok(self, *arguments: str) -> str:
        answer = self.pulumi(*arguments)
        assert answer.status == 0, answer.text
        return answer.text

    def up(self, *arguments: str) -> str:
        return self.ok("up", "--yes", "--skip-preview", *arguments)

    def destroy(self) -> str:
        return self.ok("destroy", "--yes", "--skip-preview")


def make(home: Path, program: str) -> Stack:
    """The stack `dev` of the program in the folder of that name, in the simulation home `home`."""
    shutil.rmtree(paths.backend())
    mark_backend(paths.backend())
    folder = home / program
    shutil.copytree(Path(__file__).parent / program, folder)
    variables = environment.variables(os.environ) | {"PULUMI_STACK": "dev", "SIMULATE_KUBERNETES": "0"}
    made = Stack(folder=folder, variables=variables)
    made.ok("stack", "init", "dev")
    return made
