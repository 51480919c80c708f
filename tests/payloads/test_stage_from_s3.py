"""Staging from S3 to a directory, as a node's init container does: real boto3, moto's server."""

from __future__ import annotations

import itertools
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from payloads.staging_settings import ExitCode
from tests.payloads.conftest import PREFIX, StagingPod, fill, processor_seconds, s3_marker, wait_for
from tests.payloads.faulty_proxy import FaultyProxy
from tests.payloads.hub_server import HubServer
from tests.payloads.s3_server import BUCKET, S3Server
from tests.payloads.test_stage_weights import assert_complete


@pytest.fixture
def proxy(from_s3: StagingPod, s3: S3Server) -> Iterator[FaultyProxy]:
    """What stands between the pod and S3."""
    with FaultyProxy(s3.url) as proxy:
        from_s3.environment["AWS_ENDPOINT_URL_S3"] = proxy.url
        yield proxy


def downloads(proxy: FaultyProxy, path: str) -> int:
    """Count the downloads of one file that were begun."""
    return sum(method == "GET" and asked.endswith(path) for method, asked, _ in proxy.requests)


def test_directory_gets_the_model_once(from_s3: StagingPod, hub: HubServer) -> None:
    code, output = from_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(from_s3, hub)
    assert hub.requests == []

    from_s3.environment["AWS_ENDPOINT_URL_S3"] = "http://127.0.0.1:1"
    started = processor_seconds()
    code, output = from_s3.run()
    assert processor_seconds() - started < 1
    assert code == ExitCode.COMPLETE, output
    assert "already staged: 5 files" in output


@pytest.mark.slow
def test_large_file_comes_in_ranges(from_s3: StagingPod, hub: HubServer, s3: S3Server, proxy: FaultyProxy) -> None:
    hub.files["model-1.safetensors"] = bytes(range(256)) * 2**17  # 32 MiB
    fill(s3, hub)
    code, output = from_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(from_s3, hub)
    ranges = {asked for _, path, asked in proxy.requests if path.endswith("model-1.safetensors") and asked}
    assert ranges == {"bytes=0-16777215", "bytes=16777216-"}


def test_nothing_there(from_s3: StagingPod, s3: S3Server) -> None:
    s3.client.delete_object(Bucket=BUCKET, Key=f"{PREFIX}.complete")
    code, output = from_s3.run()
    assert code == ExitCode.NOT_FOUND, output
    assert "Has the staging Job ended?" in from_s3.termination_message


@pytest.mark.slow
def test_waits_for_the_marker(from_s3: StagingPod, hub: HubServer, s3: S3Server, proxy: FaultyProxy) -> None:
    s3.client.delete_object(Bucket=BUCKET, Key=f"{PREFIX}.complete")
    from_s3.environment |= {"STAGE_WAIT_SECONDS": "30", "STAGE_REPORT_SECONDS": "0.1"}
    process = from_s3.start()
    wait_for(lambda: downloads(proxy, ".complete") >= 2)
    fill(s3, hub)
    code, output = from_s3.finish(process)
    assert code == ExitCode.COMPLETE, output
    assert f"waiting for s3://{BUCKET}/{PREFIX}.complete" in output
    assert_complete(from_s3, hub)


def test_marker_without_its_objects_is_not_believed(from_s3: StagingPod, s3: S3Server) -> None:
    s3.client.delete_object(Bucket=BUCKET, Key=f"{PREFIX}model-2.safetensors")
    code, output = from_s3.run()
    assert code == ExitCode.NOT_FOUND, output


@pytest.mark.slow
def test_object_that_rotted(from_s3: StagingPod, s3: S3Server) -> None:
    s3.client.put_object(Bucket=BUCKET, Key=f"{PREFIX}model-2.safetensors", Body=b"x" * 100_000)
    code, output = from_s3.run()
    assert code == ExitCode.CHECKSUM_MISMATCH, output
    assert "model-2.safetensors: sha256 " in from_s3.termination_message
    assert not from_s3.model.exists()


def test_path_that_leaves_the_directory(from_s3: StagingPod, hub: HubServer, s3: S3Server) -> None:
    marker = s3_marker(hub)
    marker["objects"][0]["path"] = "../../escaped"
    s3.client.put_object(Bucket=BUCKET, Key=f"{PREFIX}.complete", Body=json.dumps(marker).encode())
    code, output = from_s3.run()
    assert code == ExitCode.CHECKSUM_MISMATCH, output
    assert "'../../escaped'" in from_s3.termination_message
    assert [*from_s3.root.rglob("escaped")] == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["corrupt", "truncate", "500", "503"])
def test_fault_that_passes(from_s3: StagingPod, hub: HubServer, proxy: FaultyProxy, fault: str) -> None:
    proxy.faults["GET", "model-2.safetensors"] = iter([fault])
    code, output = from_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(from_s3, hub)
    assert downloads(proxy, "model-2.safetensors") == 2
    assert downloads(proxy, "model-1.safetensors") == 1


@pytest.mark.slow
def test_refused(from_s3: StagingPod, proxy: FaultyProxy) -> None:
    proxy.faults["GET", "model-2.safetensors"] = itertools.repeat("403")
    code, output = from_s3.run()
    assert code == ExitCode.ACCESS_DENIED, output
    assert not from_s3.model.exists()


@pytest.mark.slow
def test_stalled_download_is_restarted(from_s3: StagingPod, hub: HubServer, proxy: FaultyProxy) -> None:
    proxy.faults["GET", "model-2.safetensors"] = iter(["stall"])
    from_s3.environment["STAGE_STALL_SECONDS"] = "8"
    code, output = from_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert "no byte for 8 s" in output
    assert_complete(from_s3, hub)


def test_s3_out_of_reach(from_s3: StagingPod) -> None:
    from_s3.environment["AWS_ENDPOINT_URL_S3"] = "http://127.0.0.1:1"
    code, output = from_s3.run()
    assert code == ExitCode.NETWORK, output
    assert "run again" in from_s3.termination_message


@pytest.mark.slow
def test_killed_in_the_middle_then_run_again(from_s3: StagingPod, hub: HubServer, proxy: FaultyProxy) -> None:
    proxy.faults["GET", "model-3.safetensors"] = iter(["stall"])
    process = from_s3.start()
    finished = [from_s3.scratch / "model-1.safetensors", from_s3.scratch / "model-2.safetensors"]
    wait_for(lambda: proxy.stalled.is_set() and all(map(Path.exists, finished)))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=5)
    assert not from_s3.model.exists()

    code, output = from_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(from_s3, hub)
    assert downloads(proxy, "model-1.safetensors") == 1, "a second run keeps the files that are finished"


@pytest.mark.slow
def test_node_and_hub_agree_on_where_the_model_lies(to_s3: StagingPod, hub: HubServer) -> None:
    assert to_s3.run()[0] == ExitCode.COMPLETE
    location = to_s3.environment.pop("STAGE_TARGET")
    to_s3.environment["STAGE_SOURCE"] = location
    code, output = to_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(to_s3, hub)
