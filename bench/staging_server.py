"""A Hub on loopback that is as fast as the kernel: every weight file is the same file, sent with sendfile.

Run as `python -m bench.staging_server CONTENT COUNT SHA256`; prints its address and serves until it is killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import BinaryIO
from urllib.parse import urlsplit

REPOSITORY = "bench/weights"
REVISION = "b" * 40


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    content: BinaryIO
    size: int
    names: list[str]
    sha256: str


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_HEAD(self) -> None:
        headers = {"X-Repo-Commit": REVISION, "ETag": f'"{self.server.sha256}"', "Accept-Ranges": "bytes"}
        self._send(200, headers | {"Content-Length": str(self.server.size)})

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == f"/api/models/{REPOSITORY}/revision/{REVISION}":
            self._list()
            return
        if path.rpartition("/")[2] not in self.server.names:  # the client asks for a list of agents too
            self._send(404, {"Content-Length": "0"})
            return
        begin, _, end = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        first, last = int(begin), int(end or self.server.size - 1)
        whole = f"bytes {first}-{last}/{self.server.size}"
        self._send(
            206 if "Range" in self.headers else 200, {"Content-Length": str(last + 1 - first), "Content-Range": whole}
        )
        while first <= last and (
            sent := os.sendfile(self.wfile.fileno(), self.server.content.fileno(), first, last + 1 - first)
        ):
            first += sent

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""

    def _list(self) -> None:
        blob = hashlib.sha1(b"pointer", usedforsecurity=False).hexdigest()
        lfs = {"sha256": self.server.sha256, "size": self.server.size, "pointerSize": 134}
        files = [
            {"rfilename": name, "size": self.server.size, "blobId": blob, "lfs": lfs} for name in self.server.names
        ]
        body = json.dumps({"id": REPOSITORY, "sha": REVISION, "siblings": files}).encode()
        self._send(200, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _send(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def main() -> None:
    """Serve until killed."""
    path, count, sha256 = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    server = _Server(("127.0.0.1", 0), _Handler)
    with open(path, "rb") as server.content:  # noqa: PTH123
        server.size, server.sha256 = os.path.getsize(path), sha256  # noqa: PTH202
        server.names = [f"model-{number:05}.safetensors" for number in range(1, count + 1)]
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
