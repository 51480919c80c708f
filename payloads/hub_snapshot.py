"""The Hugging Face Hub as staging sees it: which files a commit holds, and fetching them.

`huggingface_hub` is imported inside functions only: it reads its environment variables once, at import, and
the download process has to set some before.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path

from payloads.staging_settings import ExitCode, Settings, StagingError

LISTING_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """One file of the commit: `path` in the repository, `size` in bytes, the checksum that the Hub keeps."""

    path: str
    size: int
    algorithm: str
    """`sha256` of the content for large files, `git-sha1` (a git blob's identifier) for the others."""
    checksum: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All files of one commit, sorted by path."""

    files: tuple[HubFile, ...]

    @property
    def bytes(self) -> int:
        """Sum of the file sizes."""
        return sum(file.size for file in self.files)

    @property
    def digest(self) -> str:
        """SHA-256 over one line a file: `<algorithm>:<checksum> <size> <path>`."""
        lines = (f"{file.algorithm}:{file.checksum} {file.size} {file.path}\n" for file in self.files)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def list_files(settings: Settings) -> Manifest:
    """Ask the Hub which files the commit holds.

    Raises:
        StagingError: the Hub refused, does not know the commit, or cannot be reached.
    """
    from huggingface_hub import HfApi

    try:
        info = HfApi(token=settings.token or False).model_info(
            settings.repository,
            revision=settings.revision,
            files_metadata=True,
            timeout=LISTING_TIMEOUT_SECONDS,
        )
    except Exception as error:
        raise explain(error, settings) from error
    files = []
    for entry in info.siblings or ():
        if entry.size is None or entry.blob_id is None:
            raise StagingError(ExitCode.NETWORK, f"the Hub gave no size or checksum for {entry.rfilename}")
        files.append(
            HubFile(
                path=entry.rfilename,
                size=entry.size,
                algorithm="sha256" if entry.lfs else "git-sha1",
                checksum=entry.lfs.sha256 if entry.lfs else entry.blob_id,
            )
        )
    if not files:
        raise StagingError(ExitCode.NOT_FOUND, f"{_what(settings)} holds no file")
    return Manifest(files=tuple(sorted(files, key=lambda file: file.path)))


def download(settings: Settings, manifest: Manifest, use_xet: bool, outcome: Connection) -> None:
    """Body of the download process: fetch the commit into the temporary directory, then send the outcome:
    None, or the StagingError's code and message. Files that an earlier run finished are kept.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    if not use_xet:
        os.environ["HF_HUB_DISABLE_XET"] = "1"
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(
            settings.repository,
            revision=settings.revision,
            local_dir=settings.temporary_directory,
            token=settings.token or False,
        )
    except Exception as error:
        failure = explain(error, settings)
        outcome.send((failure.code, str(failure)))
        return
    # When the Hub fails to list the commit, the client is content with whatever the directory holds.
    missing = [file.path for file in manifest.files if not (settings.temporary_directory / file.path).is_file()]
    if missing:
        reason = f"the Hub client left out {len(missing)} of {len(manifest.files)} files, first {missing[0]}"
        outcome.send((ExitCode.NETWORK, reason))
    else:
        outcome.send(None)


def remove_partial_files(local_dir: Path) -> None:
    """Remove what an ended download process left half written: the client never resumes such a file."""
    for partial in local_dir.glob(".cache/huggingface/download/**/*.incomplete"):
        partial.unlink()


def explain(error: Exception, settings: Settings) -> StagingError:
    """Turn what the Hub client raised into an exit code and a sentence that says what to do."""
    import httpx2
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RevisionNotFoundError,
    )

    if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    what = _what(settings)
    if isinstance(error, RevisionNotFoundError):
        return StagingError(
            ExitCode.NOT_FOUND,
            f"{what} does not exist: no such commit in that repository; check the revision",
        )
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
    if isinstance(error, GatedRepoError) or status in (401, 403):
        return StagingError(ExitCode.ACCESS_DENIED, f"{what}: {_access_help(settings)} (HTTP {status})")
    if status == 404:
        return StagingError(ExitCode.NOT_FOUND, f"{what} does not exist: no such repository or file; check the name")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StagingError(ExitCode.NO_SPACE, f"the cache became full while fetching {what}: {error}")
    passing = status is None or status >= 500 or status in (408, 429)
    # The client reports a body of the wrong length as an OSError without a number.
    if passing and (isinstance(error, httpx2.HTTPError) or (isinstance(error, OSError) and error.errno is None)):
        return StagingError(ExitCode.NETWORK, f"could not fetch {what}: {type(error).__name__}: {error}")
    return StagingError(ExitCode.UNEXPECTED, f"fetching {what} failed: {type(error).__name__}: {error}")


def _access_help(settings: Settings) -> str:
    page = f"https://huggingface.co/{settings.repository}"
    if not settings.token:
        return (
            "the Hub refused access without a token. If the name is right, the model is gated or private: "
            f"accept its terms at {page}, make a read token at https://huggingface.co/settings/tokens, "
            "and give it to the stack with `pulumi config set --secret huggingFaceToken`"
        )
    return (
        f"the Hub refused the given token. Accept the model's terms at {page} with the account that the "
        "token belongs to (approval can take days), and check that the token is valid and may read gated "
        "repositories; `pulumi config set --secret huggingFaceToken` replaces it"
    )


def _what(settings: Settings) -> str:
    return f"{settings.repository}@{settings.revision[:12]}"


def _end_with_parent() -> None:
    """A download that outlives the staging process would write beside the next one."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(ExitCode.INTERRUPTED)
