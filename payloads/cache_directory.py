"""The weight cache on disk: free space, checksums, and the order of steps that makes a model appear whole
or not at all. Knows nothing of the Hub but the manifest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from payloads.hub_snapshot import HubFile, Manifest
from payloads.staging_settings import COMPLETE_MARKER, ExitCode, Settings, StagingError

GIB = 1024**3
SPACE_MARGIN_BYTES = GIB
"""Left free on top of the weights, for the file system's own needs and what readers put beside them."""
VERIFY_WORKERS = 8
READ_BYTES = 4 * 1024**2
POLL_SECONDS = 0.5


def read_marker(settings: Settings) -> dict[str, Any] | None:
    """Return the marker when it names this repository and commit and the directory still holds its bytes."""
    try:
        marker = json.loads((settings.final_directory / COMPLETE_MARKER).read_text())
        stored = sum(
            path.stat().st_size for path in settings.final_directory.rglob("*") if path.name != COMPLETE_MARKER
        )
        whole = (
            marker["repository"] == settings.repository
            and marker["revision"] == settings.revision
            and marker["bytes"] <= stored
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return marker if whole else None


def open_temporary_directory(settings: Settings) -> None:
    """Make the temporary directory; a final one without a valid marker becomes it again, to be verified anew.

    Raises:
        StagingError: BAD_CONFIGURATION when the cache is not there or may not be written.
    """
    final, temporary = settings.final_directory, settings.temporary_directory
    try:
        if final.exists():
            (final / COMPLETE_MARKER).unlink(missing_ok=True)
            shutil.rmtree(temporary, ignore_errors=True)
            final.rename(temporary)
        temporary.mkdir(exist_ok=True)
    except (PermissionError, FileNotFoundError, NotADirectoryError) as error:
        raise StagingError(
            ExitCode.BAD_CONFIGURATION,
            f"cannot write to STAGE_DIRECTORY={settings.directory} ({error.strerror}): "
            "is the cache mounted there, read-write, and writable for this user?",
        ) from error


def require_space(settings: Settings, manifest: Manifest) -> None:
    """Refuse to start a download that the file system cannot hold.

    Raises:
        StagingError: NO_SPACE, with GiB needed and there.
    """
    present, _ = measure(settings.temporary_directory)
    needed = max(manifest.bytes, settings.expected_bytes) - present + SPACE_MARGIN_BYTES
    free = shutil.disk_usage(settings.directory).free
    if free < needed:
        raise StagingError(
            ExitCode.NO_SPACE,
            f"not enough space in {settings.directory}: {needed / GIB:.1f} GiB needed "
            f"({present / GIB:.1f} GiB are there already), {free / GIB:.1f} GiB free. "
            "Enlarge the cache or remove models that are no longer served from it",
        )


def measure(temporary: Path) -> tuple[int, int]:
    """Return bytes written so far, and the sum of the file sizes, of finished and of half-written files.

    Both together tell a stalled download: a file written front to back grows, one written in pieces over its
    full length gains blocks.
    """
    written = apparent = 0
    for folder, _, names in os.walk(temporary):
        bookkeeping = Path(folder).relative_to(temporary).parts[:1] == (".cache",)
        for name in names:
            partial = name.endswith(".incomplete")
            if bookkeeping and not partial:
                continue
            with contextlib.suppress(FileNotFoundError):  # renamed since it was listed
                status = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118
                apparent += status.st_size
                written += min(status.st_size, status.st_blocks * 512) if partial else status.st_size
    return written, apparent


def verify(temporary: Path, files: Sequence[HubFile], report: Callable[[int], None]) -> dict[HubFile, str]:
    """Check size and checksum of files, several at a time, and flush the good ones to disk.

    `report` is called now and then with the bytes read so far. Returns what is wrong with each bad file.
    """
    read = dict.fromkeys(files, 0)
    with ThreadPoolExecutor(VERIFY_WORKERS) as pool:
        checks = {file: pool.submit(_check, temporary, file, read) for file in files}
        pending = set(checks.values())
        while pending:
            _, pending = wait(pending, timeout=POLL_SECONDS)
            report(sum(read.values()))
    return {file: problem for file, check in checks.items() if (problem := check.result())}


def _check(temporary: Path, file: HubFile, read: dict[HubFile, int]) -> str | None:
    try:
        stream = (temporary / file.path).open("rb", buffering=0)
    except FileNotFoundError:
        return "missing"
    with stream:
        size = os.fstat(stream.fileno()).st_size
        if size != file.size:
            return f"{size} bytes instead of {file.size}"
        if file.algorithm == "sha256":
            digest = hashlib.sha256()
        else:
            digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        buffer = memoryview(bytearray(READ_BYTES))
        while count := stream.readinto(buffer):
            digest.update(buffer[:count])
            read[file] += count
        if digest.hexdigest() != file.checksum:
            return f"{file.algorithm} {digest.hexdigest()} instead of {file.checksum}"
        os.fsync(stream.fileno())
    return None


def publish(settings: Settings, manifest: Manifest) -> None:
    """Turn the verified temporary directory into the final one; the marker comes last."""
    final, temporary = settings.final_directory, settings.temporary_directory
    shutil.rmtree(temporary / ".cache", ignore_errors=True)
    for folder, _, _ in os.walk(temporary, topdown=False):
        _flush_directory(Path(folder))
    temporary.rename(final)
    _flush_directory(settings.directory)
    marker = {
        "repository": settings.repository,
        "revision": settings.revision,
        "files": len(manifest.files),
        "bytes": manifest.bytes,
        "manifest_sha256": manifest.digest,
    }
    draft = final / f"{COMPLETE_MARKER}.draft"
    with draft.open("w") as stream:
        json.dump(marker, stream, indent=2, sort_keys=True)
        stream.flush()
        os.fsync(stream.fileno())
    draft.rename(final / COMPLETE_MARKER)
    _flush_directory(final)


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
