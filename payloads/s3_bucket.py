"""One model under one prefix of a bucket: its objects, its marker, and what S3's errors mean.

The marker `.complete` is the last object to be written. Beside what a directory's marker says it holds `objects`: path,
size and SHA-256 of every file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import boto3
from boto3.exceptions import RetriesExceededError, S3UploadFailedError
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)
from botocore.exceptions import (
    ConnectionError as EndpointError,
)

from payloads.cache_directory import is_full
from payloads.model_files import Manifest, ModelFile
from payloads.staging_settings import COMPLETE_MARKER, ExitCode, S3Location, Settings, StagingError, model_directory

CONNECTIONS = 32
READ_TIMEOUT_SECONDS = 60

_DENIED = {
    "AccessDenied",
    "AllAccessDisabled",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "SignatureDoesNotMatch",
}
_PASSING = {408, 409, 429, 500, 502, 503, 504}

Result = TypeVar("Result")


def http_status(error: ClientError) -> int:
    """Return the status of S3's answer; 0 when there was none."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


class Bucket:
    """The place of one model in S3."""

    def __init__(self, location: S3Location, settings: Settings) -> None:
        """Endpoint, region and credentials come by botocore's ordinary chain; nothing is asked yet.

        Raises:
            StagingError: BAD_CONFIGURATION.
        """
        self.name = location.bucket
        folder = model_directory(settings.repository, settings.revision)
        self.prefix = f"{location.prefix}/{folder}/" if location.prefix else f"{folder}/"
        config = Config(
            max_pool_connections=CONNECTIONS,
            read_timeout=READ_TIMEOUT_SECONDS,
            connect_timeout=10,
            retries={"mode": "standard", "total_max_attempts": 6},
        )
        try:
            self.client: Any = boto3.client("s3", config=config)
        except (BotoCoreError, ValueError) as error:
            raise StagingError(ExitCode.BAD_CONFIGURATION, f"cannot use S3: {error}") from error
        self._settings = settings

    def __str__(self) -> str:
        return f"s3://{self.name}/{self.prefix}"

    def key(self, path: str) -> str:
        """Return the key of a file's object."""
        return self.prefix + path

    def ask(self, call: Callable[..., Result], **arguments: object) -> Result:
        """Call an operation of the client on this bucket.

        Raises:
            StagingError: explained; a missing object is NOT_FOUND.
        """
        try:
            return call(Bucket=self.name, **arguments)
        except Exception as error:
            raise self.explain(error) from error

    def sizes(self) -> dict[str, int]:
        """Return the size of every object under the prefix, by path."""
        try:
            pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=self.prefix)
            return {
                entry["Key"].removeprefix(self.prefix): entry["Size"]
                for page in pages
                for entry in page.get("Contents", ())
            }
        except Exception as error:
            raise self.explain(error) from error

    def read_marker(self) -> tuple[dict[str, Any], Manifest] | None:
        """Return the marker and the manifest in it when all objects are there.

        Raises:
            StagingError: S3 refused, or the marker is of another repository or commit.
        """
        try:
            answer = self.ask(self.client.get_object, Key=self.key(COMPLETE_MARKER))
            marker = json.loads(answer["Body"].read())
            files = tuple(
                ModelFile(path=entry["path"], size=entry["size"], algorithm="sha256", checksum=entry["sha256"])
                for entry in marker["objects"]
            )
            named = (marker["repository"], marker["revision"])
        except StagingError as error:
            if error.code == ExitCode.NOT_FOUND and isinstance(error.__cause__, self.client.exceptions.NoSuchKey):
                return None
            raise
        except (ValueError, KeyError, TypeError):
            return None
        if named != (self._settings.repository, self._settings.revision):
            raise StagingError(
                ExitCode.BAD_CONFIGURATION,
                f"{self} holds {named[0]}@{named[1]}, not {self._settings.repository}@{self._settings.revision}",
            )
        sizes = self.sizes()
        whole = all(sizes.get(file.path) == file.size for file in files)
        return (marker, Manifest(files=files)) if whole else None

    def explain(self, error: Exception) -> StagingError:
        """Turn what boto3 raised into an exit code and a sentence that says what to do."""
        if isinstance(error, RetriesExceededError) and isinstance(error.last_exception, Exception):
            error = error.last_exception
        if isinstance(error, S3UploadFailedError) and isinstance(error.__context__, Exception):
            error = error.__context__  # boto3 repeats the reason as text only
        if isinstance(error, StagingError):
            return error
        if isinstance(error, ClientError):
            return self._explain_answer(error)
        if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError):
            help_ = "give the pod's service account a Pod Identity association"
            return StagingError(ExitCode.ACCESS_DENIED, f"no AWS credentials for {self} ({error}): {help_}")
        if isinstance(error, NoRegionError):
            return StagingError(ExitCode.BAD_CONFIGURATION, f"no region for {self}: set AWS_REGION")
        if is_full(error):
            return StagingError(ExitCode.NO_SPACE, str(error))
        if isinstance(error, HTTPClientError | EndpointError | IncompleteReadError | ConnectionError | TimeoutError):
            return StagingError(ExitCode.NETWORK, f"could not reach {self}: {type(error).__name__}: {error}")
        return StagingError(ExitCode.UNEXPECTED, f"{self}: {type(error).__name__}: {error}")

    def _explain_answer(self, error: ClientError) -> StagingError:
        code = error.response.get("Error", {}).get("Code", "")
        status = http_status(error)
        if code == "NoSuchBucket":
            return StagingError(ExitCode.NOT_FOUND, f"bucket {self.name} does not exist")
        if status == 404:
            return StagingError(ExitCode.NOT_FOUND, f"{self} lacks an object: {error}")
        if code in _DENIED or status in (401, 403):
            help_ = "check the policy of the pod's role and of the bucket"
            return StagingError(ExitCode.ACCESS_DENIED, f"S3 refused access to {self} ({error}): {help_}")
        if status in _PASSING or code == "SlowDown":
            return StagingError(ExitCode.NETWORK, f"{self}: {error}")
        return StagingError(ExitCode.UNEXPECTED, f"{self}: {error}")
