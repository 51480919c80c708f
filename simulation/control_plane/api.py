"""A plain JSON client of the Kubernetes API with a client certificate. It knows HTTP, not what objects mean.

One HTTPS connection an instance, so that a hundred requests cost milliseconds each and not a `kubectl`
process each. An instance must not be shared between threads.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

Json = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
FIELD_MANAGER = "simulation"
TIMEOUT_SECONDS = 30
BUSY_SECONDS = 30
RETRY_SECONDS = 0.2


class ApiError(RuntimeError):
    """The API server refused a request; `status` is its HTTP status."""

    def __init__(self, status: int, method: str, path: str, message: str) -> None:
        super().__init__(f"{method} {path}: {status} {message}")
        self.status = status


class Api:
    """Requests to one API server on 127.0.0.1 as the holder of a client certificate."""

    def __init__(self, port: int, certificates: Path, identity: str = "admin") -> None:
        context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        context.load_cert_chain(certificates / f"{identity}.crt", certificates / f"{identity}.key")
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=TIMEOUT_SECONDS)

    def get(self, path: str, accept: str = "application/json") -> Json:
        """The object or list at `path`.

        Raises ApiError (status 404 if there is none), OSError if unreachable.
        """
        return self._request("GET", path, headers={"Accept": accept})

    def items(self, path: str, **query: str) -> list[Json]:
        """The objects of the list at `path`, narrowed by `labelSelector` or `fieldSelector`."""
        found: list[Json] = self.get(f"{path}?{urlencode(query)}")["items"]
        return found

    def create(self, path: str, body: Json) -> Json:
        """Creates `body` in the collection `path`. Raises ApiError, status 409 if the name is taken."""
        return self._request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def patch(self, path: str, body: Json, *, impersonate: str = "") -> Json:
        """Merges `body` into the object, as the user `impersonate` where one is named."""
        headers = {"Content-Type": MERGE_PATCH}
        if impersonate:
            headers["Impersonate-User"] = impersonate
        return self._request("PATCH", path, json.dumps(body).encode(), headers)

    def apply(self, path: str, body: Json | bytes) -> Json:
        """Creates the object or makes it as `body` says (server-side apply); bytes are one YAML document."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        query = urlencode({"fieldManager": FIELD_MANAGER, "force": "true"})
        return self._request("PATCH", f"{path}?{query}", data, {"Content-Type": APPLY_PATCH})

    def delete(self, path: str, **options: object) -> None:
        """Deletes the object with the given DeleteOptions; one that is already gone is no error."""
        try:
            self._request("DELETE", path, json.dumps(options).encode(), {"Content-Type": "application/json"})
        except ApiError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise

    def is_ready(self) -> bool:
        """Whether the server answers its own readiness check."""
        try:
            return self._send("GET", "/readyz", None, {})[0] == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False

    def _request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Json:
        status, data = self._send(method, path, body, headers or {})
        deadline = time.monotonic() + BUSY_SECONDS
        # 429 asks to come again: so it answers for a new kind of resource whose cache is being filled.
        while status == http.HTTPStatus.TOO_MANY_REQUESTS and time.monotonic() < deadline:
            time.sleep(RETRY_SECONDS)
            status, data = self._send(method, path, body, headers or {})
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise ApiError(status, method, path, _message(data))
        answer: Json = json.loads(data)
        return answer

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        try:
            self._connection.request(method, path, body, dict(headers))
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            # A half-answered connection cannot be used again; the next request opens a new one.
            self._connection.close()
            raise


def _message(data: bytes) -> str:
    try:
        return str(json.loads(data).get("message", ""))
    except ValueError:
        return data.decode(errors="replace").strip()
