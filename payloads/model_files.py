"""The files of one commit, whatever they come from: names, sizes and checksums."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from payloads.staging_settings import ExitCode, StagingError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file of the commit: `path` in the repository, `size` in bytes, the checksum that the source keeps."""

    path: str
    size: int
    algorithm: str
    """`sha256` of the content, or `git-sha1` (a git blob's identifier: what the Hub keeps of small files)."""
    checksum: str

    def __post_init__(self) -> None:
        """Refuse a path that leaves the model's directory: the bytes of a bucket or mirror are not trusted.

        Raises:
            StagingError: CHECKSUM_MISMATCH.
        """
        if any(part in ("", ".", "..") for part in self.path.split("/")):
            raise StagingError(ExitCode.CHECKSUM_MISMATCH, f"the source names a file {self.path!r}, which is no path")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All files of one commit, sorted by path."""

    files: tuple[ModelFile, ...]

    @property
    def bytes(self) -> int:
        """Sum of the file sizes."""
        return sum(file.size for file in self.files)

    @property
    def digest(self) -> str:
        """SHA-256 over one line a file: `<algorithm>:<checksum> <size> <path>`."""
        lines = (f"{file.algorithm}:{file.checksum} {file.size} {file.path}\n" for file in self.files)
        return hashlib.sha256("".join(lines).encode()).hexdigest()
