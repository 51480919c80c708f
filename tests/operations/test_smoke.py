"""The smoke test as a process, against a loopback server that answers as vLLM does.

It does not prove that vLLM answers so: `tests/vllm` runs it against the real one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
KEY = "the-key"
LONGEST = 4096


@dataclass
class Served:
    """Where it answers, what it was asked, and which fault it has."""

    url: str = ""
    fault: str = ""
    asked: list[tuple[str, Any]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    served: Served

    def do_GET(self) -> None:
        if self.path == "/health":
            self._send(503 if self.served.fault == "health" else 200, None)
        elif self._allowed():
            data = [] if self.served.fault == "models" else [{"id": "some/Model", "max_model_len": LONGEST}]
            self._send(200, {"data": data})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.served.asked.append((self.path, body))
        if self.path == "/tokenize":
            self._send(200, {"count": 2 * len(body["prompt"].split())})
        elif self._allowed():
            self._chat(body)

    def _chat(self, body: dict[str, Any]) -> None:
        prompt = 2 * len(body["messages"][0]["content"].split()) + 20
        if prompt + body["max_tokens"] > LONGEST or (self.served.fault == "long" and prompt > 1000):
            self._send(400, {"error": "longer than the model's context"})
        elif body.get("stream"):
            self._stream()
        else:
            calls = [{"function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}]
            message: dict[str, Any] = {"content": "" if self.served.fault == "chat" else "Hello there."}
            if "tools" in body and self.served.fault != "tool":
                message = {"content": None, "tool_calls": calls}
            usage = {"completion_tokens": 3, "prompt_tokens": prompt}
            self._send(200, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    def _stream(self) -> None:
        pieces = [{"choices": [{"delta": {"content": word}}]} for word in ("one", "two", "three")]
        lines = [f"data: {json.dumps(piece)}\n\n" for piece in pieces]
        lines += [] if self.served.fault == "stream" else ["data: [DONE]\n\n"]
        self.send_response(200)
        self.end_headers()
        self.wfile.write("".join(lines).encode())

    def _allowed(self) -> bool:
        if self.served.fault == "open" or self.headers["Authorization"] == f"Bearer {KEY}":
            return True
        self._send(401, {"error": "Unauthorized"})
        return False

    def _send(self, status: int, content: Any) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


@pytest.fixture
def served() -> Iterator[Served]:
    state = Served()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"served": state}))
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def smoke(url: str, key: str = KEY) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "operations.smoke", "--url", url, "--timeout", "10"],
        cwd=ROOT,
        env={**os.environ, "VLLM_API_KEY": key},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_served_model_passes_every_check(served: Served) -> None:
    status, said = smoke(served.url)
    assert status == 0, said
    assert [line.split()[0] for line in said.splitlines()] == ["pass"] * 7
    assert "some/Model, requests of at most 4,096 tokens" in said
    assert "3 pieces" in said


def test_the_long_prompt_nearly_fills_the_longest_request(served: Served) -> None:
    smoke(served.url)
    lengths = [2 * len(body["messages"][0]["content"].split()) for path, body in served.asked if "chat" in path]
    assert LONGEST - 300 < max(lengths) < LONGEST


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        ("health", 11, "HTTP 503 from /health"),
        ("models", 12, "no model is served"),
        ("open", 13, "a wrong key was accepted"),
        ("chat", 14, "an empty answer"),
        ("stream", 15, "the stream ended without its last line"),
        ("tool", 16, "has the model a tool call parser?"),
        ("long", 17, "HTTP 400"),
    ],
)
def test_the_exit_status_says_what_failed(served: Served, fault: str, status: int, said: str) -> None:
    served.fault = fault
    code, output = smoke(served.url)
    assert code == status, output
    assert said in output
    assert "Traceback" not in output


def test_a_wrong_key_of_ones_own_is_told_apart_from_a_broken_server(served: Served) -> None:
    code, output = smoke(served.url, "another-key")
    assert code == 12
    assert "is VLLM_API_KEY set to the stack's key?" in output


def test_a_server_that_is_meant_to_be_open_is_not_held_against_a_key(served: Served) -> None:
    served.fault = "open"
    code, output = smoke(served.url, "")
    assert code == 0
    assert "not checked: VLLM_API_KEY is not set" in output


def test_nobody_there() -> None:
    code, output = smoke("http://127.0.0.1:9")
    assert code == 11
    assert "no answer from http://127.0.0.1:9/health" in output


def test_an_address_without_scheme_is_refused() -> None:
    code, output = smoke("127.0.0.1:8000")
    assert code == 2
    assert "begins with http:// or https://" in output
