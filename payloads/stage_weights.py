"""Stage a model's weights once, complete and verified: from the Hub or S3 into a directory, or from the Hub to S3.

Runs in a pod as `python -m payloads.stage_weights`; `payloads.staging_settings` explains its environment variables
and exit codes. One writer at a time: a Job with parallelism 1, or the init container of a node's one pod; a second one
waits (`payloads.writer_lock`).

A directory gets the files of one commit in `<STAGE_DIRECTORY>/.staging-<revision>`; size and checksum of every file
are checked against the source, the directory is renamed to `<STAGE_DIRECTORY>/<model_directory(repository,
revision)>`, and the marker `.complete` is written in it last. A reader that sees the marker sees the whole model.
A run that finds the marker ends at once; a run after a killed one keeps every finished file. S3: `payloads.s3_target`.

The marker is JSON: `repository`, `revision`, `files` (count), `bytes`, `manifest_sha256` (`Manifest.digest`).

What may pass is tried again here, not by the Job's controller: Pulumi sees a Job fail only by its backoff limit or
deadline, and would wait for hours on one that a `podFailurePolicy` ended.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from types import FrameType

from payloads import cache_directory
from payloads.cache_directory import GIB
from payloads.download import Fetcher, Source
from payloads.hub_snapshot import Hub
from payloads.model_files import Manifest
from payloads.reporting import log
from payloads.staging_progress import ProgressBoard, without_token, write_termination_message
from payloads.staging_settings import ExitCode, Settings, StagingError
from payloads.writer_lock import Claim, DirectoryClaim, sole_writer


def main() -> int:
    """Stage, say how it went in log, ConfigMap and termination message, and return the exit code."""
    # The first process of a container has no default action for SIGTERM: without a handler it is ignored.
    signal.signal(signal.SIGTERM, _interrupt)
    board: ProgressBoard | None = None
    try:
        settings = Settings.from_environment(os.environ)
        board = ProgressBoard(settings)
        code, verdict = ExitCode.COMPLETE, stage_patiently(settings, board)
    except StagingError as error:
        code, verdict = error.code, str(error)
    except Exception as error:
        log(without_token(traceback.format_exc()))
        code, verdict = ExitCode.UNEXPECTED, f"{type(error).__name__}: {error}"
    if code:
        advice = "this will not heal by itself" if code.final else "run again to go on where it stopped"
        verdict = f"weight staging failed ({code.name.lower()}, {advice}): {verdict}"
    verdict = without_token(verdict)
    if board is not None:
        board.post(phase="failed" if code else "complete", message=verdict)
    write_termination_message(verdict)
    log(verdict)
    return code


def stage_patiently(settings: Settings, board: ProgressBoard) -> str:
    """Stage, and try again after failures that may pass.

    Raises:
        StagingError: the first final failure, or the last one.
    """
    for attempt in range(1, settings.attempts):
        try:
            return stage(settings, board)
        except (StagingError, OSError) as failure:
            asked = 0.0
            if isinstance(failure, StagingError):
                if failure.code.final:
                    raise
                asked = failure.retry_after
            wait = max(settings.retry_seconds * 2 ** (attempt - 1), asked)
            log(without_token(f"{failure}; attempt {attempt + 1} of {settings.attempts} in {wait:g} s"))
            time.sleep(wait)
    return stage(settings, board)


def stage(settings: Settings, board: ProgressBoard) -> str:
    """Bring the model to its target unless it is there, and return a sentence about it.

    Raises:
        StagingError: with the exit code and the reason.
    """
    if settings.target:
        from payloads.s3_target import stage_to_s3  # boto3 is there only where S3 is used

        return stage_to_s3(settings, settings.target, Hub(), board)
    if already := _already_staged(settings):
        return already
    claim = DirectoryClaim(settings)
    with sole_writer(claim, settings, board, settings.directory):
        return _already_staged(settings) or _stage_to_directory(settings, claim, board)


def _already_staged(settings: Settings) -> str | None:
    marker = cache_directory.read_marker(settings)
    if marker is None:
        return None
    return f"already staged: {marker['files']} files, {marker['bytes'] / GIB:.1f} GiB in {settings.final_directory}"


def _stage_to_directory(settings: Settings, claim: Claim, board: ProgressBoard) -> str:
    started = time.monotonic()
    cache_directory.open_temporary_directory(settings)
    temporary = settings.temporary_directory
    os.environ.setdefault("HF_HOME", str(temporary / ".cache" / "home"))
    cache_directory.remove_partial_files(temporary)
    source = _source(settings)
    manifest = source.list_files(settings)
    wanted = max(manifest.bytes, settings.expected_bytes)
    cache_directory.require_space(settings, temporary, wanted)
    log(f"staging {len(manifest.files)} files, {manifest.bytes / GIB:.1f} GiB to {settings.final_directory}")
    try:
        Fetcher(settings, source, board, temporary).fetch(manifest.files)
        claim.renew()
        cache_directory.publish(settings, manifest)
    except (StagingError, OSError) as error:
        if cache_directory.is_full(error) or (isinstance(error, StagingError) and error.code == ExitCode.NO_SPACE):
            raise cache_directory.became_full(settings, wanted, error) from error
        raise
    return _summary(manifest, time.monotonic() - started)


def _source(settings: Settings) -> Source:
    if settings.source is None:
        return Hub()
    from payloads.s3_source import S3Source  # boto3 is there only where S3 is used

    return S3Source(settings.source)


def _summary(manifest: Manifest, seconds: float) -> str:
    return (
        f"staged {len(manifest.files)} files, {manifest.bytes / GIB:.1f} GiB in {seconds:.0f} s, "
        f"{manifest.bytes / 1e9 / seconds:.2f} GB/s"
    )


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    write_termination_message("weight staging was interrupted; run again to go on where it stopped")
    sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
