"""A file system that fills up while the model arrives: a real one, made small while a download hangs.

Mounting takes root; the mount is taken away at the end of each test.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from payloads.staging_settings import ExitCode
from tests.payloads.conftest import StagingPod
from tests.payloads.faulty_proxy import FaultyProxy
from tests.payloads.hub_server import HubServer
from tests.payloads.s3_server import S3Server
from tests.payloads.test_stage_weights import assert_complete

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")]
ROOMY, TIGHT = "2g", "160k"
"""Before: the model and the margin fit. After: one and a half files of 100 kB."""


def mount(cache: Path, options: str) -> None:
    """Mount a tmpfs, or mount it again with another size."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(cache)], check=True)


@pytest.fixture
def small_disk(pod: StagingPod) -> Iterator[None]:
    """The cache is a file system of its own."""
    mount(pod.cache, f"size={ROOMY}")
    yield
    for process in pod.processes:
        process.kill()
        process.communicate()
    subprocess.run(["umount", "--lazy", str(pod.cache)], check=True)


@pytest.mark.usefixtures("small_disk")
def test_disk_that_fills_up_under_the_hub_client(pod: StagingPod, hub: HubServer) -> None:
    hub.faults = {f"model-{number}.safetensors": iter(["hold"]) for number in (1, 2, 3)}
    fill_the_disk(pod, hub)
    assert_not_counted(pod, hub)
    assert_heals(pod, hub)


@pytest.mark.usefixtures("small_disk")
def test_disk_that_fills_up_under_boto3(from_s3: StagingPod, hub: HubServer, s3: S3Server) -> None:
    with FaultyProxy(s3.url) as proxy:
        from_s3.environment["AWS_ENDPOINT_URL_S3"] = proxy.url
        # Each worker takes one file after the other, and how many workers there are follows from the machine.
        proxy.faults["GET", ".safetensors"] = iter(["hold"])
        fill_the_disk(from_s3, proxy)
        assert_not_counted(from_s3, hub)
        assert_heals(from_s3, hub)


def fill_the_disk(pod: StagingPod, server: HubServer | FaultyProxy) -> None:
    """Take the space away while a download is held."""
    process = pod.start()
    assert server.held.acquire(timeout=30)
    mount(pod.cache, f"remount,size={TIGHT}")
    server.resume.set()
    code, output = pod.finish(process)
    assert code == ExitCode.NO_SPACE, output


def assert_not_counted(pod: StagingPod, hub: HubServer) -> None:
    """The run says what it needs, and whatever has a final name is whole."""
    assert "became full: " in pod.termination_message
    assert "GiB needed in all" in pod.termination_message
    assert "GiB free" in pod.termination_message
    assert not pod.model.exists()
    named = [path for path in pod.scratch.rglob("*") if path.is_file() and ".cache" not in path.parts]
    assert all(path.read_bytes() == hub.files[str(path.relative_to(pod.scratch))] for path in named)


def assert_heals(pod: StagingPod, hub: HubServer) -> None:
    """With more space the next run ends well."""
    mount(pod.cache, f"remount,size={ROOMY}")
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(pod, hub)
