"""Everything that staging refuses: each failure has its exit code and tells what to do about it."""

from __future__ import annotations

import pytest

from payloads.staging_settings import ExitCode
from tests.payloads.conftest import StagingPod
from tests.payloads.hub_server import HubServer

TOKEN = "hf_secretsecretsecret"


@pytest.mark.parametrize(
    ("status", "token", "listing_is_open", "advice"),
    [
        (401, "", True, "give it to the stack with"),
        (403, TOKEN, False, "Accept the model's terms at https://huggingface.co/"),
    ],
)
def test_gated_model(
    pod: StagingPod, hub: HubServer, status: int, token: str, listing_is_open: bool, advice: str
) -> None:
    hub.refusal = (status, {"X-Error-Code": "GatedRepo", "X-Error-Message": f"no access for {TOKEN}"})
    hub.listing_is_open = listing_is_open
    pod.environment["HF_TOKEN"] = token
    code, output = pod.run()
    assert code == ExitCode.ACCESS_DENIED, output
    assert advice in pod.termination_message
    assert not pod.model.exists()


def test_token_is_never_printed(pod: StagingPod, hub: HubServer) -> None:
    hub.refusal = (400, {"X-Error-Message": f"cannot parse {TOKEN}"})
    pod.environment["HF_TOKEN"] = TOKEN
    code, output = pod.run()
    assert code == ExitCode.UNEXPECTED
    assert "cannot parse ***" in output
    assert TOKEN not in output + pod.termination_message


def test_unknown_revision_is_final(pod: StagingPod) -> None:
    pod.environment |= {"STAGE_REVISION": "f" * 40, "STAGE_ATTEMPTS": "3"}
    code, output = pod.run()
    assert code == ExitCode.NOT_FOUND, output
    assert "no such commit" in pod.termination_message
    assert "attempt 2" not in output


def test_unknown_repository(pod: StagingPod) -> None:
    pod.environment["STAGE_REPOSITORY"] = "example/misspelt"
    code, output = pod.run()
    assert code == ExitCode.NOT_FOUND, output
    assert "no such repository" in pod.termination_message


def test_hub_out_of_reach(pod: StagingPod) -> None:
    pod.environment |= {"HF_ENDPOINT": "http://127.0.0.1:1", "STAGE_ATTEMPTS": "3"}
    code, output = pod.run()
    assert "attempt 3 of 3" in output
    assert code == ExitCode.NETWORK, output
    assert "run again" in pod.termination_message


def test_no_space(pod: StagingPod, hub: HubServer) -> None:
    pod.environment["STAGE_EXPECTED_BYTES"] = str(1024**5)
    code, output = pod.run()
    assert code == ExitCode.NO_SPACE, output
    assert "1048577.0 GiB needed" in pod.termination_message
    assert " GiB free" in pod.termination_message
    assert not hub.downloads()


def test_bad_configuration_lists_every_problem(pod: StagingPod) -> None:
    pod.environment |= {
        "STAGE_REPOSITORY": "no-owner",
        "STAGE_REVISION": "main",
        "STAGE_DIRECTORY": "relative",
        "STAGE_EXPECTED_BYTES": "many",
        "STAGE_STALL_SECONDS": "0",
        "STAGE_REPORT_SECONDS": "-1",
        "STAGE_PROGRESS_CONFIGMAP": "progress",
    }
    code, output = pod.run()
    assert code == ExitCode.BAD_CONFIGURATION
    assert "Traceback" not in output
    wrong = [line.split("=")[0].strip() for line in pod.termination_message.splitlines()[1:]]
    assert wrong == [
        "STAGE_REPOSITORY",
        "STAGE_REVISION",
        "STAGE_DIRECTORY",
        "STAGE_PROGRESS_NAMESPACE",
        "STAGE_EXPECTED_BYTES",
        "STAGE_STALL_SECONDS",
        "STAGE_REPORT_SECONDS",
    ]


def test_cache_that_is_not_mounted(pod: StagingPod) -> None:
    pod.environment["STAGE_DIRECTORY"] = str(pod.root / "absent")
    code, output = pod.run()
    assert code == ExitCode.BAD_CONFIGURATION, output
    assert "is the cache mounted" in pod.termination_message
