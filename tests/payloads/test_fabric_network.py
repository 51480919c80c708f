"""The fabric test over a real network: two namespaces of two Gloo ranks, joined by a cable of known speed.

What it does not prove: anything about NCCL, GPUs, EFA or InfiniBand.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from payloads.fabric_settings import ExitCode
from tests import tools
from tests.payloads.fabric_pods import FabricPods
from tests.payloads.network import NAMES, Cable, cable

pytestmark = pytest.mark.slow

TRAFFIC_SECONDS = 60.0


@pytest.fixture(scope="module")
def link() -> Iterator[Cable]:
    """The cable between the two nodes."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if missing := tools.missing_programs():
        pytest.fail(f"{', '.join(missing)} missing: run `python -m tests.tools`")
    with cable() as made:
        yield made


@pytest.fixture
def pods(tmp_path: Path, link: Cable) -> Iterator[FabricPods]:
    """A node on each end of the cable, at 400 Mbit/s."""
    if not tools.vllm_is_ready():
        pytest.fail("no torch: run `python -m tests.tools`")
    link.set_speed(400)
    pods = FabricPods(
        root=tmp_path,
        python=str(tools.vllm_python()),
        prefixes=(link.command(0), link.command(1)),
        environment={"FABRIC_LEADER": NAMES[0], "GLOO_SOCKET_IFNAME": "cable"},
    )
    yield pods
    pods.end()
    link.plug()


@pytest.mark.parametrize(("megabits", "mebibytes"), [(100, 24), (400, 96)])
def test_bus_bandwidth_is_the_link_s_that_iperf3_sees(
    pods: FabricPods, link: Cable, megabits: int, mebibytes: int
) -> None:
    """Gloo's all-reduce is a ring over the ranks: one hop of it crosses the cable in each direction and carries
    2 (n - 1) / n of the bytes, so bus bandwidth is the cable's, each direction for itself.
    """
    link.set_speed(megabits)
    # About three seconds each: beside them the pauses between a ring's steps, on a busy machine, are small.
    pods.environment |= {"FABRIC_BYTES": str(mebibytes * 2**20), "FABRIC_TEST_TIMEOUT_SECONDS": "150"}
    leader, worker = pods.run()
    assert leader.code == worker.code == ExitCode.PASS, leader.output + worker.output
    assert leader.verdict == worker.verdict
    assert leader.verdict["world_size"] == 4
    measured, seen = leader.verdict["busbw_gb_per_s"] * 1e9, link.iperf3()
    print(f"{megabits} Mbit/s: bus bandwidth {measured / 125e3:.1f} Mbit/s, iperf3 {seen / 125e3:.1f} Mbit/s")
    assert measured == pytest.approx(seen, rel=0.15)
    # A node's two ranks send at least bytes x 2 (nodes - 1) / nodes together; that share of it is a GPU's.
    assert leader.verdict["per_gpu_gb_per_s"] == pytest.approx(leader.verdict["busbw_gb_per_s"] / 3, rel=1e-3)


def test_too_slow_a_link_blocks(pods: FabricPods, link: Cable) -> None:
    link.set_speed(200)
    pods.environment |= {"FABRIC_BYTES": str(2**20), "FABRIC_WARN_BELOW": "0.08", "FABRIC_FAIL_BELOW": "0.05"}
    leader, worker = pods.run()
    assert leader.code == worker.code == ExitCode.LOW_BANDWIDTH, leader.output
    assert leader.line.startswith("fabric test failed (bandwidth): bus bandwidth 0.02")
    assert "GB/s is below 0.05 (fail_below). 2 x 2 ranks" in leader.line
    assert worker.termination_message == leader.termination_message


def test_too_slow_a_link_only_warns_in_mode_warn(pods: FabricPods, link: Cable) -> None:
    link.set_speed(200)
    pods.environment |= {"FABRIC_BYTES": str(2**20), "FABRIC_FAIL_BELOW": "0.05", "FABRIC_MODE": "warn"}
    leader, _ = pods.run()
    assert leader.code == ExitCode.PASS, leader.output
    assert leader.verdict["verdict"] == "warn"
    assert "is below 0.05 (fail_below)" in leader.line


def test_a_link_cut_during_the_test_fails_both_nodes(pods: FabricPods, link: Cable) -> None:
    pods.environment |= {"FABRIC_ITERATIONS": "10000", "FABRIC_TEST_TIMEOUT_SECONDS": "20"}
    processes = [pods.start(0), pods.start(1)]
    wait_for_traffic(link)
    link.unplug()
    leader, worker = (pods.wait(rank, process) for rank, process in enumerate(processes))
    assert leader.code == worker.code == ExitCode.COLLECTIVE_FAILED, leader.output + worker.output
    assert "node 0 (node-0): the ranks" in leader.line
    assert "rank 0, 1 in step bandwidth" in leader.line
    assert "node rank 1 left no result" in leader.line
    assert "the leader was lost" in worker.line
    assert "node 1 (node-1): the ranks" in worker.line


@pytest.mark.parametrize(("program", "status"), [("payloads.fabric_ranks", 1), ("torch.distributed.run", -9)])
def test_a_killed_process_names_its_node(pods: FabricPods, link: Cable, program: str, status: int) -> None:
    pods.environment["FABRIC_ITERATIONS"] = "10000"
    processes = [pods.start(0), pods.start(1)]
    wait_for_traffic(link)
    os.kill(pids_of(link, 1, program)[0], signal.SIGKILL)
    leader, worker = (pods.wait(rank, process) for rank, process in enumerate(processes))
    assert leader.code == worker.code == ExitCode.COLLECTIVE_FAILED, leader.output + worker.output
    assert leader.line == worker.line
    assert f"node 1 (node-1): the ranks ended with status {status}" in leader.line
    assert not link.pids(0)
    assert not link.pids(1)


def wait_for_traffic(link: Cable) -> None:
    """Return when the all-reduce is under way: what comes before it is far smaller."""
    until = time.monotonic() + TRAFFIC_SECONDS
    start = link.sent_bytes(0)
    while link.sent_bytes(0) < start + 4 * 2**20:
        assert time.monotonic() < until, "no traffic"
        time.sleep(0.05)


def pids_of(link: Cable, side: int, program: str) -> list[int]:
    """Processes on one side that run this module; the launcher's command line holds the ranks' too."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0") for pid in link.pids(side)}
    return [pid for pid, words in commands.items() if "-m" in words and words[words.index("-m") + 1] == program]
