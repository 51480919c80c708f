"""A loopback HTTP proxy before the S3 server that does to chosen requests what networks and services do."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

HOP_HEADERS = {"connection", "transfer-encoding", "content-length", "date", "server"}


class FaultyProxy:
    """`faults[method, path ending]` says what happens to the next such requests: a status in digits, `corrupt` (the
    body's bytes), `truncate`, `stall` or `hold` (until `resume`; all in the middle of the body), or `pass`.
    """

    def __init__(self, upstream: str) -> None:
        """Listen on a free port of the loopback interface."""
        self.upstream = urlsplit(upstream).netloc
        self.faults: dict[tuple[str, str], Iterator[str]] = {}
        self.requests: list[tuple[str, str, str]] = []
        """Method, path and Range header of each request."""
        self.checksummed: list[str] = []
        """Path of each request whose body came with a SHA-256 for the server to check."""
        self.held = threading.Semaphore(0)
        self.resume = threading.Event()
        self.stalled = threading.Event()
        self.closing = threading.Event()
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        """What AWS_ENDPOINT_URL_S3 is set to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def fault(self, method: str, path: str) -> str:
        """Return what happens to this request."""
        for (wanted, ending), faults in self.faults.items():
            if method == wanted and path.endswith(ending):
                return next(faults, "pass")
        return "pass"

    def __enter__(self) -> FaultyProxy:
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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: FaultyProxy

    def do_GET(self) -> None:
        self._forward()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815  the base class looks these names up

    def handle_expect_100(self) -> bool:
        self.send_response_only(100)
        self.end_headers()
        return True

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""

    def _forward(self) -> None:
        path = urlsplit(self.path).path
        self.owner.requests.append((self.command, path, self.headers.get("Range", "")))
        if "x-amz-checksum-sha256" in (*map(str.lower, self.headers), self.headers.get("x-amz-trailer")):
            self.owner.checksummed.append(path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.owner.fault(self.command, path)
        if fault.isdecimal():
            self._answer(int(fault), {}, b"")
            return
        connection = http.client.HTTPConnection(self.owner.upstream, timeout=30)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
        connection.request(self.command, self.path, body=body, headers=headers)
        response = connection.getresponse()
        content = response.read()
        kept = {name: value for name, value in response.getheaders() if name.lower() not in HOP_HEADERS}
        if self.command == "HEAD":
            kept["Content-Length"] = response.headers.get("Content-Length", "0")
        connection.close()
        if fault == "corrupt":
            content = bytes(byte ^ 1 for byte in content)
        self._answer(response.status, kept, content, fault)

    def _answer(self, status: int, headers: dict[str, str], content: bytes, fault: str = "pass") -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault == "hold":
            self.wfile.write(content[: len(content) // 2])
            self.owner.held.release()
            self.owner.resume.wait()
            self.wfile.write(content[len(content) // 2 :])
        elif fault in ("stall", "truncate"):
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            if fault == "stall":
                self.owner.stalled.set()
                self.owner.closing.wait()
        else:
            self.wfile.write(content)
