"""Runs the staging payload as its pod does: a real process, the files of `payloads/` side by side and
nothing else of the project in reach, the real Hub client, a loopback server instead of the Hub.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from payloads.staging_settings import COMPLETE_MARKER, model_directory
from tests.payloads.hub_server import REPOSITORY, REVISION, HubServer
from tests.payloads.s3_server import BUCKET, S3Server, s3_server

PAYLOADS = Path(__file__).parents[2] / "payloads"
RUN_TIMEOUT_SECONDS = 60
LOCATION = f"s3://{BUCKET}/models"
PREFIX = f"models/{model_directory(REPOSITORY, REVISION)}/"
"""Where the model's objects lie."""


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

    @property
    def scratch(self) -> Path:
        """Where files are gathered."""
        return self.cache / f".staging-{REVISION}"

    def start(self) -> subprocess.Popen[str]:
        """Start the payload."""
        process = subprocess.Popen(
            [sys.executable, "-m", "payloads.stage_weights"],
            cwd=self.root / "opt",
            env={"PATH": os.environ["PATH"], **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def run(self) -> tuple[int, str]:
        """Run the payload to its end; return exit code and everything that it printed."""
        return self.finish(self.start())

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """Wait for a started payload."""
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


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until `condition()` holds; fail after thirty seconds."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in 30 s"
        time.sleep(0.02)


def processor_seconds() -> float:
    """Return what the processes that this one waited for have used: unlike the clock, it knows no busy machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server for the session."""
    with s3_server(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture
def s3(moto: S3Server) -> S3Server:
    """S3 with one empty bucket."""
    moto.reset()
    return moto


@pytest.fixture
def to_s3(pod: StagingPod, s3: S3Server) -> StagingPod:
    """The pod that stages from the Hub to the bucket."""
    pod.environment |= {**s3.environment, "STAGE_TARGET": LOCATION}
    return pod


@pytest.fixture
def from_s3(pod: StagingPod, hub: HubServer, s3: S3Server) -> StagingPod:
    """The pod that stages from the bucket, which holds the Hub's model, to a directory."""
    fill(s3, hub)
    del pod.environment["HF_ENDPOINT"]
    pod.environment |= {**s3.environment, "STAGE_SOURCE": LOCATION}
    return pod


def fill(s3: S3Server, hub: HubServer) -> None:
    """Put the Hub's model into the bucket, the marker last."""
    for path, content in hub.files.items():
        s3.client.put_object(Bucket=BUCKET, Key=PREFIX + path, Body=content)
    s3.client.put_object(Bucket=BUCKET, Key=f"{PREFIX}.complete", Body=json.dumps(s3_marker(hub)).encode())


def s3_marker(hub: HubServer) -> dict[str, Any]:
    """Return what the bucket's marker says of the Hub's model, but for `manifest_sha256`, which nothing reads."""
    objects = [
        {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for path, content in sorted(hub.files.items())
    ]
    return {
        "repository": REPOSITORY,
        "revision": REVISION,
        "files": len(objects),
        "bytes": sum(map(len, hub.files.values())),
        "objects": objects,
    }
