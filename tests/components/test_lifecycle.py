"""Rules of the gang's life: how it starts, is watched and ends."""

from __future__ import annotations

import pytest

from tests.components.graph import Graph
from tests.components.manifests import ROLES, container, options, template


def test_the_leader_may_take_two_hours_to_start(graph: Graph) -> None:
    made = container(graph, "leaderTemplate")
    startup = made["startupProbe"]
    assert startup["httpGet"] == {"path": "/health", "port": "http"}
    assert startup["periodSeconds"] * startup["failureThreshold"] == 7200
    assert made["readinessProbe"]["httpGet"]["path"] == "/health"


def test_a_busy_leader_is_not_killed(graph: Graph) -> None:
    liveness = container(graph, "leaderTemplate")["livenessProbe"]
    assert liveness["httpGet"]["path"] == "/health"
    assert liveness["periodSeconds"] * liveness["failureThreshold"] >= 300
    assert liveness["timeoutSeconds"] >= 10


def test_a_worker_lives_as_long_as_the_leaders_rendezvous_answers(graph: Graph) -> None:
    made = container(graph, "workerTemplate")
    assert made["startupProbe"]["periodSeconds"] * made["startupProbe"]["failureThreshold"] == 7200
    for probe in ("startupProbe", "livenessProbe"):
        assert "29501" in made[probe]["exec"]["command"][-1]
        assert "httpGet" not in made[probe]
    assert "readinessProbe" not in made
    assert made["livenessProbe"]["periodSeconds"] * made["livenessProbe"]["failureThreshold"] >= 60


@pytest.mark.parametrize("role", ROLES)
def test_grace_is_longer_than_the_drain(graph: Graph, role: str) -> None:
    shutdown = int(options(graph, role)["--shutdown-timeout"])
    startup = options(graph, role)["--distributed-timeout-seconds"]
    assert int(startup) >= 3600, "ranks wait for each other's weights"
    sleep = container(graph, role)["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert template(graph, role)["terminationGracePeriodSeconds"] > sleep + shutdown


@pytest.mark.parametrize("role", ROLES)
def test_vllm_itself_gets_the_signal_to_stop(graph: Graph, role: str) -> None:
    assert container(graph, role)["command"] == ["vllm", "serve"]


def test_a_worker_outlives_the_leaders_drain(graph: Graph) -> None:
    leader, worker = (container(graph, role)["lifecycle"]["preStop"]["sleep"]["seconds"] for role in ROLES)
    assert worker >= leader + 60


@pytest.mark.parametrize("role", ROLES)
def test_shared_memory_and_caches_lie_where_vllm_looks_for_them(graph: Graph, role: str) -> None:
    mounts = {mount["name"]: mount["mountPath"] for mount in container(graph, role)["volumeMounts"]}
    shared = next(volume["emptyDir"] for volume in template(graph, role)["volumes"] if volume["name"] == "shm")
    assert mounts["shm"] == "/dev/shm"  # noqa: S108 - where NCCL looks
    assert shared == {"medium": "Memory", "sizeLimit": "64Gi"}
    cached = [entry["value"] for entry in container(graph, role)["env"] if entry["name"].endswith("CACHE_ROOT")]
    assert cached
    assert all(path.startswith(f"{mounts['compiled']}/") for path in cached)
