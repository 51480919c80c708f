"""A loopback HTTP server that speaks as much of the Hugging Face Hub's protocol as the real client asks for.

Large files are answered as the Hub does for Git LFS (redirect to another host, linked size and ETag),
small ones directly. It does NOT speak Xet: it can claim to and then hang, but nothing here shows that Xet
transfers work. TLS and signed addresses are not imitated.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

REPOSITORY = "example/tiny-model"
REVISION = "0123456789abcdef0123456789abcdef01234567"
LARGE = ".safetensors"


class HubServer:
    """One repository with one commit; `faults[path]` says what happens to the next downloads of that file:
    `stall`, `truncate` and `hold` (until `resume`; all in the middle of the body), `corrupt`, or `short` (a whole
    body, too short). `answers[beginning of a path]` are statuses and headers that go out instead.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        """Listen on a free port of the loopback interface."""
        self.files = files
        self.faults: dict[str, Iterator[str]] = {}
        self.answers: dict[str, Iterator[tuple[int, dict[str, str]]]] = {}
        self.pause_seconds = 0.0
        """Between two tenths of a body: makes a download last."""
        self.refusal: tuple[int, dict[str, str]] | None = None
        self.listing_is_open = False
        self.hangs_in_xet = False
        self.requests: list[str] = []
        self.times: list[float] = []
        """When each of them came."""
        self.ranges: list[str] = []
        self.held = threading.Semaphore(0)
        self.resume = threading.Event()
        self.stalled = threading.Event()
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        _Handler.hub = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        """What `HF_ENDPOINT` is set to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def downloads(self, path: str = "") -> list[str]:
        """Return the requests for contents of large files so far, of one file or of all."""
        return [line for line in self.requests if line.startswith("GET /content/") and path in line]

    def __enter__(self) -> HubServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self.resume.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _checksums(content: bytes) -> tuple[str, str]:
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return blob.hexdigest(), hashlib.sha256(content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: HubServer

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""

    def _answer(self, with_body: bool) -> None:
        path = urlsplit(self.path).path
        self.hub.requests.append(f"{self.command} {path}")
        self.hub.times.append(time.monotonic())
        for beginning, answers in self.hub.answers.items():
            if path.startswith(beginning) and (answer := next(answers, None)):
                self._send(*answer)
                return
        api, resolve = f"/api/models/{REPOSITORY}", f"/{REPOSITORY}/resolve/{REVISION}/"
        if path.startswith(resolve) and self.hub.refusal:
            self._send(*self.hub.refusal)
        elif path.startswith(resolve):
            self._resolve(path.removeprefix(resolve), with_body)
        elif path.startswith("/content/"):
            self._content(path.removeprefix("/content/"), with_body)
        elif path.startswith(f"{api}/xet-read-token"):
            self._hang()
        elif not path.startswith(api):
            self._send(404, {"X-Error-Code": "RepoNotFound"})
        elif self.hub.refusal and not self.hub.listing_is_open:
            self._send(*self.hub.refusal)
        elif path == f"{api}/revision/{REVISION}":
            self._json({"id": REPOSITORY, "sha": REVISION, "siblings": [*map(self._sibling, self.hub.files)]})
        else:
            self._send(404, {"X-Error-Code": "RevisionNotFound"})

    def _sibling(self, path: str) -> dict[str, Any]:
        content = self.hub.files[path]
        blob, sha256 = _checksums(content)
        entry: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": blob}
        if path.endswith(LARGE):
            entry["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 134}
        return entry

    def _resolve(self, path: str, with_body: bool) -> None:
        content = self.hub.files[path]
        blob, sha256 = _checksums(content)
        headers = {"X-Repo-Commit": REVISION, "ETag": f'"{blob}"'}
        if path.endswith(LARGE):
            headers |= {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{sha256}"'}
            if self.hub.hangs_in_xet:
                headers |= {
                    "X-Xet-Hash": sha256,
                    "X-Xet-Refresh-Route": f"{self.hub.url}/api/models/{REPOSITORY}/xet-read-token/{REVISION}",
                }
            content_host = self.hub.url.replace("127.0.0.1", "localhost")
            self._send(302, headers | {"Location": f"{content_host}/content/{path}"})
        else:
            self._content(path, with_body, headers)

    def _content(self, path: str, with_body: bool, headers: dict[str, str] | None = None) -> None:
        content = self.hub.files[path]
        headers = {"Accept-Ranges": "bytes", "Content-Length": str(len(content))} | (headers or {})
        if not with_body:
            self._send(200, headers)
            return
        fault = next(self.hub.faults.get(path, iter(())), None)
        if fault == "corrupt":
            content = bytes(byte ^ 1 for byte in content)
        elif fault == "short":
            content = content[: len(content) // 2]
        if "Range" in self.headers:
            self.hub.ranges.append(self.headers["Range"])
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        body = content[start:]
        self._send(206 if start else 200, headers | {"Content-Length": str(len(body))})
        if fault in ("stall", "truncate"):
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            if fault == "stall":
                self._hang()
        elif fault == "hold":
            self.wfile.write(body[: len(body) // 2])
            self.hub.held.release()
            self.hub.resume.wait()
            self.wfile.write(body[len(body) // 2 :])
        else:
            self._write(body)

    def _write(self, body: bytes) -> None:
        step = len(body) // 10 + 1 if self.hub.pause_seconds else len(body) or 1
        for begin in range(0, len(body), step):
            self.wfile.write(body[begin : begin + step])
            self.hub.closing.wait(self.hub.pause_seconds)

    def _hang(self) -> None:
        self.hub.stalled.set()
        self.hub.closing.wait()

    def _json(self, content: object) -> None:
        body = json.dumps(content).encode()
        self._send(200, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _send(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": "0"} | headers).items():
            self.send_header(name, value)
        self.end_headers()
