"""One writer at a time: a claim that is renewed while its owner lives.

Whoever finds another's claim waits until it is given back or was not renewed for `STAGE_LOCK_SECONDS`. Whoever loses
its claim ends at once. Clocks are not compared: "not renewed" means that the watcher saw no change on its own clock.

What this does not guarantee: a writer that was suspended, or cut off from the storage, for longer than that and then
goes on may write beside its successor until its next renewal fails, a sixth of that time. Both would write the same
verified bytes, and the claim is renewed once more before the marker is written. A Job with parallelism 1 stays the
first line of defence. On NFS, whose clients may list a stale directory, two claims can miss each other.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from payloads.reporting import log
from payloads.staging_progress import ProgressBoard, write_termination_message
from payloads.staging_settings import ExitCode, Settings, StagingError

POLL_SECONDS = 1.0
RENEWALS_BEFORE_STALE = 6


class Claim(Protocol):
    """The right to write to one place."""

    def take(self) -> bool:
        """Try to become the writer; to be called again and again, since staleness shows by watching."""

    def renew(self) -> None:
        """Give a sign of life.

        Raises:
            StagingError: OTHER_WRITER when the claim is lost.
            OSError: the storage did not answer.
        """

    def release(self) -> None:
        """Give the claim back."""


def lost(where: object) -> StagingError:
    """Return the error of a writer whose claim is gone."""
    return StagingError(
        ExitCode.OTHER_WRITER,
        f"another writer took {where} over, since this one gave no sign of life for too long (suspended, or cut off "
        "from the storage)",
    )


class Unchanged:
    """Tells what stayed the same for a while, by the watcher's own clock."""

    def __init__(self, seconds: float) -> None:
        """Things are stale after `seconds` without a change."""
        self._seconds = seconds
        self._seen: dict[str, tuple[object, float]] = {}

    def is_stale(self, name: str, state: object) -> bool:
        """Say whether `name` was in this `state` each time for long enough."""
        now = time.monotonic()
        before, since = self._seen.get(name, (None, now))
        if before != state:
            since = now
        self._seen[name] = (state, since)
        return now - since > self._seconds


class DirectoryClaim:
    """An empty file of a unique name per writer; a writer that sees no other's file beside its own may write.

    Works where `flock` does not (Lustre, where it may succeed for everybody): all it takes is that a file made by one
    client is seen by the next listing of another. The names are unique, so that removing a dead writer's file can
    never hit the file of the one that came after.
    """

    def __init__(self, settings: Settings) -> None:
        """Claim the staging of this revision in this directory."""
        self._settings = settings
        self._prefix = f".writer-{settings.revision}-"
        self._file = settings.directory / f"{self._prefix}{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
        self._unchanged = Unchanged(settings.lock_seconds)

    def take(self) -> bool:
        """See `Claim.take`."""
        if self._rivals():
            return False
        try:
            self._file.touch(exist_ok=False)
        except (PermissionError, FileNotFoundError, NotADirectoryError) as error:
            raise StagingError(
                ExitCode.BAD_CONFIGURATION,
                f"cannot write to STAGE_DIRECTORY={self._settings.directory} ({error.strerror}): "
                "is the cache mounted there, read-write, and writable for this user?",
            ) from error
        if not self._rivals():
            return True
        # Two came at once, and each saw the other.
        self._file.unlink(missing_ok=True)
        time.sleep(random.uniform(0, POLL_SECONDS / 4))  # noqa: S311  not for security
        return False

    def renew(self) -> None:
        """See `Claim.renew`."""
        try:
            os.utime(self._file)
        except FileNotFoundError:
            raise lost(self._settings.directory) from None

    def release(self) -> None:
        """See `Claim.release`."""
        self._file.unlink(missing_ok=True)

    def _rivals(self) -> list[Path]:
        found = []
        for file in self._settings.directory.glob(f"{self._prefix}*"):
            with contextlib.suppress(FileNotFoundError):
                if file != self._file and self._unchanged.is_stale(file.name, file.stat().st_mtime_ns):
                    log(f"{file.name} gave no sign of life for {self._settings.lock_seconds:g} s: taken over")
                    file.unlink()
                elif file != self._file:
                    found.append(file)
        return found


@contextlib.contextmanager
def sole_writer(claim: Claim, settings: Settings, board: ProgressBoard, where: object) -> Iterator[None]:
    """Wait for the claim, hold it for the `with` block, and end the process if it is lost."""
    said_at = -settings.report_seconds
    while not claim.take():
        if time.monotonic() - said_at >= settings.report_seconds:
            said_at = time.monotonic()
            line = f"waiting for another writer of {where} to end"
            log(line)
            board.post(phase="waiting", message=line)
        time.sleep(min(POLL_SECONDS, settings.lock_seconds / RENEWALS_BEFORE_STALE))
    ended = threading.Event()
    beat = threading.Thread(target=_keep, args=(claim, settings, ended, _end_process), daemon=True)
    beat.start()
    try:
        yield
    finally:
        ended.set()
        beat.join()
        with contextlib.suppress(OSError):
            claim.release()


def _keep(claim: Claim, settings: Settings, ended: threading.Event, on_loss: Callable[[StagingError], None]) -> None:
    renewed_at = time.monotonic()
    while not ended.wait(settings.lock_seconds / RENEWALS_BEFORE_STALE):
        try:
            claim.renew()
            renewed_at = time.monotonic()
        except StagingError as error:
            on_loss(error)
        except OSError as error:
            log(f"could not renew the writer's claim: {error}")
            if time.monotonic() - renewed_at > settings.lock_seconds:
                on_loss(lost("what could not be reached"))


def _end_process(error: StagingError) -> None:
    """End at once and without cleaning up: whatever lies there belongs to the successor now."""
    verdict = f"weight staging failed (other_writer, run again to go on where it stopped): {error}"
    write_termination_message(verdict)
    log(verdict)
    os._exit(error.code)
