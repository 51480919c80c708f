"""From the nodes' results to the verdict: thresholds, what blocks, what only warns, and in which order."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from payloads.fabric_run import NodeResult
from payloads.fabric_settings import ExitCode, FabricError, Settings
from payloads.fabric_verdict import Verdict, compare, failed, judge
from payloads.nccl_log import NcclLog, parse
from payloads.reporting import TERMINATION_MESSAGE_BYTES
from tests.payloads import nccl_logs

SETTINGS = Settings.from_environment(
    {
        "FABRIC_NODES": "2",
        "FABRIC_NODE_RANK": "0",
        "FABRIC_LEADER": "gate-0",
        "FABRIC_GPUS": "8",
        "FABRIC_KIND": "efa",
        "FABRIC_NICS": "32",
        "FABRIC_WARN_BELOW": "350",
        "FABRIC_FAIL_BELOW": "150",
    }
)
EFA = parse(nccl_logs.EFA_DIRECT_2_27.splitlines())


def seconds_for(busbw: float) -> float:
    """The time of one all-reduce of 2 GiB over 16 ranks at so many GB/s of bus bandwidth."""
    return SETTINGS.bytes / 1e9 * 2 * 15 / 16 / busbw


def node(rank: int, busbw: float = 466, log: NcclLog = EFA, problem: str = "", **record: Any) -> NodeResult:
    """One node whose eight ranks did well, but for what is given; `record` changes its first rank's."""
    done = {"step": "done", "seconds": [seconds_for(busbw)] * 5}
    records = [{"rank": 8 * rank + local, **done} for local in range(8)]
    records[0] |= record
    return NodeResult(rank=rank, name=f"gpu-{rank}", problem=problem, records=records, log=log, logged=8)


def verdict_of(*results: NodeResult, settings: Settings = SETTINGS) -> Verdict:
    """Judge these nodes' results, with none missing."""
    return judge(settings, results, {})


def test_pass() -> None:
    verdict = verdict_of(node(0), node(1))
    assert (verdict.verdict, verdict.code, verdict.step) == ("pass", 0, "done")
    assert verdict.busbw_gb_per_s == pytest.approx(466)
    assert verdict.algbw_gb_per_s == pytest.approx(466 * 16 / 30, rel=1e-4)
    assert verdict.per_gpu_gb_per_s == pytest.approx(466 / 15, rel=1e-4)
    assert (verdict.transport, verdict.nics, verdict.gpudirect) == ("NET/OFI efa-direct GDRDMA", 32, True)
    assert verdict.line == (
        "fabric test passed: 2 x 8 ranks, all-reduce of 2048 MiB at 466.0 GB/s bus bandwidth (31.1 GB/s per GPU) "
        "over NET/OFI efa-direct GDRDMA, 32 network devices a node; every sum was exact"
    )


@pytest.mark.parametrize(
    ("busbw", "mode", "word", "code"),
    [
        (350.1, "require", "pass", ExitCode.PASS),
        (349.9, "require", "warn", ExitCode.PASS),
        (150.1, "require", "warn", ExitCode.PASS),
        (149.9, "require", "fail", ExitCode.LOW_BANDWIDTH),
        (149.9, "warn", "warn", ExitCode.PASS),
        (0.1, "warn", "warn", ExitCode.PASS),
    ],
)
def test_thresholds(busbw: float, mode: str, word: str, code: ExitCode) -> None:
    verdict = verdict_of(node(0, busbw), node(1, busbw), settings=replace(SETTINGS, mode=mode))
    assert (verdict.verdict, verdict.code) == (word, code)
    if word == "pass":
        assert "below" not in verdict.reason
    else:
        name = "fail_below" if busbw < 150 else "warn_below"
        assert f"GB/s is below {150 if busbw < 150 else 350} ({name})" in verdict.reason


def test_one_slow_all_reduce_does_not_refuse_a_cluster() -> None:
    times = [seconds_for(466)] * 19 + [seconds_for(10)]
    verdict = verdict_of(node(0, seconds=times), node(1))
    assert verdict.verdict == "pass"
    assert verdict.slowest_seconds == pytest.approx(seconds_for(10), rel=1e-4)


