"""A model in S3 as a source of downloads."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from boto3.s3.transfer import TransferConfig

from payloads.download import DownloadJob
from payloads.model_files import Manifest, ModelFile
from payloads.reporting import log
from payloads.s3_bucket import Bucket
from payloads.staging_settings import ExitCode, S3Location, Settings, StagingError
from payloads.workers import outcome_of

PROCESSES = 8
"""One Python process is bound by one core. A p5 node's link carries 12.5 GB/s of IP traffic (AWS EC2 user guide,
"efa-acc-inst-types"), and its disks were seen to take 2.9 GB/s (marin-community/marin#7136).
"""
RANGES = TransferConfig(
    max_concurrency=10, multipart_chunksize=16 * 1024**2, io_chunksize=1024**2, preferred_transfer_client="classic"
)
POLL_SECONDS = 5.0


class S3Source:
    """What `s3_target` left under a prefix."""

    def __init__(self, location: S3Location) -> None:
        """Nothing is asked yet."""
        self._location = location

    def list_files(self, settings: Settings) -> Manifest:
        """See `download.Source.list_files`; waits for the marker for `wait_seconds`."""
        bucket = Bucket(self._location, settings)
        deadline = time.monotonic() + settings.wait_seconds
        said_at = -settings.report_seconds
        while (found := bucket.read_marker()) is None:
            if time.monotonic() >= deadline:
                raise StagingError(
                    ExitCode.NOT_FOUND,
                    f"{bucket} holds no complete model: its marker .complete, or an object that it names, is missing. "
                    "Has the staging Job ended?",
                )
            if time.monotonic() - said_at >= settings.report_seconds:
                said_at = time.monotonic()
                log(f"waiting for {bucket}.complete")
            time.sleep(min(POLL_SECONDS, settings.report_seconds))
        return found[1]

    def split(self, files: Sequence[ModelFile]) -> list[Sequence[ModelFile]]:
        """Even out the bytes: the largest file goes to whoever has least."""
        count = min(PROCESSES, os.cpu_count() or 1, len(files))
        parts: list[list[ModelFile]] = [[] for _ in range(count)]
        for file in sorted(files, key=lambda file: -file.size):
            min(parts, key=lambda part: sum(own.size for own in part)).append(file)
        return [part for part in parts if part]

    def download(self, job: DownloadJob, outcome: Connection) -> None:
        """See `download.Source.download`."""
        bucket = Bucket(self._location, job.settings)
        try:
            for file in job.files:
                partial = job.directory / ".cache" / "s3" / f"{file.path}.incomplete"
                partial.parent.mkdir(parents=True, exist_ok=True)
                _fetch(bucket, file, partial)
                final: Path = job.directory / file.path
                final.parent.mkdir(parents=True, exist_ok=True)
                partial.replace(final)
                outcome.send(file.path)
        except Exception as error:
            outcome.send(outcome_of(bucket.explain(error)))
            return
        outcome.send(None)


def _fetch(bucket: Bucket, file: ModelFile, partial: Path) -> None:
    # s3transfer writes to a file beside this one, and renames it once all ranges are there.
    bucket.client.download_file(bucket.name, bucket.key(file.path), str(partial), Config=RANGES)
