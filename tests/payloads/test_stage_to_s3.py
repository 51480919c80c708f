"""Staging from the Hub to S3: real Hub client, real boto3, moto's server."""

from __future__ import annotations

import itertools
import json
import signal
import time
from collections.abc import Iterator

import pytest

from payloads.cache_directory import measure
from payloads.staging_settings import ExitCode
from tests.payloads.conftest import PREFIX, StagingPod, processor_seconds, s3_marker, wait_for
from tests.payloads.faulty_proxy import FaultyProxy
from tests.payloads.hub_server import HubServer
from tests.payloads.s3_server import BUCKET, S3Server


def assert_complete(s3: S3Server, hub: HubServer) -> None:
    """The model is in the bucket byte for byte, with its marker and nothing beside it."""
    objects = s3.objects(PREFIX)
    marker = json.loads(objects.pop(".complete"))
    assert objects == hub.files
    assert len(marker.pop("manifest_sha256")) == 64
    assert marker == s3_marker(hub)


@pytest.fixture
def proxy(to_s3: StagingPod, s3: S3Server) -> Iterator[FaultyProxy]:
    """What stands between the pod and S3."""
    with FaultyProxy(s3.url) as proxy:
        to_s3.environment["AWS_ENDPOINT_URL_S3"] = proxy.url
        yield proxy


def test_bucket_gets_the_model_once(to_s3: StagingPod, hub: HubServer, s3: S3Server) -> None:
    code, output = to_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(s3, hub)
    assert not [*to_s3.cache.iterdir()], "the scratch space is empty again"

    hub.requests.clear()
    started = processor_seconds()
    code, output = to_s3.run()
    assert processor_seconds() - started < 1
    assert code == ExitCode.COMPLETE, output
    assert "already staged: 5 files" in output
    assert hub.requests == []


@pytest.mark.slow
def test_scratch_space_smaller_than_the_model(to_s3: StagingPod, hub: HubServer, s3: S3Server) -> None:
    to_s3.environment["STAGE_SCRATCH_BYTES"] = "200000"  # the model has 300 kB, a weight file 100
    process = to_s3.start()
    most = 0
    while process.poll() is None:
        most = max(most, sum(measure(batch)[1] for batch in to_s3.scratch.glob("batch-*")))
        time.sleep(0.001)
    code, output = to_s3.finish(process)
    assert code == ExitCode.COMPLETE, output
    assert_complete(s3, hub)
    assert 100_000 <= most <= 200_000


def test_scratch_space_smaller_than_a_file(to_s3: StagingPod, hub: HubServer) -> None:
    to_s3.environment["STAGE_SCRATCH_BYTES"] = "199999"
    code, output = to_s3.run()
    assert code == ExitCode.BAD_CONFIGURATION, output
    assert "STAGE_SCRATCH_BYTES has to be at least 200000" in to_s3.termination_message
    assert not hub.downloads()


@pytest.mark.slow
def test_killed_in_the_middle_then_run_again(to_s3: StagingPod, hub: HubServer, s3: S3Server) -> None:
    to_s3.environment["STAGE_SCRATCH_BYTES"] = "200000"
    hub.faults["model-3.safetensors"] = iter(["stall"])
    process = to_s3.start()
    wait_for(lambda: hub.stalled.is_set() and f"{PREFIX}model-2.safetensors" in keys(s3))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=5)
    assert ".complete" not in s3.objects(PREFIX)
    left = s3.client.create_multipart_upload(Bucket=BUCKET, Key=f"{PREFIX}model-3.safetensors")["UploadId"]
    assert left

    code, output = to_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(s3, hub)
    assert len(hub.downloads("model-1")) == len(hub.downloads("model-2")) == 1, "what is in the bucket is kept"
    assert "Uploads" not in s3.client.list_multipart_uploads(Bucket=BUCKET), "their parts would be billed for ever"


def keys(s3: S3Server) -> list[str]:
    """The keys in the bucket."""
    return [entry["Key"] for entry in s3.client.list_objects_v2(Bucket=BUCKET).get("Contents", ())]


