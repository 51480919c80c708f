"""What every command refuses, in a few lines that say what to do: never a traceback, never without end."""

from __future__ import annotations

import builtins
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from operations import account, account_check, capacity, leftovers, stop
from planner.command_line import REFUSED, STACK_KEY
from tests.operations.conftest import environment

COMMANDS = [pytest.param(module.app, id=module.__name__) for module in (leftovers, stop, account_check, capacity)]
PROXY = b"<!doctype html><p>502 Bad Gateway"  # no XML, as an error page often is
EXPIRED = b"""<ErrorResponse><Error><Code>ExpiredToken</Code>
<Message>The security token included in the request is expired</Message></Error></ErrorResponse>"""


def refused(app: typer.Typer, *words: str) -> Result:
    asks = ["--yes"] if app is stop.app else []
    result = CliRunner().invoke(app, [*(words or ("Pulumi.dev.yaml",)), "--json", *asks])
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == REFUSED, result.output
    return result


def problem(app: typer.Typer, *words: str) -> dict[str, Any]:
    (found,) = json.loads(refused(app, *words).stdout)["problems"]
    assert found["allowed"]
    return dict(found)


def stack_file(tmp_path: Path, **changed: object) -> str:
    config = yaml.safe_load(Path("Pulumi.dev.yaml").read_text())
    deployment = config["config"][STACK_KEY]
    for key, value in changed.items():
        section, _, name = key.partition("_")
        if name:
            deployment[section][name] = value
        else:
            deployment[section] = value
    file = tmp_path / "Pulumi.changed.yaml"
    file.write_text(yaml.safe_dump(config))
    return str(file)


@pytest.mark.parametrize("app", COMMANDS)
def test_without_credentials(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    found = problem(app)
    assert found["where"] == "AWS credentials"
    assert "aws configure" in found["type"]


@pytest.mark.parametrize("app", COMMANDS)
def test_without_boto3(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name == "boto3":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert problem(app)["type"] == ["pip install boto3"]


@pytest.mark.parametrize("app", COMMANDS)
def test_a_file_that_cannot_be_read(app: typer.Typer) -> None:
    assert problem(app, "Pulumi.nowhere.yaml")["where"] == "Pulumi.nowhere.yaml"


@pytest.mark.parametrize("app", COMMANDS)
def test_a_cluster_that_is_not_the_stack_s_own(app: typer.Typer) -> None:
    assert problem(app, "Pulumi.infiniband.yaml")["where"].endswith("platform.kind")


@pytest.mark.parametrize("app", COMMANDS)
@pytest.mark.parametrize("region", [None, "", "us-east", "us-east-1; rm", 5])
def test_no_region(app: typer.Typer, tmp_path: Path, region: object) -> None:
    found = problem(app, stack_file(tmp_path, platform_region=region))
    assert "platform.region" in found["where"]


@pytest.mark.parametrize("app", COMMANDS)
@pytest.mark.parametrize("name", [None, "", "Kimi", "a;b"])
def test_no_name(app: typer.Typer, tmp_path: Path, name: object) -> None:
    assert problem(app, stack_file(tmp_path, name=name))["where"].endswith("name")


def test_a_profile_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    found = problem(leftovers.app)
    assert "nobody" in found["allowed"]
    assert found["type"] == ["aws configure list-profiles"]


class Answering(BaseHTTPRequestHandler):
    """Says the same to every question."""

    body: bytes

    def do_POST(self) -> None:
        self.send_response(403)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), type("Told", (Answering,), {"body": body}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_proxy_that_answers_in_aws_s_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(PROXY) as url:
        environment(monkeypatch, AWS_ENDPOINT_URL=url)
        assert problem(leftovers.app)["where"] == "AWS"


def test_credentials_that_have_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(EXPIRED) as url:
        environment(monkeypatch, AWS_ENDPOINT_URL=url)
        found = problem(leftovers.app)
    assert found["where"] == "AWS credentials"
    assert "expired" in found["allowed"]


def test_a_region_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    monkeypatch.setattr(account, "READ_SECONDS", 0.1)
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        found = problem(leftovers.app)
    assert found["where"] == "AWS"
    assert "Read timeout" in found["allowed"]
    assert time.monotonic() - began < 15, "botocore's own limit is a minute for each of three attempts"


def test_people_read_the_refusal_on_stderr() -> None:
    result = CliRunner().invoke(leftovers.app, ["Pulumi.nowhere.yaml"])
    assert result.exit_code == REFUSED
    assert result.stdout == ""
    assert "Pulumi.nowhere.yaml" in result.stderr


def test_an_option_that_does_not_exist_says_where_help_is() -> None:
    found = problem(leftovers.app, "--al")
    assert found["type"] == ["python -m operations.leftovers --help"]


def test_any_other_setting_may_be_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What must work in an emergency does not ask for a whole plan."""
    environment(monkeypatch, AWS_PROFILE="nobody")
    file = stack_file(tmp_path, model="nothing", gpuNodes_count=99, weights="what")
    assert "nobody" in problem(leftovers.app, file)["allowed"]