def test_a_lost_rail_slows_each_all_reduce() -> None:
    assert verdict_of(node(0, seconds=[seconds_for(120)] * 20), node(1)).code == ExitCode.LOW_BANDWIDTH


@pytest.mark.parametrize("mode", ["require", "warn"])
def test_the_wrong_transport_blocks_in_every_mode(mode: str) -> None:
    tcp = parse((nccl_logs.OFI_FAILED + nccl_logs.SOCKET).splitlines())
    verdict = verdict_of(node(0), node(1, log=tcp), settings=replace(SETTINGS, mode=mode))
    assert (verdict.verdict, verdict.code, verdict.step) == ("fail", ExitCode.WRONG_TRANSPORT, "transport")
    assert verdict.reason.startswith(
        "node 1 (gpu-1): data goes through NET/Socket instead of NET/OFI with provider efa"
    )
    assert verdict.busbw_gb_per_s == pytest.approx(466)


@pytest.mark.parametrize("mode", ["require", "warn"])
def test_a_wrong_sum_blocks_in_every_mode_and_comes_first(mode: str) -> None:
    bad = node(1, 1, problem="the ranks ended with status 1", step="sum", code=16, reason="the sum is wrong on rank 8")
    verdict = verdict_of(node(0, 1), bad, settings=replace(SETTINGS, mode=mode))
    assert (verdict.verdict, verdict.code, verdict.step) == ("fail", ExitCode.WRONG_SUM, "sum")
    assert verdict.reason == "node 1 (gpu-1): the sum is wrong on rank 8"


def test_every_rank_s_log_counts() -> None:
    verdict = verdict_of(node(0), replace(node(1), logged=7))
    assert verdict.code == ExitCode.WRONG_TRANSPORT
    assert verdict.reason == "node 1 (gpu-1): NCCL wrote the log of 7 of 8 ranks"


def test_without_gpudirect_it_warns() -> None:
    log = replace(EFA, gpudirect=False)
    verdict = verdict_of(node(0), node(1, log=log))
    assert (verdict.verdict, verdict.code, verdict.gpudirect) == ("warn", 0, False)
    assert "does not use GPUDirect RDMA" in verdict.reason


def test_ranks_that_stop_are_named_and_the_cause_comes_first() -> None:
    stopped = node(0, problem="stopped when node rank 1 failed", step="bandwidth")
    broken = node(1, problem="the ranks ended with status 1", step="bandwidth", reason="RuntimeError: out of memory")
    verdict = verdict_of(stopped, broken)
    assert (verdict.code, verdict.step) == (ExitCode.COLLECTIVE_FAILED, "collective")
    assert verdict.reason.startswith(
        "node 1 (gpu-1): the ranks ended with status 1 (rank 8 in step bandwidth): RuntimeError: out of memory; "
        "node 0 (gpu-0): stopped when node rank 1 failed"
    )


def test_nccl_that_finds_no_network_is_a_wrong_transport() -> None:
    """With NCCL_NET=OFI or IB the ranks end instead of falling back to TCP."""
    log = parse(
        [*nccl_logs.NO_EFA_DEVICE.splitlines(), "h:1:2 [0] net.cc:349 NCCL WARN Failed to initialize any NET plugin"]
    )
    verdict = verdict_of(*(node(rank, log=log, problem="the ranks ended with status 1", step="sum") for rank in (0, 1)))
    assert verdict.code == ExitCode.WRONG_TRANSPORT
    assert verdict.reason.startswith(
        "NCCL said: NET/OFI OFI fi_getinfo() call failed: No data available; Failed to initialize any NET plugin; "
        "node 0 (gpu-0): the ranks ended with status 1 (rank 0 in step sum)"
    )


def test_a_node_that_left_nothing_is_named() -> None:
    verdict = judge(SETTINGS, [node(0)], {1: "the connection was closed"})
    assert verdict.code == ExitCode.COLLECTIVE_FAILED
    assert verdict.reason == "node rank 1 left no result: the connection was closed"


def test_no_record_at_all_is_no_success() -> None:
    assert verdict_of(node(0), replace(node(1), records=[])).code == ExitCode.COLLECTIVE_FAILED
    assert verdict_of(node(0), replace(node(1), records=node(1).records[:7])).code == ExitCode.COLLECTIVE_FAILED


