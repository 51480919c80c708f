"""Two writers of one place: one works, the other waits; a dead one is replaced, a suspended one gives way."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from payloads.s3_bucket import Bucket
from payloads.s3_lock import BucketClaim
from payloads.staging_settings import ExitCode, S3Location, Settings, StagingError
from payloads.writer_lock import Claim, DirectoryClaim
from tests.payloads.conftest import PREFIX, StagingPod, wait_for
from tests.payloads.hub_server import HubServer
from tests.payloads.s3_server import BUCKET, S3Server
from tests.payloads.test_stage_to_s3 import assert_complete as assert_complete_in_s3
from tests.payloads.test_stage_weights import assert_complete

LOCK_SECONDS = 0.4
MakeClaim = Callable[[], Claim]


@pytest.fixture(params=["directory", "bucket"])
def make_claim(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pod: StagingPod
) -> MakeClaim:
    """Returns a further writer's claim to the same place."""
    settings = replace(Settings.from_environment(pod.environment), directory=tmp_path, lock_seconds=LOCK_SECONDS)
    if request.param == "directory":
        return lambda: DirectoryClaim(settings)
    s3: S3Server = request.getfixturevalue("s3")
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return lambda: BucketClaim(Bucket(S3Location(bucket=BUCKET, prefix="models"), settings), settings)


def test_second_claim_waits_for_the_first(make_claim: MakeClaim) -> None:
    first, second = make_claim(), make_claim()
    assert first.take()
    assert not second.take()
    first.release()
    assert second.take()


def test_renewed_claim_is_never_taken_over(make_claim: MakeClaim) -> None:
    first, second = make_claim(), make_claim()
    assert first.take()
    until = time.monotonic() + 3 * LOCK_SECONDS
    while time.monotonic() < until:
        first.renew()
        assert not second.take()
    first.renew()


def test_renewals_from_two_threads(make_claim: MakeClaim) -> None:
    claim = make_claim()
    assert claim.take()
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda _: claim.renew(), range(20))] == [None] * 20


def test_claim_of_a_dead_writer_is_taken_over(make_claim: MakeClaim) -> None:
    first, second = make_claim(), make_claim()
    assert first.take()
    started = time.monotonic()
    wait_for(second.take)
    assert time.monotonic() - started > LOCK_SECONDS
    with pytest.raises(StagingError, match="another writer took") as failure:
        first.renew()
    assert failure.value.code == ExitCode.OTHER_WRITER
    first.release()
    second.renew()  # what the first gave back was not its own any more


def test_one_of_many_at_once(make_claim: MakeClaim) -> None:
    claims = [make_claim() for _ in range(8)]
    assert claims[0].take()  # dead from now on: all others wait for the same moment
    holders: list[int] = []

    def compete(number: int) -> None:
        wait_for(lambda: claims[number].take())
        holders.append(number)
        assert holders == [number], "two writers at once"
        claims[number].renew()
        time.sleep(0.02)  # longer than a beginner needs to look around
        assert holders == [number], "two writers at once"
        holders.clear()
        claims[number].release()

    with ThreadPoolExecutor(7) as pool:
        assert len([*pool.map(compete, range(1, 8))]) == 7


def test_renewal_whose_answer_was_lost(s3: S3Server, pod: StagingPod, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    settings = Settings.from_environment(pod.environment)
    bucket = Bucket(S3Location(bucket=BUCKET, prefix="models"), settings)
    claim = BucketClaim(bucket, settings)
    assert claim.take()
    put = bucket.client.put_object

    def put_twice(**arguments: object) -> object:
        put(**arguments)
        return put(**arguments)

    monkeypatch.setattr(bucket.client, "put_object", put_twice)
    claim.renew()
    claim.renew()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["directory", "bucket"])
def test_two_writers_at_once(request: pytest.FixtureRequest, pod: StagingPod, hub: HubServer, target: str) -> None:
    if target == "bucket":
        request.getfixturevalue("to_s3")
    hub.faults["model-2.safetensors"] = iter(["hold"])
    first = pod.start()
    assert hub.held.acquire(timeout=30)
    second = pod.start()
    assert second.stdout
    assert "waiting for another writer of " in second.stdout.readline()
    hub.resume.set()
    code, output = pod.finish(first)
    assert code == ExitCode.COMPLETE, output
    code, output = pod.finish(second)
    assert code == ExitCode.COMPLETE, output
    assert "already staged: 5 files" in output
    assert len(hub.downloads("model-1")) == 1
    if target == "bucket":
        assert_complete_in_s3(request.getfixturevalue("s3"), hub)
    else:
        assert_complete(pod, hub)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["directory", "bucket"])
def test_suspended_writer_gives_way(
    request: pytest.FixtureRequest, pod: StagingPod, hub: HubServer, target: str
) -> None:
    if target == "bucket":
        request.getfixturevalue("to_s3")
    hub.faults["model-2.safetensors"] = iter(["stall"])
    first = pod.start()
    wait_for(hub.stalled.is_set)
    os.killpg(first.pid, signal.SIGSTOP)  # with the worker, which holds the Hub client's lock on the file
    second = pod.start()
    code, output = pod.finish(second)
    assert code == ExitCode.COMPLETE, output
    assert "gave no sign of life for 1 s: taken over" in output
    os.killpg(first.pid, signal.SIGCONT)
    code, output = pod.finish(first)
    assert code == ExitCode.OTHER_WRITER, output
    assert "another writer took" in pod.termination_message
    if target == "bucket":
        assert_complete_in_s3(request.getfixturevalue("s3"), hub)
        assert f"{PREFIX}.writer" not in request.getfixturevalue("s3").objects("")
    else:
        assert_complete(pod, hub)
