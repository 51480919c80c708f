"""Uploads a batch of verified files to S3 and deletes them here."""

from __future__ import annotations

import functools
import os
import threading
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from boto3.s3.transfer import TransferConfig

from payloads.model_files import ModelFile
from payloads.reporting import log
from payloads.s3_bucket import Bucket
from payloads.staging_progress import ProgressBoard
from payloads.staging_settings import ExitCode, S3Location, Settings, StagingError
from payloads.workers import outcome_of, run_workers

PROCESSES = 4
"""One Python process is bound by one core, and makes the checksums besides."""
PARTS = TransferConfig(max_concurrency=8, multipart_chunksize=64 * 1024**2, preferred_transfer_client="classic")
"""64 MiB: 10,000 parts, S3's limit, hold 625 GiB."""
RESTARTS = 3
POLL_SECONDS = 0.5

Sums = dict[ModelFile, str]
"""SHA-256 of each file."""


def source_checksum(file: ModelFile) -> str:
    """Return what an object's metadata says of the source's checksum."""
    return f"{file.algorithm}:{file.checksum}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadJob:
    """What one upload worker does."""

    settings: Settings
    location: S3Location
    directory: Path
    sums: Sums


class Upload:
    """Uploads in a thread of the relay, one batch after the other."""

    def __init__(self, settings: Settings, location: S3Location) -> None:
        """Nothing moves until `run`."""
        self._settings, self._location = settings, location
        self._moved = 0
        self._moved_at = 0.0
        self.stopped = False

    def run(self, directory: Path, sums: Sums) -> None:
        """Upload the files of `directory`, and remove it; start again after a stall or an error that may pass.

        Raises:
            StagingError: with the exit code and the reason.
        """
        missing = {file.path: file for file in sums}
        restarts = 0

        def received(message: str | int) -> None:
            self._moved_at = time.monotonic()
            if isinstance(message, int):
                self._moved += message
            else:
                missing.pop(message)
                (directory / message).unlink()

        while missing:
            self._moved, self._moved_at = 0, time.monotonic()
            files = sorted(missing.values(), key=lambda file: -file.size)
            workers = min(PROCESSES, os.cpu_count() or 1, len(files))
            bodies = [
                functools.partial(
                    upload,
                    UploadJob(
                        settings=self._settings,
                        location=self._location,
                        directory=directory,
                        sums={file: sums[file] for file in files[first::workers]},
                    ),
                )
                for first in range(workers)
            ]
            failure = run_workers(bodies, received, self._watch, min(POLL_SECONDS, self._settings.stall_seconds / 4))
            if failure is None:
                break
            if failure.code.final or restarts == RESTARTS or self.stopped:
                raise failure
            restarts += 1
            log(f"{failure}; restart {restarts} of {RESTARTS}")

    def wait(self, running: Future[None], board: ProgressBoard) -> None:
        """Wait for a batch, with progress reports."""
        board.begin("uploading", total=0, done=0)
        while wait([running], timeout=POLL_SECONDS).not_done:
            board.update(self._moved)
        running.result()

    def _watch(self) -> StagingError | None:
        if self.stopped:
            return StagingError(ExitCode.INTERRUPTED, "interrupted")
        if time.monotonic() - self._moved_at > self._settings.stall_seconds:
            return StagingError(ExitCode.STALLED, f"the upload stalled: no byte for {self._settings.stall_seconds:g} s")
        return None


def upload(job: UploadJob, outcome: Connection) -> None:
    """Body of an upload worker (`payloads.workers`)."""
    bucket = Bucket(job.location, job.settings)
    moved, sent_at = 0, time.monotonic()
    lock = threading.Lock()

    def count(bytes_moved: int) -> None:
        nonlocal moved, sent_at
        with lock:  # called by several threads
            moved += bytes_moved
            if time.monotonic() - sent_at > POLL_SECONDS:
                outcome.send(moved)
                moved, sent_at = 0, time.monotonic()

    try:
        for file, sha256 in job.sums.items():
            bucket.client.upload_file(
                str(job.directory / file.path),
                bucket.name,
                bucket.key(file.path),
                ExtraArgs={
                    "ChecksumAlgorithm": "SHA256",
                    "Metadata": {"sha256": sha256, "source-checksum": source_checksum(file)},
                },
                Config=PARTS,
                Callback=count,
            )
            with lock:
                outcome.send(file.path)
    except Exception as error:
        outcome.send(outcome_of(bucket.explain(error)))
        return
    outcome.send(None)
