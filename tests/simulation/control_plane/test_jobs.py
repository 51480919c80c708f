"""Jobs end as told."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from simulation.control_plane import jobs
from simulation.control_plane.__main__ import main
from simulation.control_plane.api import Api, Json
from simulation.control_plane.jobs import Outcome, outcome_of
from tests.simulation.control_plane.objects import (
    condition,
    eventually,
    headless_service,
    indexed_job,
    is_ready,
    job,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATION_HOME", str(tmp_path / "home"))


def test_longest_beginning_decides() -> None:
    outcomes = {
        "": Outcome(exit_code=1),
        "stage": Outcome(exit_code=2),
        "stage-weights": Outcome(exit_code=3),
    }
    ends = {name: outcome_of(name, outcomes).exit_code for name in ("gate", "stage-x", "stage-weights-1a2b")}
    assert ends == {"gate": 1, "stage-x": 2, "stage-weights-1a2b": 3}


def test_untold_job_succeeds() -> None:
    assert outcome_of("gate", {"stage": Outcome(exit_code=2)}) == Outcome()


@pytest.mark.usefixtures("home")
def test_told_before_the_cluster_exists_and_by_command() -> None:
    jobs.hold("stage")
    assert main(["job", "gate", "--exit-code", "3", "--message", "TCP"]) == 0
    assert jobs.told() == {"stage": Outcome(held=True), "gate": Outcome(exit_code=3, message="TCP")}
    assert main(["job", "gate", "--seconds", "2.5"]) == 0
    assert jobs.told()["gate"] == Outcome(seconds=2.5)
    assert main(["job", "--reset"]) == 0
    assert jobs.told() == {}


@pytest.mark.slow
def test_job_completes_at_once(api: Api, namespace: str) -> None:
    _start(api, namespace, "gate")
    eventually("the Job completes", lambda: _has_ended(api, namespace, "gate", "Complete"))
    assert _ended_container(api, namespace)["exitCode"] == 0


@pytest.mark.slow
def test_job_fails_with_code_and_message(api: Api, namespace: str) -> None:
    jobs.finish("gate", exit_code=3, message="12 GB/s over TCP")
    _start(api, namespace, "gate-1a2b")
    eventually("the Job fails", lambda: _has_ended(api, namespace, "gate-1a2b", "Failed"))
    ended = _ended_container(api, namespace)
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "12 GB/s over TCP")


@pytest.mark.slow
def test_held_job_runs_until_told(api: Api, namespace: str) -> None:
    jobs.hold("stage")
    _start(api, namespace, "stage")
    eventually("the pod runs", lambda: [is_ready(pod) for pod in _pods(api, namespace)] == [True])
    # The agent that has ended a later Job has seen the held one run.
    _start(api, namespace, "gate")
    eventually("the other Job completes", lambda: _has_ended(api, namespace, "gate", "Complete"))
    assert not _has_ended(api, namespace, "stage", "Complete")
    held = api.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector="job-name=stage")
    assert [is_ready(pod) for pod in held] == [True]
    jobs.finish("stage", exit_code=1)
    eventually("the Job fails", lambda: _has_ended(api, namespace, "stage", "Failed"))


@pytest.mark.slow
def test_job_takes_the_time_told(api: Api, namespace: str) -> None:
    jobs.finish("stage", seconds=3, message="595 GB")
    _start(api, namespace, "stage")
    eventually("the Job completes", lambda: _has_ended(api, namespace, "stage", "Complete"))
    ended = _ended_container(api, namespace)
    began, end = (datetime.fromisoformat(ended[key]) for key in ("startedAt", "finishedAt"))
    assert 3 <= (end - began).total_seconds() <= 6
    assert ended["message"] == "595 GB"


@pytest.mark.slow
def test_indexed_job_with_a_service_ends_for_every_index(api: Api, namespace: str) -> None:
    jobs.hold("gate")
    api.create(f"/api/v1/namespaces/{namespace}/services", headless_service("gate"))
    api.create(f"/apis/batch/v1/namespaces/{namespace}/jobs", indexed_job("gate", 2))
    eventually("both run", lambda: [is_ready(pod) for pod in _pods(api, namespace)] == [True, True])
    pods = _pods(api, namespace)
    assert {pod["spec"]["hostname"] for pod in pods} == {"gate-0", "gate-1"}
    assert {pod["spec"]["subdomain"] for pod in pods} == {"gate"}
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    eventually("the Service knows both", lambda: _hostnames(api, slices) == {"gate-0", "gate-1"})
    jobs.finish("gate", message="350 GB/s")
    eventually("the Job completes", lambda: _has_ended(api, namespace, "gate", "Complete"))
    assert api.get(f"/apis/batch/v1/namespaces/{namespace}/jobs/gate")["status"]["completedIndexes"] == "0,1"
    ended = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in _pods(api, namespace)]
    assert [one["message"] for one in ended] == ["350 GB/s", "350 GB/s"]


@pytest.mark.slow
def test_job_reports_with_its_own_rights(api: Api, namespace: str) -> None:
    progress = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "progress"},
        "data": {"kept": "1"},
    }
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    api.create(path, progress)
    jobs.finish("stage", config_map={"progress": {"bytes": "595"}})
    _start(api, namespace, "stage-refused")
    eventually("the Job fails", lambda: _has_ended(api, namespace, "stage-refused", "Failed"))
    assert "cannot patch resource" in _ended_container(api, namespace)["message"]

    _let_default_account_patch(api, namespace, "progress")
    _start(api, namespace, "stage-allowed")
    eventually("the Job completes", lambda: _has_ended(api, namespace, "stage-allowed", "Complete"))
    assert api.get(f"{path}/progress")["data"] == {"kept": "1", "bytes": "595"}


def _start(api: Api, namespace: str, name: str) -> None:
    api.create(f"/apis/batch/v1/namespaces/{namespace}/jobs", job(name))


def _has_ended(api: Api, namespace: str, name: str, how: str) -> bool:
    body = api.get(f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")
    return condition(body, how).get("status") == "True"


def _hostnames(api: Api, slices: str) -> set[str]:
    return {entry["hostname"] for part in api.items(slices) for entry in part["endpoints"] or [] if "hostname" in entry}


def _pods(api: Api, namespace: str) -> list[Json]:
    return api.items(f"/api/v1/namespaces/{namespace}/pods")


def _ended_container(api: Api, namespace: str) -> Json:
    (pod,) = _pods(api, namespace)
    terminated: Json = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return terminated


def _let_default_account_patch(api: Api, namespace: str, name: str) -> None:
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["patch"]}
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": {"name": "report"}, "rules": [rule]}
    account = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    binding = role | {"kind": "RoleBinding", "subjects": [account]}
    del binding["rules"]
    api.create(f"{path}/roles", role)
    reference = {"apiGroup": group, "kind": "Role", "name": "report"}
    api.create(f"{path}/rolebindings", binding | {"roleRef": reference})
