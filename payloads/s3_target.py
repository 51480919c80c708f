"""From the Hub to S3 through scratch space that is smaller than the model.

Files pass in batches of half the scratch space: one is downloaded and verified while the one before is uploaded and
deleted. Each upload is checked by S3 part by part against SHA-256 sums made here. An object carries the SHA-256 and the
source's checksum of its file in its metadata: a run after a killed one keeps every finished object. The marker, with
the manifest in it, comes last.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from payloads import cache_directory
from payloads.cache_directory import GIB
from payloads.download import Fetcher, Source
from payloads.model_files import Manifest, ModelFile
from payloads.reporting import log
from payloads.s3_bucket import Bucket
from payloads.s3_lock import BucketClaim
from payloads.s3_upload import Sums, Upload, source_checksum
from payloads.staging_progress import ProgressBoard
from payloads.staging_settings import COMPLETE_MARKER, ExitCode, S3Location, Settings, StagingError
from payloads.writer_lock import Claim, sole_writer


def stage_to_s3(settings: Settings, location: S3Location, source: Source, board: ProgressBoard) -> str:
    """Bring the model to the bucket unless it is there, and return a sentence about it.

    Raises:
        StagingError: with the exit code and the reason.
    """
    bucket = Bucket(location, settings)
    if already := _already_staged(bucket):
        return already
    claim = BucketClaim(bucket, settings)
    with sole_writer(claim, settings, board, bucket):
        return _already_staged(bucket) or _Relay(settings, location, bucket, source, board).run(claim)


def _already_staged(bucket: Bucket) -> str | None:
    found = bucket.read_marker()
    return f"already staged: {len(found[1].files)} files, {found[1].bytes / GIB:.1f} GiB in {bucket}" if found else None


class _Relay:
    """One run from source to bucket."""

    def __init__(
        self, settings: Settings, location: S3Location, bucket: Bucket, source: Source, board: ProgressBoard
    ) -> None:
        self._settings, self._location, self._bucket, self._source = settings, location, bucket, source
        self._board = board
        self._scratch = settings.temporary_directory

    def run(self, claim: Claim) -> str:
        """Do what `stage_to_s3` promises."""
        started = time.monotonic()
        self._bucket.ask(self._bucket.client.delete_object, Key=self._bucket.key(COMPLETE_MARKER))
        self._abort_uploads()
        self._open_scratch()
        manifest = self._source.list_files(self._settings)
        sums = self._finished(manifest)
        missing = [file for file in manifest.files if file not in sums]
        kept = manifest.bytes - sum(file.size for file in missing)
        log(
            f"staging {len(manifest.files)} files, {manifest.bytes / GIB:.1f} GiB to {self._bucket}; "
            f"{len(sums)} files, {kept / GIB:.1f} GiB are there already"
        )
        batches = _batches(missing, self._settings.scratch_bytes // 2)
        biggest = max((sum(file.size for file in batch) for batch in batches), default=0)
        cache_directory.require_space(self._settings, self._scratch, min(2 * biggest, manifest.bytes))
        self._relay(batches, manifest, sums)
        claim.renew()
        self._publish(manifest, sums)
        shutil.rmtree(self._scratch, ignore_errors=True)
        seconds = time.monotonic() - started
        rate = (manifest.bytes - kept) / 1e9 / seconds
        size = f"{len(manifest.files)} files, {manifest.bytes / GIB:.1f} GiB"
        return f"staged {size} to {self._bucket} in {seconds:.0f} s, {rate:.2f} GB/s"

    def _relay(self, batches: Sequence[Sequence[ModelFile]], manifest: Manifest, sums: Sums) -> None:
        """Download each batch while the one before is uploaded."""
        uploading: Future[None] | None = None
        upload = Upload(self._settings, self._location)
        done = manifest.bytes - sum(file.size for batch in batches for file in batch)
        with ThreadPoolExecutor(1) as pool:
            try:
                for number, batch in enumerate(batches):
                    folder = self._scratch / f"batch-{number}"
                    folder.mkdir()
                    self._board.is_part(whole=manifest.bytes, before=done)
                    sums |= (new := self._fetch(folder, batch))
                    done += sum(file.size for file in batch)
                    if uploading is not None:
                        upload.wait(uploading, self._board)
                    uploading = pool.submit(upload.run, folder, new)
                if uploading is not None:
                    upload.wait(uploading, self._board)
            finally:
                upload.stopped = True

    def _fetch(self, folder: Path, batch: Sequence[ModelFile]) -> Sums:
        try:
            return Fetcher(self._settings, self._source, self._board, folder).fetch(batch)
        except StagingError as error:
            if error.code == ExitCode.NO_SPACE:
                raise cache_directory.became_full(self._settings, sum(file.size for file in batch), error) from error
            raise

    def _open_scratch(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)
        try:
            self._scratch.mkdir()
        except OSError as error:
            raise StagingError(
                ExitCode.BAD_CONFIGURATION, f"cannot write to the scratch space {self._settings.directory}: {error}"
            ) from error
        os.environ.setdefault("HF_HOME", str(self._scratch / ".cache" / "home"))

    def _finished(self, manifest: Manifest) -> Sums:
        """Return the SHA-256 of each file that an earlier run uploaded whole."""
        sizes = self._bucket.sizes()
        candidates = [file for file in manifest.files if sizes.get(file.path) == file.size]
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(
                lambda file: self._bucket.ask(self._bucket.client.head_object, Key=self._bucket.key(file.path)),
                candidates,
            )
            told = {file: answer["Metadata"] for file, answer in zip(candidates, answers, strict=True)}
        return {
            file: metadata["sha256"]
            for file, metadata in told.items()
            if metadata.get("source-checksum") == source_checksum(file) and "sha256" in metadata
        }

    def _abort_uploads(self) -> None:
        """Drop the parts of uploads that an ended run left half done: they are billed until somebody does."""
        client, found = self._bucket.client, []
        try:
            for page in client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self._bucket.name, Prefix=self._bucket.prefix
            ):
                found += page.get("Uploads", ())
            for entry in found:
                client.abort_multipart_upload(Bucket=self._bucket.name, Key=entry["Key"], UploadId=entry["UploadId"])
        except Exception as error:
            raise self._bucket.explain(error) from error

    def _publish(self, manifest: Manifest, sums: Sums) -> None:
        objects = [{"path": file.path, "size": file.size, "sha256": sums[file]} for file in manifest.files]
        content = cache_directory.marker_content(self._settings, manifest) | {"objects": objects}
        self._bucket.ask(
            self._bucket.client.put_object,
            Key=self._bucket.key(COMPLETE_MARKER),
            Body=json.dumps(content, indent=1).encode(),
            ContentType="application/json",
            ChecksumAlgorithm="SHA256",
        )


def _batches(files: Sequence[ModelFile], most: int) -> list[list[ModelFile]]:
    batches: list[list[ModelFile]] = []
    size = 0
    for file in files:
        if file.size > most:
            raise StagingError(
                ExitCode.BAD_CONFIGURATION,
                f"{file.path} has {file.size} bytes: STAGE_SCRATCH_BYTES has to be at least {2 * file.size}",
            )
        if not batches or size + file.size > most:
            batches.append([])
            size = 0
        batches[-1].append(file)
        size += file.size
    return batches
