"""Progress reports: what reaches the ConfigMap, and that no report can fail staging."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from payloads.staging_settings import ExitCode
from tests.payloads.conftest import StagingPod, wait_for
from tests.payloads.hub_server import HubServer
from tests.payloads.kubernetes_server import ACCOUNT_TOKEN, KubernetesServer, kubernetes_server


@pytest.fixture
def cluster(tmp_path: Path, pod: StagingPod) -> Iterator[KubernetesServer]:
    """A Kubernetes API, and a pod that reports there as often as it can."""
    account = tmp_path / "account"
    account.mkdir()
    with kubernetes_server(account) as server:
        pod.environment |= {
            "STAGE_PROGRESS_CONFIGMAP": "staging-progress",
            "STAGE_PROGRESS_NAMESPACE": "serving",
            "STAGE_SERVICE_ACCOUNT": str(account),
            "STAGE_REPORT_SECONDS": "0.001",
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(server.port),
        }
        yield server


def test_progress_reaches_the_configmap(pod: StagingPod, hub: HubServer, cluster: KubernetesServer) -> None:
    hub.faults["model-2.safetensors"] = iter(["hold"])
    process = pod.start()
    wait_for(lambda: any(0 < float(body["data"].get("percent", 0)) < 100 for _, _, body in cluster.patches))
    hub.resume.set()
    code, output = pod.finish(process)
    assert code == ExitCode.COMPLETE, output
    for path, headers, body in cluster.patches:
        assert path == "/api/v1/namespaces/serving/configmaps/staging-progress"
        assert headers["Authorization"] == f"Bearer {ACCOUNT_TOKEN}"
        assert headers["Content-Type"] == "application/merge-patch+json"
        assert all(isinstance(value, str) for value in body["data"].values())
    reports = [body["data"] for _, _, body in cluster.patches]
    # Checking what was downloaded last may be over before there is anything to report of it.
    assert {report["phase"] for report in reports} - {"verifying"} == {"downloading", "complete"}
    assert reports[-1]["phase"] == "complete"
    assert reports[-1]["message"] == pod.termination_message
    assert reports[-2]["message"] in output


def test_failure_reaches_the_configmap(pod: StagingPod, cluster: KubernetesServer) -> None:
    pod.environment["STAGE_REVISION"] = "f" * 40
    pod.run()
    report = cluster.patches[-1][2]["data"]
    assert report["phase"] == "failed"
    assert "no such commit" in report["message"]


def test_refused_report_does_not_fail_staging(pod: StagingPod, cluster: KubernetesServer) -> None:
    cluster.status = 403
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert output.count("progress is not reported to ConfigMap staging-progress") == 1


def test_missing_service_account_does_not_fail_staging(pod: StagingPod, cluster: KubernetesServer) -> None:
    (cluster.account / "token").unlink()
    code, output = pod.run()
    assert code == ExitCode.COMPLETE, output
    assert not cluster.patches
