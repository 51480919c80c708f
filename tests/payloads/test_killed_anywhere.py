"""SIGKILL at random moments of each path, then a second run; a reader watches all the time.

The moments are spread over a whole run by the clock, so that they hit start, download, checks, publishing and, for S3,
uploads. The seed is printed; set STAGING_KILL_SEED to repeat one.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from payloads.staging_settings import ExitCode
from tests.payloads.conftest import PREFIX, StagingPod
from tests.payloads.hub_server import HubServer
from tests.payloads.s3_server import BUCKET, S3Server
from tests.payloads.test_stage_to_s3 import assert_complete as assert_complete_in_s3
from tests.payloads.test_stage_weights import assert_complete

pytestmark = pytest.mark.slow
KILLS = 20
LOCK_SECONDS = "0.3"


@contextmanager
def reader(look: Callable[[], dict[str, int] | None], hub: HubServer) -> Iterator[list[str]]:
    """Look again and again, as a reader does: at the marker first, then at the files; collect what is wrong.

    `look` returns None when there is no marker, else the sizes of the files.
    """
    wrong: list[str] = []
    looks: list[bool] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            try:
                found = look()
            except Exception as error:
                wrong.append(repr(error))
                return
            looks.append(found is not None)
            if found is not None and found != {path: len(content) for path, content in hub.files.items()}:
                wrong.append(f"a marker beside {found}")
            time.sleep(0.002)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield wrong
    finally:
        ended.set()
        thread.join()
    assert looks, "the reader never looked"


def look_at_directory(pod: StagingPod) -> dict[str, int] | None:
    """See `reader`."""
    if not pod.marker.exists():
        return None
    files = (path for path in pod.model.rglob("*") if path.is_file() and path != pod.marker)
    return {str(path.relative_to(pod.model)): path.stat().st_size for path in files}


def look_at_bucket(s3: S3Server) -> dict[str, int] | None:
    """See `reader`."""
    try:
        marker = s3.client.get_object(Bucket=BUCKET, Key=f"{PREFIX}.complete")["Body"].read()
    except s3.client.exceptions.NoSuchKey:
        return None
    named = [entry["path"] for entry in json.loads(marker)["objects"]]
    listing = s3.client.list_objects_v2(Bucket=BUCKET, Prefix=PREFIX)["Contents"]
    sizes = {entry["Key"].removeprefix(PREFIX): entry["Size"] for entry in listing}
    return {path: size for path, size in sizes.items() if path in named}


def kill_and_run_again(
    pod: StagingPod,
    hub: HubServer,
    clear: Callable[[], None],
    look: Callable[[], dict[str, int] | None],
    assert_whole: Callable[[], None],
) -> None:
    """Kill a fresh run at each of the moments, and run again."""
    seed = int(os.environ.get("STAGING_KILL_SEED") or random.SystemRandom().randrange(10**6))
    print(f"STAGING_KILL_SEED={seed}")
    moments = random.Random(seed)  # noqa: S311  reproducible moments, no secret
    hub.pause_seconds = 0.01
    pod.environment |= {"STAGE_LOCK_SECONDS": LOCK_SECONDS, "STAGE_SCRATCH_BYTES": "220000"}
    started = time.monotonic()
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    lasted = time.monotonic() - started
    hit = 0
    for number in range(KILLS):
        clear()
        with reader(look, hub) as wrong:
            process = pod.start()
            # One moment in each twentieth of a run: no part is left out.
            time.sleep(lasted * (number + moments.random()) / KILLS)
            hit += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=10)
            code, output = pod.run()
        assert code == ExitCode.COMPLETE, f"kill {number}: {output}"
        assert not wrong, f"kill {number}: {wrong[0]}"
        assert_whole()
    assert hit >= KILLS / 2, "most kills came after the end: the moments are badly chosen"


def clear_directory(pod: StagingPod) -> None:
    """Empty the cache."""
    shutil.rmtree(pod.cache)
    pod.cache.mkdir()


@pytest.mark.parametrize("source", ["pod", "from_s3"])
def test_killed_while_it_fills_a_directory(
    request: pytest.FixtureRequest, pod: StagingPod, hub: HubServer, source: str
) -> None:
    request.getfixturevalue(source)
    kill_and_run_again(
        pod,
        hub,
        clear=lambda: clear_directory(pod),
        look=lambda: look_at_directory(pod),
        assert_whole=lambda: assert_complete(pod, hub),
    )


def test_killed_while_it_fills_a_bucket(to_s3: StagingPod, hub: HubServer, s3: S3Server) -> None:
    def clear() -> None:
        clear_directory(to_s3)
        s3.empty()

    kill_and_run_again(
        to_s3,
        hub,
        clear=clear,
        look=lambda: look_at_bucket(s3),
        assert_whole=lambda: assert_complete_in_s3(s3, hub),
    )
