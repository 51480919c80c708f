"""The weight cache on disk: free space, and the order of steps that makes a model appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from payloads.model_files import Manifest, ModelFile
from payloads.staging_settings import COMPLETE_MARKER, ExitCode, Settings, StagingError

GIB = 1024**3
SPACE_MARGIN_BYTES = GIB
"""Left free on top of the weights, for the file system's own needs and what readers put beside them."""


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
    """Make the temporary directory; a final one without a valid marker becomes it again, to be verified anew."""
    final, temporary = settings.final_directory, settings.temporary_directory
    if final.exists():
        (final / COMPLETE_MARKER).unlink(missing_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        final.rename(temporary)
    temporary.mkdir(exist_ok=True)


def require_space(settings: Settings, directory: Path, wanted: int) -> None:
    """Refuse to start a download of `wanted` bytes into `directory` that the file system cannot hold.

    Raises:
        StagingError: NO_SPACE, with GiB needed and there.
    """
    present, _ = measure(directory)
    needed = wanted - present + SPACE_MARGIN_BYTES
    free = shutil.disk_usage(settings.directory).free
    if free < needed:
        raise StagingError(
            ExitCode.NO_SPACE,
            f"not enough space in {settings.directory}: {needed / GIB:.1f} GiB needed "
            f"({present / GIB:.1f} GiB are there already), {free / GIB:.1f} GiB free. {_MAKE_ROOM}",
        )


def became_full(settings: Settings, wanted: int, reason: object) -> StagingError:
    """Return the error of a file system that was filled while `wanted` bytes were gathered."""
    present, _ = measure(settings.temporary_directory)
    return StagingError(
        ExitCode.NO_SPACE,
        f"{settings.directory} became full: {wanted / GIB:.3f} GiB needed in all, {present / GIB:.3f} GiB are there, "
        f"{shutil.disk_usage(settings.directory).free / GIB:.3f} GiB free ({reason}). Something else fills it, or "
        f"a quota holds. {_MAKE_ROOM}",
    )


def is_full(error: BaseException) -> bool:
    """Say whether the file system, or its quota, ended the operation."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


_MAKE_ROOM = "Enlarge it or remove models that are no longer served from it"


def measure(directory: Path) -> tuple[int, int]:
    """Return bytes written so far, and the sum of the file sizes, of finished and of half-written files.

    Both together tell a stalled download: a file written front to back grows, one written in pieces over its
    full length gains blocks.
    """
    written = apparent = 0
    for folder, _, names in os.walk(directory):
        bookkeeping = Path(folder).relative_to(directory).parts[:1] == (".cache",)
        for name in names:
            partial = ".incomplete" in name
            if bookkeeping and not partial:
                continue
            with contextlib.suppress(FileNotFoundError):  # renamed since it was listed
                status = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118
                apparent += status.st_size
                written += min(status.st_size, status.st_blocks * 512) if partial else status.st_size
    return written, apparent


def remove_partial_files(directory: Path) -> None:
    """Remove what ended download workers left half written, which nothing ever resumes, and the Hub client's locks,
    which a suspended worker of a writer that was taken over may hold.
    """
    for folder in ("huggingface", "s3"):
        shutil.rmtree(directory / ".cache" / folder, ignore_errors=True)


def publish(settings: Settings, manifest: Manifest) -> None:
    """Turn the verified temporary directory into the final one; the marker comes last."""
    final, temporary = settings.final_directory, settings.temporary_directory
    shutil.rmtree(temporary / ".cache", ignore_errors=True)
    _remove_strangers(temporary, manifest.files)
    for folder, _, _ in os.walk(temporary, topdown=False):
        _flush_directory(Path(folder))
    temporary.rename(final)
    _flush_directory(settings.directory)
    draft = final / f"{COMPLETE_MARKER}.draft"
    with draft.open("w") as stream:
        json.dump(marker_content(settings, manifest), stream, indent=2, sort_keys=True)
        stream.flush()
        os.fsync(stream.fileno())
    draft.rename(final / COMPLETE_MARKER)
    _flush_directory(final)


def marker_content(settings: Settings, manifest: Manifest) -> dict[str, object]:
    """Return what a marker says of the model."""
    return {
        "repository": settings.repository,
        "revision": settings.revision,
        "files": len(manifest.files),
        "bytes": manifest.bytes,
        "manifest_sha256": manifest.digest,
    }


def _remove_strangers(temporary: Path, files: Iterable[ModelFile]) -> None:
    """Remove files that are not the model's: vLLM loads every shard that it finds."""
    own = {temporary / file.path for file in files}
    for path in temporary.rglob("*"):
        if path not in own and not path.is_dir():
            path.unlink()


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
