"""The claim of the one writer to a prefix: an object that is made, renewed and taken over by conditional writes."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import uuid
from typing import Any

from botocore.exceptions import ClientError

from payloads.reporting import log
from payloads.s3_bucket import Bucket, http_status
from payloads.staging_settings import ExitCode, Settings, StagingError
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
        self._renewing = threading.Lock()

    def take(self) -> bool:
        """See `Claim.take`."""
        if self._put(IfNoneMatch="*"):
            return True
        current = self._head()
        if current is None or not self._unchanged.is_stale(LOCK, current["ETag"]):
            return False
        log(f"the writer of {self._bucket} gave no sign of life for {self._settings.lock_seconds:g} s: taken over")
        return self._put(IfMatch=current["ETag"])

    def renew(self) -> None:
        """See `Claim.renew`."""
        try:
            with self._renewing:  # each renewal follows from the one before
                kept = self._put(IfMatch=self._etag)
        except StagingError as error:
            raise OSError(str(error)) from error
        if not kept:
            raise lost(self._bucket)

    def release(self) -> None:
        """See `Claim.release`."""
        with contextlib.suppress(StagingError):
            current = self._head()
            if current is not None and current["ETag"] == self._etag:
                self._bucket.ask(self._bucket.client.delete_object, Key=self._bucket.key(LOCK))

    def _put(self, **condition: str) -> bool:
        """Write the object if the condition holds; say whether it is this writer's then."""
        self._beat += 1
        sign = {"writer": self._owner, "beat": str(self._beat)}
        try:
            answer: Any = self._bucket.client.put_object(
                Bucket=self._bucket.name,
                Key=self._bucket.key(LOCK),
                Body=json.dumps(sign).encode(),  # the ETag follows the body
                Metadata=sign,
                **condition,
            )
        except Exception as error:
            if not isinstance(error, ClientError) or http_status(error) not in _TAKEN:
                raise self._bucket.explain(error) from error
            # A write whose answer was lost fails when botocore repeats it, and yet it is this writer's.
            answer = self._head()
            if answer is None or answer["Metadata"] != sign:
                return False
        self._etag = answer["ETag"]
        return True

    def _head(self) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = self._bucket.ask(self._bucket.client.head_object, Key=self._bucket.key(LOCK))
        except StagingError as error:
            if error.code == ExitCode.NOT_FOUND:
                return None
            raise
        return answer
