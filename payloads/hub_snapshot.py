"""The Hugging Face Hub as staging sees it: which files a commit holds, and fetching them.

`huggingface_hub` is imported inside functions only: it reads its environment variables once, at import, and
the download process has to set some before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection

from payloads.cache_directory import is_full
from payloads.download import DownloadJob
from payloads.model_files import Manifest, ModelFile
from payloads.staging_settings import ExitCode, Settings, StagingError
from payloads.workers import outcome_of

LISTING_TIMEOUT_SECONDS = 30.0
LONGEST_RETRY_AFTER_SECONDS = 600.0
"""The Hub counts requests in windows of 300 s; nothing else is believed."""
WORKERS = 8
"""Files at once, as many as the Hub client's own `snapshot_download` takes."""


class Hub:
    """The Hub as a source of downloads; the endpoint is the client's HF_ENDPOINT."""

    def list_files(self, settings: Settings) -> Manifest:
        """See `download.Source.list_files`."""
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
                ModelFile(
                    path=entry.rfilename,
                    size=entry.size,
                    algorithm="sha256" if entry.lfs else "git-sha1",
                    checksum=entry.lfs.sha256 if entry.lfs else entry.blob_id,
                )
            )
        if not files:
            raise StagingError(ExitCode.NOT_FOUND, f"{_what(settings)} holds no file")
        return Manifest(files=tuple(sorted(files, key=lambda file: file.path)))

    def split(self, files: Sequence[ModelFile]) -> list[Sequence[ModelFile]]:
        """One process: Xet alone takes 7 cores and 6.6 GB (unslothai/unsloth-zoo#972)."""
        return [files]

    def download(self, job: DownloadJob, outcome: Connection) -> None:
        """See `download.Source.download`."""
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        if not job.use_xet:
            os.environ["HF_HUB_DISABLE_XET"] = "1"
        from huggingface_hub import hf_hub_download

        def fetch(file: ModelFile) -> str:
            hf_hub_download(
                job.settings.repository,
                file.path,
                revision=job.settings.revision,
                local_dir=job.directory,
                token=job.settings.token or False,
            )
            return file.path

        with ThreadPoolExecutor(WORKERS) as pool:
            try:
                for done in as_completed([pool.submit(fetch, file) for file in job.files]):
                    outcome.send(done.result())
            except Exception as error:
                outcome.send(outcome_of(explain(error, job.settings)))
                return  # the parent ends this process, whatever its threads still do
        outcome.send(None)


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
    # hf-xet, written in Rust, hands the operating system's error on as text.
    if is_full(error) or "os error 28" in str(error):
        return StagingError(ExitCode.NO_SPACE, str(error))
    passing = status is None or status >= 500 or status in (408, 429)
    # The client reports a body of the wrong length as an OSError without a number.
    if passing and (isinstance(error, httpx2.HTTPError) or (isinstance(error, OSError) and error.errno is None)):
        reason = f"could not fetch {what}: {type(error).__name__}: {error}"
        return StagingError(ExitCode.NETWORK, reason, _retry_after(error))
    return StagingError(ExitCode.UNEXPECTED, f"fetching {what} failed: {type(error).__name__}: {error}")


def _retry_after(error: Exception) -> float:
    """Return the seconds that the answer asks to wait; the client itself waits where it tries again by itself."""
    from huggingface_hub.errors import HfHubHTTPError

    value = error.response.headers.get("Retry-After", "") if isinstance(error, HfHubHTTPError) else ""
    return min(float(value), LONGEST_RETRY_AFTER_SECONDS) if value.isdecimal() else 0


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