def test_one_node_says_what_it_does_not_show() -> None:
    settings = replace(SETTINGS, nodes=1, kind="none", nics=0)
    local = NcclLog(local=frozenset({"P2P/CUMEM"}))
    verdict = verdict_of(node(0, log=local), settings=settings)
    assert verdict.verdict == "pass"
    assert (verdict.transport, verdict.per_gpu_gb_per_s) == ("P2P/CUMEM", None)
    assert "nothing about a fabric between nodes" in verdict.reason


def test_nccl_s_other_warnings_are_quoted_too() -> None:
    said = "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60"
    log = NcclLog(warnings=(said,))
    verdict = verdict_of(*(node(rank, log=log, problem="the ranks ended with status 1", step="sum") for rank in (0, 1)))
    assert verdict.code == ExitCode.COLLECTIVE_FAILED
    assert verdict.reason.startswith(f"NCCL said: {said}; node 0 (gpu-0)")


def test_one_rank_alone_has_no_bus() -> None:
    settings = replace(SETTINGS, nodes=1, gpus=1, kind="none", nics=0)
    result = replace(node(0), records=node(0).records[:1])
    verdict = verdict_of(result, settings=settings)
    assert (verdict.verdict, verdict.busbw_gb_per_s) == ("pass", None)
    assert "no other rank to measure with" in verdict.reason


def hello(rank: int, **changes: Any) -> dict[str, Any]:
    """What a node says of itself."""
    versions = {"gpu": "NVIDIA H100 80GB HBM3", "driver": "580.159.03", "nccl": "2.28.9", "torch": "2.13.0"}
    said = {"rank": rank, "name": f"gpu-{rank}", "shared": SETTINGS.shared, "code": 0, "reason": ""}
    return said | {"node": versions | changes.pop("node", {})} | changes


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"shared": SETTINGS.shared | {"GPUS": 4}}, ExitCode.BAD_CONFIGURATION, "given FABRIC_GPUS=4, the leader 8"),
        ({"code": 12, "reason": "7 GPUs are visible"}, ExitCode.GPU_COUNT, "node 1 (gpu-1): 7 GPUs are visible"),
        ({"code": 13, "reason": "31 devices"}, ExitCode.FABRIC_DEVICES, "node 1 (gpu-1): 31 devices"),
        ({"node": {"driver": "570.1"}}, ExitCode.VERSIONS_DIFFER, "driver versions differ: node 0 (gpu-0) 580.159.03,"),
        ({"node": {"nccl": "2.27.7"}}, ExitCode.VERSIONS_DIFFER, "node 1 (gpu-1) 2.27.7"),
    ],
)
def test_nodes_that_do_not_fit(changes: dict[str, Any], code: ExitCode, reason: str) -> None:
    compare(SETTINGS, [hello(0), hello(1)])
    with pytest.raises(FabricError) as caught:
        compare(SETTINGS, [hello(0), hello(1, **changes)])
    assert caught.value.code == code
    assert reason in str(caught.value)


def test_a_result_survives_the_wire() -> None:
    result = node(1, log=replace(EFA, warnings=("one", "two")), reason="x")
    assert NodeResult.from_message(json.loads(json.dumps(result.as_message()))) == result


def test_the_longest_verdict_fits_into_the_termination_message() -> None:
    many = [node(rank, problem="x" * 2000, reason="y" * 2000, step="sum") for rank in range(9)]
    for verdict in (verdict_of(*many), failed(SETTINGS, ExitCode.COLLECTIVE_FAILED, "z" * 10000)):
        assert len(verdict.text.encode()) < TERMINATION_MESSAGE_BYTES
        assert json.loads(verdict.text.splitlines()[-1])["code"] == ExitCode.COLLECTIVE_FAILED


def test_the_text_is_one_line_and_one_object() -> None:
    line, last = failed(SETTINGS, ExitCode.PEERS_MISSING, "first\nsecond").text.splitlines()
    assert line.startswith("fabric test failed (peers): first")
    assert json.loads(last)["step"] == "peers"
