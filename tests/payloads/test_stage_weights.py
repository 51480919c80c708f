"""Staging from end to end, with the faults that a Hub, a network, a disk and a cluster have in store.

Xet itself is not exercised: the fake Hub serves plain HTTP only (see `hub_server`).
"""

from __future__ import annotations

import itertools
import json
import signal
import time
from pathlib import Path

import pytest

from payloads.cache_directory import remove_partial_files
from payloads.staging_settings import ExitCode
from tests.payloads.conftest import StagingPod, wait_for
from tests.payloads.hub_server import REPOSITORY, REVISION, HubServer


def assert_complete(pod: StagingPod, hub: HubServer) -> None:
    """The model is there byte for byte, with its marker and nothing beside it."""
    stored = {str(path.relative_to(pod.model)): path.read_bytes() for path in pod.model.rglob("*") if path.is_file()}
    marker = json.loads(stored.pop(".complete"))
    assert stored == hub.files
    assert marker["repository"] == REPOSITORY
    assert marker["revision"] == REVISION
    assert marker["files"] == len(hub.files)
    assert marker["bytes"] == sum(map(len, hub.files.values()))
    assert len(marker["manifest_sha256"]) == 64
    assert [path.name for path in pod.cache.iterdir()] == [pod.model.name]


def test_complete_run_then_nothing_to_do(pod: StagingPod, hub: HubServer) -> None:
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(pod, hub)
    assert "staged 5 files, 0.0 GiB in " in output.splitlines()[-1]
    assert pod.termination_message == output.splitlines()[-1]

    hub.requests.clear()
    started = time.monotonic()
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert "already staged: 5 files" in output
    assert hub.requests == []
    assert time.monotonic() - started < 1


def test_marker_without_its_files_is_not_believed(pod: StagingPod, hub: HubServer) -> None:
    assert pod.run()[0] == ExitCode.COMPLETE
    (pod.model / "model-2.safetensors").unlink()
    hub.requests.clear()
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(pod, hub)
    assert not hub.downloads("model-1"), "a large file that is there is adopted by its checksum"
    assert hub.downloads("model-2")


def test_connection_that_breaks_in_the_middle_of_a_file(pod: StagingPod, hub: HubServer) -> None:
    hub.faults["model-1.safetensors"] = iter(["truncate"])
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(pod, hub)


def test_body_of_the_wrong_length_is_fetched_again(pod: StagingPod, hub: HubServer) -> None:
    hub.faults["model-1.safetensors"] = iter(["short"])
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert "restart 1 of 3" in output
    assert_complete(pod, hub)


@pytest.mark.slow
def test_what_may_pass_is_tried_again_in_the_same_pod(pod: StagingPod, hub: HubServer) -> None:
    restarts = 3
    hub.faults["model-1.safetensors"] = itertools.repeat("short", restarts + 1)
    pod.environment["STAGE_ATTEMPTS"] = "3"
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert "attempt 2 of 3 in 0.01 s" in output
    assert "attempt 3" not in output
    assert_complete(pod, hub)


def test_file_that_arrives_wrong_once(pod: StagingPod, hub: HubServer) -> None:
    hub.faults["model-3.safetensors"] = iter(["corrupt"])
    hub.faults["config.json"] = iter(["corrupt"])
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert "model-3.safetensors: sha256 " in output
    assert "config.json: git-sha1 " in output
    assert_complete(pod, hub)
    assert len(hub.downloads("model-1")) == 1


def test_file_that_always_arrives_wrong(pod: StagingPod, hub: HubServer) -> None:
    hub.faults["model-3.safetensors"] = itertools.repeat("corrupt")
    code, output = pod.run()
    assert code == ExitCode.CHECKSUM_MISMATCH, output
    assert not pod.model.exists()
    assert "model-3.safetensors" in pod.termination_message


@pytest.mark.slow
def test_killed_in_the_middle_then_run_again(pod: StagingPod, hub: HubServer) -> None:
    hub.faults["model-2.safetensors"] = iter(["stall"])
    process = pod.start()
    temporary = pod.cache / f".staging-{REVISION}"
    finished = [temporary / "model-1.safetensors", temporary / "model-3.safetensors"]
    wait_for(lambda: hub.stalled.is_set() and all(map(Path.exists, finished)))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=5)  # ends when the download process, which holds the pipe too, is gone
    assert not pod.model.exists()
    assert list(temporary.rglob("*.incomplete")), "the client leaves its half-written file behind"
    remove_partial_files(temporary)
    assert not list(temporary.rglob("*.incomplete"))

    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(pod, hub)
    assert len(hub.downloads("model-1")) == 1, "a second run keeps the files that are finished"


def test_pod_is_deleted(pod: StagingPod, hub: HubServer) -> None:
    hub.faults["model-2.safetensors"] = iter(["stall"])
    process = pod.start()
    wait_for(hub.stalled.is_set)
    process.terminate()
    process.communicate(timeout=5)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "interrupted" in pod.termination_message
    assert not pod.model.exists()


@pytest.mark.slow
def test_stalled_download_is_restarted(pod: StagingPod, hub: HubServer) -> None:
    hub.faults["model-2.safetensors"] = iter(["stall"])
    pod.environment["STAGE_STALL_SECONDS"] = "6"
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert "the download stalled: no byte for 6 s" in output
    assert_complete(pod, hub)
    assert len(hub.downloads("model-1")) == 1, "a restart keeps the files that are finished"


@pytest.mark.slow
def test_stalled_download_is_given_up(pod: StagingPod, hub: HubServer) -> None:
    hub.faults["model-2.safetensors"] = itertools.repeat("stall")
    pod.environment["STAGE_STALL_SECONDS"] = "0.7"
    code, output = pod.run()
    assert code == ExitCode.STALLED, output
    assert "restart 3 of 3" in output
    assert "stalled" in pod.termination_message
    assert not pod.model.exists()


@pytest.mark.slow
def test_after_a_stall_the_client_goes_on_without_xet(pod: StagingPod, hub: HubServer) -> None:
    hub.hangs_in_xet = True
    pod.environment["STAGE_STALL_SECONDS"] = "6"
    code, output = pod.run()
    assert hub.stalled.is_set(), "the first try did not use Xet"
    assert code == ExitCode.COMPLETE, output
    assert "restart 2" not in output
    assert_complete(pod, hub)
