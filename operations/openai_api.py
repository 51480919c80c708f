"""The part of the OpenAI API that the smoke test speaks: standard library only, errors that say what to look at."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DONE = "[DONE]"


class ApiError(Exception):
    """What went wrong. `status`: the HTTP status, 0 where there was no answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Api:
    """`url` without a slash at its end, the key that is sent, seconds for one answer."""

    url: str
    key: str
    timeout: float

    def get(self, path: str) -> Any:  # noqa: ANN401 (JSON)
        """The answer's JSON, None where it is empty. Raises ApiError."""
        return self._answer(path, None)

    def post(self, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 (JSON)
        """The same for a request with a body."""
        return self._answer(path, body)

    def stream(self, path: str, body: Mapping[str, object]) -> Iterator[Any]:
        """The pieces of a streamed answer, as they come. Raises ApiError, also where it ends without its last line."""
        try:
            with self._open(path, body) as response:
                for line in response:
                    text = line.decode().removeprefix("data:").strip()
                    if text == DONE:
                        return
                    if text:
                        yield json.loads(text)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ApiError(f"the stream broke: {error}", 0) from error
        raise ApiError("the stream ended without its last line", 200)

    def _answer(self, path: str, body: Mapping[str, object] | None) -> Any:  # noqa: ANN401 (JSON)
        try:
            with self._open(path, body) as response:
                text = response.read()
            return json.loads(text) if text else None
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(f"no answer from {self.url}{path}: {error}", 0) from error
        except ValueError as error:
            raise ApiError(f"{path} did not answer with JSON", 200) from error

    def _open(self, path: str, body: Mapping[str, object] | None) -> Any:  # noqa: ANN401 (urllib's response)
        request = urllib.request.Request(  # noqa: S310 (main allows http and https only)
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        try:
            return urllib.request.urlopen(request, timeout=self.timeout)  # noqa: S310
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(300).decode(errors="replace")
            hint = "; is VLLM_API_KEY set to the stack's key?" if error.code == 401 else ""
            raise ApiError(f"HTTP {error.code} from {path}: {said}{hint}", error.code) from error
