"""Which GPU nodes are missing, or not whole. A real process asks a loopback server, which lists what the test says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from payloads.node_check import ExitCode
from tests.payloads.kubernetes_server import KubernetesServer, kubernetes_server

ROOT = Path(__file__).resolve().parents[2]
WHOLE = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}


def node(name: str, zone: str = "us-east-1a", ready: str = "True", **allocatable: str) -> dict[str, Any]:
    offered = {**WHOLE, **{key.replace("__", "/").replace("_", "."): value for key, value in allocatable.items()}}
    return {
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": offered},
    }


def tainted(name: str, *taints: dict[str, str]) -> dict[str, Any]:
    return {**node(name), "spec": {"taints": list(taints)}}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KubernetesServer]:
    folder = tmp_path / "account"
    folder.mkdir()
    with kubernetes_server(folder) as running:
        yield running


def check(
    server: KubernetesServer, tmp_path: Path, *answers: list[dict[str, Any]], **more: str
) -> tuple[int, str, str]:
    """Exit code, termination message, log."""
    server.answers = [{"items": items} for items in answers]
    environment = {
        "PATH": os.environ["PATH"],
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(server.port),
        "NODES_SELECTOR": "node.kubernetes.io/instance-type=p5.48xlarge",
        "NODES_COUNT": "2",
        "NODES_RESOURCES": json.dumps({"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}),
        "NODES_TIMEOUT_SECONDS": "0.2",
        "NODES_SERVICE_ACCOUNT": str(server.account),
        "NODES_TERMINATION_LOG": str(tmp_path / "termination"),
        **more,
    }
    done = subprocess.run(
        [sys.executable, "-m", "payloads.node_check"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, (tmp_path / "termination").read_text(), done.stdout


def test_two_whole_nodes_in_one_zone_pass(server: KubernetesServer, tmp_path: Path) -> None:
    code, said, _ = check(server, tmp_path, [node("a"), node("b")])
    assert (code, said) == (0, "2 GPU nodes are ready, each with 8 nvidia.com/gpu, 32 vpc.amazonaws.com/efa")
    assert server.gets == ["/api/v1/nodes?labelSelector=node.kubernetes.io%2Finstance-type%3Dp5.48xlarge"]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node("a")], "1 of 2 nodes carry node.kubernetes.io/instance-type=p5.48xlarge (a)"),
        ([], "0 of 2 nodes carry node.kubernetes.io/instance-type=p5.48xlarge (none)"),
        ([node("a"), node("b", nvidia_com__gpu="7")], "b offers 7 of 8 nvidia.com/gpu: is the device plugin running"),
        ([node("a"), node("b", vpc_amazonaws_com__efa="31")], "b offers 31 of 32 vpc.amazonaws.com/efa"),
        ([node("a"), node("b", ready="False")], "b is not Ready"),
        (
            [node("a"), node("b", zone="us-east-1b")],
            "in several zones, where no fabric joins them: us-east-1a, us-east-1b",
        ),
        ([node("a"), {**node("b"), "spec": {"unschedulable": True}}], "b is cordoned"),
        (
            [node("a"), tainted("b", {"key": "dedicated", "value": "llm", "effect": "NoSchedule"})],
            "b has taints that the stack's pods do not tolerate: dedicated=llm:NoSchedule",
        ),
    ],
)
def test_what_is_missing_is_named(
    server: KubernetesServer, tmp_path: Path, nodes: list[dict[str, Any]], said: str
) -> None:
    code, message, _ = check(server, tmp_path, nodes)
    assert code == ExitCode.NOT_THERE
    assert said in message
    assert "(waited 0 s)" in message


def test_a_device_plugin_that_is_still_starting_is_waited_for(server: KubernetesServer, tmp_path: Path) -> None:
    bare = node("b")
    bare["status"]["allocatable"] = {}
    code, _, log = check(server, tmp_path, [node("a"), bare], [node("a"), node("b")], NODES_TIMEOUT_SECONDS="20")
    assert code == 0
    assert "waiting: b offers 0 of 8 nvidia.com/gpu, 0 of 32 vpc.amazonaws.com/efa" in log


def test_a_spare_node_that_is_broken_does_not_matter(server: KubernetesServer, tmp_path: Path) -> None:
    code, _, _ = check(server, tmp_path, [node("a"), node("b"), node("c", ready="Unknown")])
    assert code == 0


def test_a_thousand_is_written_as_kubernetes_writes_it(server: KubernetesServer, tmp_path: Path) -> None:
    nodes = [node(name, vpc_amazonaws_com__efa="1k") for name in "ab"]
    code, said, _ = check(server, tmp_path, nodes)
    assert code == 0, said


def test_one_node_may_be_any_of_several_zones(server: KubernetesServer, tmp_path: Path) -> None:
    code, said, _ = check(server, tmp_path, [node("a"), node("b", zone="us-east-1b")], NODES_COUNT="1")
    assert code == 0, said


@pytest.mark.parametrize(
    ("toleration", "passes"),
    [
        ({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "llm"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "other"}, False),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, False),
    ],
)
def test_taints_are_tolerated_as_kubernetes_does(
    server: KubernetesServer, tmp_path: Path, toleration: dict[str, str], passes: bool
) -> None:
    taints = (
        {"key": "dedicated", "value": "llm", "effect": "NoSchedule"},
        {"key": "old", "effect": "PreferNoSchedule"},
    )
    nodes = [tainted(name, *taints) for name in "ab"]
    code, said, _ = check(server, tmp_path, nodes, NODES_TOLERATIONS=json.dumps([toleration]))
    assert (code == 0) is passes, said


def test_an_account_without_permission_is_told_so_at_once(server: KubernetesServer, tmp_path: Path) -> None:
    server.status = 403
    code, message, _ = check(server, tmp_path, [], NODES_TIMEOUT_SECONDS="20")
    assert code == ExitCode.ACCESS_DENIED
    assert "may not list nodes (HTTP 403)" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [("NODES_COUNT", "two"), ("NODES_RESOURCES", "{"), ("NODES_RESOURCES", "[]"), ("NODES_TOLERATIONS", "[1]")],
)
def test_bad_configuration_is_final(server: KubernetesServer, tmp_path: Path, name: str, value: str) -> None:
    code, message, _ = check(server, tmp_path, [], **{name: value})
    assert code == ExitCode.BAD_CONFIGURATION
    assert "NODES_ variables" in message
