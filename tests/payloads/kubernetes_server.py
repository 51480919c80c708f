"""A loopback HTTPS server in the place of the Kubernetes API, with a service account's files.

It keeps every request and answers each with one status. It does NOT check authorisation, merge patches or
keep objects: that a service account may patch the ConfigMap is for a real API server to show.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ACCOUNT_TOKEN = "service-account-token"


@dataclass(slots=True, kw_only=True)
class KubernetesServer:
    """Address, service account folder, the patches that came in: (path, headers, body), and the paths asked for."""

    port: int
    account: Path
    status: int = 200
    patches: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    """What GET answers, one after the other; the last one stays."""

    gets: list[str] = field(default_factory=list)


@contextmanager
def kubernetes_server(folder: Path) -> Iterator[KubernetesServer]:
    """Serve on a free port of 127.0.0.1 with a certificate of its own, which is also the CA."""
    certificate, key = folder / "ca.crt", folder / "key.pem"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-days", "1", "-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    (folder / "token").write_text(ACCOUNT_TOKEN + "\n")

    class Handler(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.patches.append((self.path, dict(self.headers), body))
            self.send_response(state.status)
            self.end_headers()

        def do_GET(self) -> None:
            state.gets.append(self.path)
            answer = state.answers.pop(0) if len(state.answers) > 1 else state.answers[0]
            body = json.dumps(answer).encode()
            self.send_response(state.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    state = KubernetesServer(port=server.server_address[1], account=folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
