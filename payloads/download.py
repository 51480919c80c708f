"""Brings files of a commit into a directory, verified: download workers, a watchdog over them, and the checks."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from payloads import cache_directory
from payloads.model_files import Manifest, ModelFile
from payloads.reporting import log
from payloads.staging_progress import ProgressBoard, without_token
from payloads.staging_settings import ExitCode, Settings, StagingError
from payloads.verification import Verification
from payloads.workers import run_workers

RESTARTS = 3
VERIFY_ROUNDS = 2
"""A file that is wrong once is fetched again; wrong twice, it is the source that is wrong."""
POLL_SECONDS = 0.5


class Source(Protocol):
    """Where the files come from."""

    def list_files(self, settings: Settings) -> Manifest:
        """Return the files of the commit.

        Raises:
            StagingError: the source refused, does not know the commit, or cannot be reached.
        """

    def split(self, files: Sequence[ModelFile]) -> list[Sequence[ModelFile]]:
        """Divide files among download workers."""

    def download(self, job: DownloadJob, outcome: Connection) -> None:
        """Body of a download worker (`payloads.workers`): give each file its final name once it is whole, and send
        its path then.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadJob:
    """What one download worker does."""

    settings: Settings
    directory: Path
    files: Sequence[ModelFile]
    use_xet: bool


class Fetcher:
    """Fetches files of one source into one directory."""

    def __init__(self, settings: Settings, source: Source, board: ProgressBoard, directory: Path) -> None:
        """`directory` exists; nothing is fetched until `fetch`."""
        self._settings, self._source, self._board, self._directory = settings, source, board, directory
        self._seen = (0, 0)
        self._seen_at = self._measured_at = 0.0

    def fetch(self, files: Sequence[ModelFile]) -> dict[ModelFile, str]:
        """Fetch what is missing and check every file; bad ones are removed and fetched once more.

        Returns the SHA-256 of each file.

        Raises:
            StagingError: with the exit code and the reason.
        """
        found: dict[ModelFile, str] = {}
        left_over = [file for file in files if self._is_there(file)]
        # What an earlier run left behind may be wrong too, and says nothing about the source.
        for _ in range(VERIFY_ROUNDS + bool(left_over)):
            problems = self._round([file for file in files if file not in found], found)
            if not problems:
                return found
            for file, problem in problems.items():
                log(f"{file.path}: {problem}")
                (self._directory / file.path).unlink(missing_ok=True)
        file, problem = next(iter(problems.items()))
        raise StagingError(
            ExitCode.CHECKSUM_MISMATCH,
            f"{len(problems)} files differ from what the source promised, also when fetched again; first "
            f"{file.path}: {problem}. Something between the source and this pod (a mirror, a proxy) changes content",
        )

    def _round(self, files: Sequence[ModelFile], found: dict[ModelFile, str]) -> dict[ModelFile, str]:
        there = [file for file in files if self._is_there(file)]
        with Verification(self._directory) as verification:
            verification.add(there)
            self._download([file for file in files if file not in there], verification)
            self._board.begin("verifying", total=sum(file.size for file in files), done=0)
            checks = verification.result(self._board.update)
        found |= {file: check.sha256 for file, check in checks.items() if not check.problem}
        return {file: check.problem for file, check in checks.items() if check.problem}

    def _is_there(self, file: ModelFile) -> bool:
        path = self._directory / file.path
        return path.is_file() and path.stat().st_size == file.size

    def _download(self, files: Sequence[ModelFile], verification: Verification) -> None:
        """Run the download workers; start them again after a stall or an error that may pass.

        After a stall it goes on without Xet, whose transfers are known to hang near the end of large downloads
        (huggingface/xet-core#883, hf-xet 1.5.1); after a network error Xet stays.
        """
        missing = {file.path: file for file in files}

        def finished(path: str | int) -> None:
            verification.add([missing.pop(str(path))])

        use_xet, restarts = True, 0
        while missing:
            failure = self._run_workers(list(missing.values()), use_xet, finished)
            if failure is None:
                continue
            if failure.code.final or restarts == RESTARTS:
                raise failure
            restarts += 1
            use_xet = use_xet and failure.code == ExitCode.NETWORK
            log(without_token(f"{failure}; restart {restarts} of {RESTARTS}"))

    def _run_workers(
        self, files: Sequence[ModelFile], use_xet: bool, finished: Callable[[str | int], None]
    ) -> StagingError | None:
        cache_directory.remove_partial_files(self._directory)
        self._seen, self._seen_at = cache_directory.measure(self._directory), time.monotonic()
        self._board.begin("downloading", total=self._seen[0] + sum(file.size for file in files), done=self._seen[0])
        bodies = [
            functools.partial(
                self._source.download,
                DownloadJob(settings=self._settings, directory=self._directory, files=part, use_xet=use_xet),
            )
            for part in self._source.split(files)
        ]
        return run_workers(bodies, finished, self._watch, min(POLL_SECONDS, self._settings.stall_seconds / 4))

    def _watch(self) -> StagingError | None:
        """Report progress; return an error when nothing was written for too long."""
        if time.monotonic() - self._measured_at < min(POLL_SECONDS, self._settings.stall_seconds / 4):
            return None  # called after each message too; a large cache is slow to list
        now, self._measured_at = cache_directory.measure(self._directory), time.monotonic()
        self._board.update(now[0])
        if now != self._seen:
            self._seen, self._seen_at = now, time.monotonic()
        elif time.monotonic() - self._seen_at > self._settings.stall_seconds:
            return StagingError(
                ExitCode.STALLED,
                f"the download stalled: no byte for {self._settings.stall_seconds:g} s at "
                f"{now[0] / cache_directory.GIB:.1f} GiB",
            )
        return None
