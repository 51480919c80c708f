"""Stage a model's weights from the Hugging Face Hub onto the weight cache: once, complete and verified.

Runs in a pod as `python -m payloads.stage_weights`; one writer at a time (a Job with parallelism 1). It
gathers the files of one commit in `<STAGE_DIRECTORY>/.staging-<revision>`, checks the size and checksum of
every file against the Hub, renames the directory to `<STAGE_DIRECTORY>/<model_directory(repository,
revision)>` and writes the marker `.complete` in it last. A reader that sees the marker sees the whole model.
A run that finds the marker ends at once; a run after a killed one keeps every finished file.

The marker is JSON: `repository`, `revision`, `files` (count), `bytes`, `manifest_sha256` (`Manifest.digest`).

Environment variables:
    STAGE_REPOSITORY          Hub repository, owner/name
    STAGE_REVISION            full commit, 40 hex digits
    STAGE_DIRECTORY           absolute path where the cache is mounted, read-write
    STAGE_EXPECTED_BYTES      least bytes that the free-space check plans for; default: what the Hub reports
    STAGE_STALL_SECONDS       no byte written for so long: the download is restarted; default 300
    STAGE_ATTEMPTS            how often what may pass is tried in all; default 6
    STAGE_RETRY_SECONDS       wait before the second attempt, doubled before each further one; default 30: six
                              attempts span a quarter of an hour
    STAGE_REPORT_SECONDS      time between progress reports; default 15
    STAGE_PROGRESS_CONFIGMAP, STAGE_PROGRESS_NAMESPACE
                              an existing ConfigMap that the pod's service account may patch; default: log
                              only. Keys: phase (downloading, verifying, complete, failed), percent,
                              gigabytesPerSecond, secondsLeft, message, updated
    STAGE_TERMINATION_LOG     default /dev/termination-log
    STAGE_SERVICE_ACCOUNT     folder with the files token and ca.crt; default: where Kubernetes mounts them
    HF_TOKEN                  read token for gated models; never printed
    HF_ENDPOINT, HF_XET_HIGH_PERFORMANCE and the Hub client's other variables are passed on to it; its
                              bookkeeping (HF_HOME) goes to the temporary directory unless it is set

Exit codes: `payloads.staging_settings.ExitCode`. What may pass is tried again here, not by the Job's controller: Pulumi
sees a Job fail only by its backoff limit or deadline, and would wait for hours on one that a `podFailurePolicy` ended.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import traceback
from types import FrameType

from payloads import cache_directory, hub_snapshot
from payloads.cache_directory import GIB
from payloads.hub_snapshot import Manifest
from payloads.staging_progress import ProgressBoard, log, write_termination_message
from payloads.staging_settings import ExitCode, Settings, StagingError

DOWNLOAD_RESTARTS = 3
VERIFY_ROUNDS = 2
"""A file that is wrong once is fetched again; wrong twice, it is the source that is wrong."""


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
        log(_without_token(traceback.format_exc()))
        code, verdict = ExitCode.UNEXPECTED, f"{type(error).__name__}: {error}"
    if code:
        advice = "this will not heal by itself" if code.final else "run again to go on where it stopped"
        verdict = f"weight staging failed ({code.name.lower()}, {advice}): {verdict}"
    verdict = _without_token(verdict)
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
            if isinstance(failure, StagingError) and failure.code.final:
                raise
            wait = settings.retry_seconds * 2 ** (attempt - 1)
            log(_without_token(f"{failure}; attempt {attempt + 1} of {settings.attempts} in {wait:g} s"))
            time.sleep(wait)
    return stage(settings, board)


def stage(settings: Settings, board: ProgressBoard) -> str:
    """Bring the model to its final directory unless it is there, and return a sentence about it.

    Raises:
        StagingError: with the exit code and the reason.
    """
    started = time.monotonic()
    if marker := cache_directory.read_marker(settings):
        return f"already staged: {marker['files']} files, {marker['bytes'] / GIB:.1f} GiB in {settings.final_directory}"
    cache_directory.open_temporary_directory(settings)
    os.environ.setdefault("HF_HOME", str(settings.temporary_directory / ".cache" / "home"))
    hub_snapshot.remove_partial_files(settings.temporary_directory)
    manifest = hub_snapshot.list_files(settings)
    cache_directory.require_space(settings, manifest)
    log(f"staging {len(manifest.files)} files, {manifest.bytes / GIB:.1f} GiB to {settings.final_directory}")
    download_and_verify(settings, manifest, board)
    cache_directory.publish(settings, manifest)
    seconds = time.monotonic() - started
    return (
        f"staged {len(manifest.files)} files, {manifest.bytes / GIB:.1f} GiB in {seconds:.0f} s, "
        f"{manifest.bytes / 1e9 / seconds:.2f} GB/s"
    )


def download_and_verify(settings: Settings, manifest: Manifest, board: ProgressBoard) -> None:
    """Fetch what is missing and check every file; bad files are removed and fetched once more."""
    suspects = list(manifest.files)
    for _ in range(VERIFY_ROUNDS):
        download(settings, manifest, board)
        board.begin("verifying", total=sum(file.size for file in suspects), done=0)
        problems = cache_directory.verify(settings.temporary_directory, suspects, board.update)
        if not problems:
            return
        for file, problem in problems.items():
            log(f"{file.path}: {problem}")
            (settings.temporary_directory / file.path).unlink(missing_ok=True)
        suspects = list(problems)
    file, problem = next(iter(problems.items()))
    raise StagingError(
        ExitCode.CHECKSUM_MISMATCH,
        f"{len(problems)} files differ from what the Hub promised, also when fetched again; first "
        f"{file.path}: {problem}. Something between the Hub and this pod (a mirror, a proxy) changes content",
    )


def download(settings: Settings, manifest: Manifest, board: ProgressBoard) -> None:
    """Run the download process; start it again after a stall or an error that may pass.

    After a stall it goes on without Xet, whose transfers are known to hang near the end of large downloads
    (huggingface/xet-core#883, hf-xet 1.5.1); after a network error Xet stays.
    """
    use_xet, restarts = True, 0
    while failure := _download_once(settings, manifest, board, use_xet):
        if failure.code.final or restarts == DOWNLOAD_RESTARTS:
            raise failure
        restarts += 1
        use_xet = use_xet and failure.code == ExitCode.NETWORK
        log(_without_token(f"{failure}; restart {restarts} of {DOWNLOAD_RESTARTS}"))


def _download_once(settings: Settings, manifest: Manifest, board: ProgressBoard, use_xet: bool) -> StagingError | None:
    """Download in a process of its own, since only a process can be ended when a transfer hangs."""
    temporary = settings.temporary_directory
    hub_snapshot.remove_partial_files(temporary)
    seen = cache_directory.measure(temporary)
    seen_at = time.monotonic()
    board.begin("downloading", total=manifest.bytes, done=seen[0])
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=hub_snapshot.download, args=(settings, manifest, use_xet, sender), daemon=True)
    child.start()
    sender.close()  # so that the child's death ends the wait below
    try:
        while not receiver.poll(min(cache_directory.POLL_SECONDS, settings.stall_seconds / 4)):
            now = cache_directory.measure(temporary)
            if now != seen:
                seen, seen_at = now, time.monotonic()
            elif time.monotonic() - seen_at > settings.stall_seconds:
                return StagingError(
                    ExitCode.STALLED,
                    f"the download stalled: no byte for {settings.stall_seconds:g} s at "
                    f"{seen[0] / GIB:.1f} of {manifest.bytes / GIB:.1f} GiB",
                )
            board.update(now[0])
        outcome = receiver.recv()
    except EOFError:
        child.join()
        return StagingError(
            ExitCode.UNEXPECTED,
            f"the download process died with status {child.exitcode} (-9: out of memory?)",
        )
    finally:
        child.kill()
        child.join()
        receiver.close()
    return StagingError(*outcome) if outcome else None


def _without_token(text: str) -> str:
    token = os.environ.get("HF_TOKEN")
    return text.replace(token, "***") if token else text


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    write_termination_message("weight staging was interrupted; run again to go on where it stopped")
    sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
