"""Runs the staging payload as its pod does: a real process, the files of `payloads/` side by side and
nothing else of the project in reach, the real Hub client, a loopback server instead of the Hub.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from payloads.staging_settings import COMPLETE_MARKER, model_directory
from tests.payloads.hub_server import REPOSITORY, REVISION, HubServer

PAYLOADS = Path(__file__).parents[2] / "payloads"
RUN_TIMEOUT_SECONDS = 60


@dataclass(slots=True, kw_only=True)
class StagingPod:
    """The payload with its mounts and environment; `run` starts it and waits."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def cache(self) -> Path:
        """The mount of the weight cache."""
        return self.root / "weights"

    @property
    def model(self) -> Path:
        """Where the complete model has to appear."""
        return self.cache / model_directory(REPOSITORY, REVISION)

    @property
    def marker(self) -> Path:
        """The marker that readers wait for."""
        return self.model / COMPLETE_MARKER

    @property
    def termination_message(self) -> str:
        """What the kubelet would show of the ended container."""
        return (self.root / "termination-log").read_text()

    def start(self) -> subprocess.Popen[str]:
        """Start the payload."""
        process = subprocess.Popen(
            [sys.executable, "-m", "payloads.stage_weights"],
            cwd=self.root / "opt",
            env={"PATH": os.environ["PATH"], **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process

    def run(self) -> tuple[int, str]:
        """Run the payload to its end; return exit code and everything that it printed."""
        process = self.start()
        output, _ = process.communicate(timeout=RUN_TIMEOUT_SECONDS)
        return process.returncode, output


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A Hub that holds a model of three weight files and two small ones, 300 kB in all."""
    content = random.Random(7)  # noqa: S311  reproducible bytes, no secret
    files = {f"model-{number}.safetensors": content.randbytes(100_000) for number in (1, 2, 3)}
    files |= {"config.json": b'{"layers": 2}\n', "code/modeling.py": b"# empty\n"}
    with HubServer(files) as server:
        yield server


@pytest.fixture
def pod(tmp_path: Path, hub: HubServer) -> Iterator[StagingPod]:
    """A pod with an empty cache, configured for the fake Hub's model."""
    (tmp_path / "weights").mkdir()
    shutil.copytree(PAYLOADS, tmp_path / "opt" / "payloads", ignore=shutil.ignore_patterns("__pycache__"))
    pod = StagingPod(root=tmp_path)
    pod.environment = {
        "STAGE_REPOSITORY": REPOSITORY,
        "STAGE_REVISION": REVISION,
        "STAGE_DIRECTORY": str(pod.cache),
        "STAGE_ATTEMPTS": "1",
        "STAGE_RETRY_SECONDS": "0.01",
        "STAGE_LOCK_SECONDS": "1",
        "STAGE_TERMINATION_LOG": str(tmp_path / "termination-log"),
        "HF_ENDPOINT": hub.url,
    }
    yield pod
    for process in pod.processes:
        process.kill()
        process.communicate()
