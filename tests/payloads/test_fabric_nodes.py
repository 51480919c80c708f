"""What ends the fabric test before a rank starts: real processes on loopback, and who learns of it.

Torch is a stand-in that knows its version only; no rank is ever started here.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from payloads.fabric_settings import ExitCode
from tests.payloads.fabric_pods import FabricPods
from tests.payloads.fabric_stand_ins import add_device, nvidia_smi, torch_of_version
from tests.payloads.kubernetes_server import KubernetesServer, kubernetes_server

WAIT_SECONDS = 20.0


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[FabricPods]:
    """Two nodes with the same torch."""
    pods = FabricPods(root=tmp_path, environment={"PYTHONPATH": torch_of_version(tmp_path / "torch", "2.13.0")})
    yield pods
    pods.end()


@pytest.fixture
def cluster(tmp_path: Path, pods: FabricPods) -> Iterator[KubernetesServer]:
    """A Kubernetes API to which both nodes could report."""
    account = tmp_path / "account"
    account.mkdir()
    with kubernetes_server(account) as server:
        pods.environment |= {
            "FABRIC_CONFIGMAP": "fabric-verdict",
            "FABRIC_CONFIGMAP_NAMESPACE": "serving",
            "FABRIC_SERVICE_ACCOUNT": str(account),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(server.port),
        }
        yield server


def test_bad_configuration(pods: FabricPods) -> None:
    ended = pods.wait(0, pods.start(0, FABRIC_KIND="ethernet"))
    assert ended.code == ExitCode.BAD_CONFIGURATION
    assert "FABRIC_KIND='ethernet': want one of efa, infiniband, none" in ended.termination_message
    assert ended.termination_message in ended.output


def test_a_missing_node_is_named(pods: FabricPods, cluster: KubernetesServer) -> None:
    pods.environment["FABRIC_PEER_TIMEOUT_SECONDS"] = "0.5"
    (leader,) = pods.run({})
    assert leader.code == ExitCode.PEERS_MISSING
    assert leader.verdict["step"] == "peers"
    assert "node rank 1 did not report within 0.5 s; there: 0 (node-0)" in leader.line
    paths = {path for path, _, _ in cluster.patches}
    assert paths == {"/api/v1/namespaces/serving/configmaps/fabric-verdict"}
    reports = [body["data"] for _, _, body in cluster.patches]
    assert [report["phase"] for report in reports] == ["peers", "failed"]
    assert reports[-1]["message"] == leader.line
    assert json.loads(reports[-1]["verdict"]) == leader.verdict


def test_of_three_nodes_the_missing_one_is_named(pods: FabricPods) -> None:
    pods.environment |= {"FABRIC_NODES": "3", "FABRIC_PEER_TIMEOUT_SECONDS": "4"}
    leader, worker = pods.run()
    assert leader.code == worker.code == ExitCode.PEERS_MISSING
    assert "node rank 2 did not report within 4 s; there: 0 (node-0), 1 (node-1)" in leader.line
    assert worker.termination_message == leader.termination_message


def test_a_missing_leader_is_named(pods: FabricPods) -> None:
    pods.environment["FABRIC_PEER_TIMEOUT_SECONDS"] = "0.5"
    worker = pods.wait(1, pods.start(1))
    assert worker.code == ExitCode.PEERS_MISSING
    port = pods.environment["FABRIC_PORT"]
    assert f"the leader does not answer at 127.0.0.1 port {port} (Connection refused)" in worker.line


def test_a_leader_without_a_name_is_named(pods: FabricPods) -> None:
    """`.invalid` resolves nowhere, by RFC 2606."""
    pods.environment |= {"FABRIC_PEER_TIMEOUT_SECONDS": "0.5", "FABRIC_LEADER": "gate-0.invalid"}
    worker = pods.wait(1, pods.start(1))
    assert worker.code == ExitCode.PEERS_MISSING
    assert "the leader's name gate-0.invalid does not resolve" in worker.line
    assert "publishNotReadyAddresses" in worker.line


def test_a_worker_may_be_first(pods: FabricPods) -> None:
    worker = pods.start(1, FABRIC_GPUS="3")
    leader = pods.start(0)
    assert pods.wait(0, leader).code == pods.wait(1, worker).code == ExitCode.BAD_CONFIGURATION


def test_nodes_that_were_told_different_numbers_of_ranks(pods: FabricPods, cluster: KubernetesServer) -> None:
    leader, worker = pods.run({}, {"FABRIC_GPUS": "1"})
    assert leader.code == worker.code == ExitCode.BAD_CONFIGURATION
    assert "node 1 (node-1) was given FABRIC_GPUS=1, the leader 2" in leader.line
    assert worker.termination_message == leader.termination_message
    assert len(cluster.patches) == 2  # the leader's two: waiting, failed


def test_a_lost_gpu_is_named_with_its_node(pods: FabricPods, tmp_path: Path) -> None:
    for name, count in (("whole", 2), ("broken", 1)):
        (tmp_path / name).mkdir()
        nvidia_smi(tmp_path / name, ["NVIDIA H100 80GB HBM3, 580.159.03"] * count)
    paths = [{"PATH": f"{tmp_path / name}{os.pathsep}{os.environ['PATH']}"} for name in ("whole", "broken")]
    pods.environment["FABRIC_BACKEND"] = "nccl"
    leader, worker = pods.run(*paths)
    assert leader.code == worker.code == ExitCode.GPU_COUNT
    assert "node 1 (node-1): 1 GPUs are visible instead of 2" in leader.line
    assert (leader.verdict["gpu"], leader.verdict["driver"]) == ("NVIDIA H100 80GB HBM3", "580.159.03")


def test_missing_fabric_devices_are_named_with_their_node(pods: FabricPods, tmp_path: Path) -> None:
    for rank, count in ((0, 4), (1, 3)):
        for number in range(count):
            add_device(tmp_path / f"root-{rank}", number, driver="efa", layer="Unspecified")
    pods.environment |= {"FABRIC_KIND": "efa", "FABRIC_NICS": "4"}
    leader, worker = pods.run(*({"FABRIC_ROOT": str(tmp_path / f"root-{rank}")} for rank in (0, 1)))
    assert leader.code == worker.code == ExitCode.FABRIC_DEVICES
    assert "node 1 (node-1): 3 EFA devices are in the container instead of 4" in leader.line


def test_versions_that_differ(pods: FabricPods, tmp_path: Path) -> None:
    other = torch_of_version(tmp_path / "other", "2.13.0", nccl=(2, 28, 9))
    leader, worker = pods.run({}, {"PYTHONPATH": other})
    assert leader.code == worker.code == ExitCode.VERSIONS_DIFFER
    assert "the nccl versions differ: node 0 (node-0) 2.29.7, node 1 (node-1) 2.28.9" in leader.line


def test_an_image_without_torch(pods: FabricPods) -> None:
    leader, worker = pods.run({}, {"PYTHONPATH": ""})
    assert leader.code == worker.code == ExitCode.VERSIONS_DIFFER
    assert "node 1 (node-1)" in leader.line
    assert "ModuleNotFoundError: No module named 'torch'" in leader.line


def test_strangers_at_the_leader_s_port_do_no_harm(pods: FabricPods) -> None:
    process = pods.start(0)
    for words in (b"GET / HTTP/1.1\r\n\r\n", b'{"rank": 7}\n', b"[1]\n", b""):
        with connect_to(pods) as stranger:
            stranger.sendall(words)
    worker = pods.start(1, FABRIC_GPUS="1")
    assert pods.wait(0, process).code == pods.wait(1, worker).code == ExitCode.BAD_CONFIGURATION


def test_the_leader_s_death_is_named(pods: FabricPods) -> None:
    pods.environment["FABRIC_NODES"] = "3"
    leader, worker = pods.start(0), pods.start(1)
    wait_for_log(leader, "node rank 1 (node-1) is there")
    leader.kill()
    ended = pods.wait(1, worker)
    assert ended.code == ExitCode.COLLECTIVE_FAILED
    assert "the leader was lost (the connection was closed)" in ended.line


def test_an_interrupted_node_says_so(pods: FabricPods) -> None:
    process = pods.start(1)
    wait_for_log(process, "this node, rank 1")
    process.send_signal(signal.SIGTERM)
    ended = pods.wait(1, process)
    assert ended.code == ExitCode.INTERRUPTED
    assert ended.verdict["step"] == "interrupted"


def test_an_interrupted_leader_ends_the_others(pods: FabricPods) -> None:
    pods.environment["FABRIC_NODES"] = "3"
    leader, worker = pods.start(0), pods.start(1)
    wait_for_log(leader, "node rank 1 (node-1) is there")
    leader.send_signal(signal.SIGTERM)
    assert pods.wait(0, leader).code == ExitCode.INTERRUPTED
    assert pods.wait(1, worker).code == ExitCode.COLLECTIVE_FAILED


def wait_for_log(process: subprocess.Popen[str], start: str) -> None:
    """Wait for a line of the node's log that starts so."""
    assert process.stdout is not None
    assert any(line.startswith(start) for line in process.stdout), f"no line starts with {start!r}"


def connect_to(pods: FabricPods) -> socket.socket:
    """Connect to the leader as soon as it listens."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", int(pods.environment["FABRIC_PORT"])), timeout=WAIT_SECONDS)
        except ConnectionRefusedError:
            assert time.monotonic() < until, "the leader does not listen"
            time.sleep(0.02)
