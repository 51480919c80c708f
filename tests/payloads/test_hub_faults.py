"""What the Hub and its content network do on bad days, and how patiently staging takes it."""

from __future__ import annotations

import itertools

import pytest

from payloads.staging_settings import ExitCode
from tests.payloads.conftest import StagingPod
from tests.payloads.hub_server import REPOSITORY, REVISION, HubServer
from tests.payloads.test_stage_weights import assert_complete

LISTING = f"/api/models/{REPOSITORY}/revision/{REVISION}"
CONTENT = "/content/model-2.safetensors"


def seconds_between(hub: HubServer, beginning: str) -> float:
    """Time between the first two requests for a path."""
    first, second, *_ = (
        at for at, request in zip(hub.times, hub.requests, strict=True) if request.startswith(f"GET {beginning}")
    )
    return second - first


@pytest.mark.slow
@pytest.mark.parametrize("beginning", [LISTING, CONTENT])
def test_rate_limit_is_honoured(pod: StagingPod, hub: HubServer, beginning: str) -> None:
    hub.answers[beginning] = iter([(429, {"Retry-After": "2"})])
    pod.environment["STAGE_ATTEMPTS"] = "2"
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(pod, hub)
    assert seconds_between(hub, beginning) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("status", [500, 502, 503])
def test_server_error_passes(pod: StagingPod, hub: HubServer, status: int) -> None:
    hub.answers[CONTENT] = iter([(status, {})])
    hub.answers[LISTING] = iter([(status, {})])
    pod.environment["STAGE_ATTEMPTS"] = "2"
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(pod, hub)


@pytest.mark.slow
def test_server_error_that_stays(pod: StagingPod, hub: HubServer) -> None:
    hub.answers[CONTENT] = itertools.repeat((503, {}))
    code, output = pod.run()
    assert code == ExitCode.NETWORK, output
    assert "run again" in pod.termination_message
    assert not pod.model.exists()


@pytest.mark.slow
def test_broken_body_is_continued_by_range(pod: StagingPod, hub: HubServer) -> None:
    hub.files = {"model-2.safetensors": bytes(range(256)) * 2**17}  # the client writes pieces of 10 MiB
    hub.faults["model-2.safetensors"] = iter(["truncate"])
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert_complete(pod, hub)
    assert hub.ranges == [f"bytes={10 * 2**20}-"]


def test_weights_come_by_redirect(pod: StagingPod, hub: HubServer) -> None:
    assert pod.run()[0] == ExitCode.COMPLETE
    asked = [request for request in hub.requests if "model-1" in request]
    assert asked[0] == f"HEAD /{REPOSITORY}/resolve/{REVISION}/model-1.safetensors"
    assert asked[-1] == "GET /content/model-1.safetensors"


@pytest.mark.parametrize("status", [401, 403])
def test_access_withdrawn_in_the_middle(pod: StagingPod, hub: HubServer, status: int) -> None:
    hub.answers[CONTENT] = itertools.repeat((status, {}))
    code, output = pod.run()
    assert code == ExitCode.ACCESS_DENIED, output
    assert not pod.model.exists()
