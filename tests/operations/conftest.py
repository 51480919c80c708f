"""AWS for the tests of the commands: moto's server on loopback, empty at the start of each test.

It keeps what is made and refuses some deletions that AWS refuses. It does NOT check permissions, knows no prices and
no capacity, and starts no instance of a node group: what it lacks is answered by botocore's Stubber.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from operations import check_services
from tests.operations.made import REGION, Made
from tests.operations.ready_account import TODAY
from tests.payloads.s3_server import s3_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server's address; the one of the staging tests answers for all of AWS."""
    with s3_server(tmp_path_factory.mktemp("moto")) as running:
        yield running.url


class Session:
    """One session for all tests, with one client a service: making them takes most of a command's time."""

    def __init__(self) -> None:
        self._session = boto3.Session(region_name=REGION)
        self._clients: dict[str, Any] = {}

    def client(self, service: str, **settings: Any) -> Any:
        if service not in self._clients:
            self._clients[service] = self._session.client(service, **settings)
        return self._clients[service]


@pytest.fixture(scope="session")
def session(server: str) -> Iterator[Session]:
    """It finds the server and its credentials in the environment, as the user's finds AWS."""
    with pytest.MonkeyPatch.context() as patch:
        environment(patch, AWS_ENDPOINT_URL=server)
        yield Session()


def environment(patch: pytest.MonkeyPatch, **more: str) -> None:
    """Credentials and nothing of this machine's own."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        patch.delenv(name, raising=False)
    own = {
        "AWS_ACCESS_KEY_ID": "loopback",
        "AWS_SECRET_ACCESS_KEY": "loopback",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }
    for name, value in (own | more).items():
        patch.setenv(name, value)


@pytest.fixture
def aws(server: str, session: Session, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """An empty account, emptied again where a test made something: that takes moto longer than most questions."""
    monkeypatch.setattr(boto3, "Session", lambda **_: session)
    made = Made(session)
    yield made
    if made.used:
        request = urllib.request.Request(f"{server}/moto-api/reset", method="POST")  # noqa: S310 (http on loopback)
        urllib.request.urlopen(request).close()  # noqa: S310


@pytest.fixture
def account(aws: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A day on which the version is supported."""
    monkeypatch.setattr(check_services, "today", lambda: TODAY)
    return aws