@pytest.mark.slow
def test_marker_without_its_objects_is_not_believed(to_s3: StagingPod, hub: HubServer, s3: S3Server) -> None:
    assert to_s3.run()[0] == ExitCode.COMPLETE
    s3.client.delete_object(Bucket=BUCKET, Key=f"{PREFIX}model-2.safetensors")
    s3.client.put_object(Bucket=BUCKET, Key=f"{PREFIX}model-3.safetensors", Body=b"x" * 100_000)
    hub.requests.clear()
    code, output = to_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(s3, hub)
    assert [hub.downloads(f"model-{number}") != [] for number in (1, 2, 3)] == [False, True, True]


@pytest.mark.slow
def test_several_parts_carry_checksums(to_s3: StagingPod, hub: HubServer, s3: S3Server, proxy: FaultyProxy) -> None:
    hub.files = {"model-1.safetensors": bytes(range(256)) * 2**19}  # two parts of 64 MiB
    code, output = to_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert [path.endswith("model-1.safetensors") for path in proxy.checksummed].count(True) == 2
    assert_complete(s3, hub)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["500", "503"])
def test_s3_fails_for_a_while(to_s3: StagingPod, hub: HubServer, s3: S3Server, proxy: FaultyProxy, fault: str) -> None:
    proxy.faults["PUT", "model-2.safetensors"] = itertools.repeat(fault, 2)
    code, output = to_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(s3, hub)


@pytest.mark.slow
def test_upload_refused(to_s3: StagingPod, s3: S3Server, proxy: FaultyProxy) -> None:
    proxy.faults["PUT", "model-2.safetensors"] = itertools.repeat("403")
    code, output = to_s3.run()
    assert code == ExitCode.ACCESS_DENIED, output
    assert "check the policy of the pod's role and of the bucket" in to_s3.termination_message
    assert keys(s3)
    assert f"{PREFIX}.complete" not in keys(s3)
    assert f"{PREFIX}.writer" not in keys(s3), "the claim is given back"


@pytest.mark.slow
def test_stalled_upload_is_restarted(to_s3: StagingPod, hub: HubServer, s3: S3Server, proxy: FaultyProxy) -> None:
    proxy.faults["PUT", "model-2.safetensors"] = iter(["stall"])
    to_s3.environment["STAGE_STALL_SECONDS"] = "8"
    code, output = to_s3.run()
    assert code == ExitCode.COMPLETE, output
    assert "the upload stalled: no byte for 8 s; restart 1 of 3" in output
    assert_complete(s3, hub)


def test_no_bucket(to_s3: StagingPod) -> None:
    to_s3.environment["STAGE_TARGET"] = "s3://another-bucket"
    code, output = to_s3.run()
    assert code == ExitCode.NOT_FOUND, output
    assert "bucket another-bucket does not exist" in to_s3.termination_message


def test_no_credentials(to_s3: StagingPod) -> None:
    del to_s3.environment["AWS_ACCESS_KEY_ID"]
    code, output = to_s3.run()
    assert code == ExitCode.ACCESS_DENIED, output
    assert "Pod Identity association" in to_s3.termination_message


@pytest.mark.slow
def test_pod_is_deleted(to_s3: StagingPod, hub: HubServer, s3: S3Server) -> None:
    hub.faults["model-2.safetensors"] = iter(["stall"])
    process = to_s3.start()
    wait_for(hub.stalled.is_set)
    process.terminate()
    code, output = to_s3.finish(process)
    assert code == ExitCode.INTERRUPTED, output
    assert f"{PREFIX}.writer" not in keys(s3), "the claim is given back"


def test_object_of_the_wrong_model_is_not_overwritten(to_s3: StagingPod, s3: S3Server, hub: HubServer) -> None:
    other = json.dumps(s3_marker(hub) | {"revision": "f" * 40}).encode()
    s3.client.put_object(Bucket=BUCKET, Key=f"{PREFIX}.complete", Body=other)
    code, output = to_s3.run()
    assert code == ExitCode.BAD_CONFIGURATION, output
    assert s3.objects(PREFIX) == {".complete": other}
