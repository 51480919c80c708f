"""Size and checksum of files, read while others still arrive: what came last is read from the page cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from payloads.model_files import ModelFile

WORKERS = 8
READ_BYTES = 4 * 1024**2
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Checked:
    """`problem` is what is wrong with a file; `sha256` is of what lies there."""

    problem: str | None
    sha256: str = ""


class Verification:
    """Checks files of one directory, several at a time, and flushes the good ones to disk."""

    def __init__(self, directory: Path) -> None:
        """Nothing is read until `add`."""
        self._directory = directory
        self._pool = ThreadPoolExecutor(WORKERS)
        self._checks: dict[ModelFile, Future[Checked]] = {}
        self._read: dict[ModelFile, int] = {}

    def __enter__(self) -> Verification:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def add(self, files: Iterable[ModelFile]) -> None:
        """Check these files too; a file that was checked before is checked again."""
        for file in files:
            self._read[file] = 0
            self._checks[file] = self._pool.submit(self._check, file)

    def result(self, report: Callable[[int], None]) -> dict[ModelFile, Checked]:
        """Wait for all checks; `report` is called now and then with the bytes read so far."""
        pending = set(self._checks.values())
        while pending:
            _, pending = wait(pending, timeout=POLL_SECONDS)
            report(sum(self._read.values()))
        return {file: check.result() for file, check in self._checks.items()}

    def _check(self, file: ModelFile) -> Checked:
        try:
            stream = (self._directory / file.path).open("rb", buffering=0)
        except FileNotFoundError:
            return Checked("missing")
        with stream:
            size = os.fstat(stream.fileno()).st_size
            if size != file.size:
                return Checked(f"{size} bytes instead of {file.size}")
            content, blob = hashlib.sha256(), hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
            digests = [content] if file.algorithm == "sha256" else [content, blob]
            buffer = memoryview(bytearray(READ_BYTES))
            while count := stream.readinto(buffer):
                for digest in digests:
                    digest.update(buffer[:count])
                self._read[file] += count
            found = digests[-1].hexdigest()
            if found != file.checksum:
                return Checked(f"{file.algorithm} {found} instead of {file.checksum}")
            os.fsync(stream.fileno())
        return Checked(None, content.hexdigest())
