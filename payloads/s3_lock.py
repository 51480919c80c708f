"""The claim of the one writer to a prefix: an object that is made, renewed and taken over by conditional writes."""

from __future__ import annotations

import contextlib
import json
import socket
import uuid
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from payloads.s3_bucket import Bucket
from payloads.staging_progress import log
from payloads.staging_settings import Settings
from payloads.writer_lock import Unchanged, lost

LOCK = ".writer"
_TAKEN = {404, 409, 412}
"""Gone, written by somebody at the same moment, or another's."""


class BucketClaim:
    """See `payloads.writer_lock.Claim`. S3 itself decides between two writers, so a takeover has one winner."""

    def __init__(self, bucket: Bucket, settings: Settings) -> None:
        """Claim the staging of this revision under this prefix."""
        self._bucket, self._settings = bucket, settings
        self._owner = f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
        self._unchanged = Unchanged(settings.lock_seconds)
        self._beat = 0
        self._etag = ""

    def take(self) -> bool:
        """See `Claim.take`."""
        if self._put(IfNoneMatch="*"):
            return True
        etag = self._current()
        if etag is None or not self._unchanged.is_stale(LOCK, etag):
            return False
        log(f"the writer of {self._bucket} gave no sign of life for {self._settings.lock_seconds:g} s: taken over")
        return self._put(IfMatch=etag)

    def renew(self) -> None:
        """See `Claim.renew`."""
        try:
            if not self._put(IfMatch=self._etag):
                raise lost(self._bucket)
        except (BotoCoreError, ClientError) as error:
            raise OSError(str(error)) from error

    def release(self) -> None:
        """See `Claim.release`."""
        with contextlib.suppress(BotoCoreError, ClientError):
            if self._current() == self._etag:
                self._bucket.client.delete_object(Bucket=self._bucket.name, Key=self._bucket.key(LOCK))

    def _put(self, **condition: str) -> bool:
        """Write the object if the condition holds; say whether it did."""
        self._beat += 1
        body = json.dumps({"writer": self._owner, "beat": self._beat}).encode()
        try:
            answer: dict[str, Any] = self._bucket.client.put_object(
                Bucket=self._bucket.name, Key=self._bucket.key(LOCK), Body=body, **condition
            )
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in _TAKEN:
                return False
            raise
        self._etag = answer["ETag"]
        return True

    def _current(self) -> str | None:
        try:
            answer: dict[str, str] = self._bucket.client.head_object(
                Bucket=self._bucket.name, Key=self._bucket.key(LOCK)
            )
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                return None
            raise
        return answer["ETag"]
