"""NCCL's log: which network it says it uses, in the words of many versions."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from payloads.nccl_log import NcclLog, parse, why_not
from tests.payloads import nccl_logs

IB_8 = "NCCL INFO NET/IB : Using " + " ".join(f"[{n}]mlx5_{n}:1/IB" for n in range(8)) + " [RO]; OOB eth0:10.0.0.1<0>\n"


def read(*logs: str) -> NcclLog:
    """Parse the texts as one log."""
    return parse("".join(logs).splitlines())


@pytest.mark.parametrize(
    ("text", "transport", "nics"),
    [
        (nccl_logs.EFA_DIRECT_2_27, "NET/OFI efa-direct GDRDMA", 32),
        (nccl_logs.EFA_P5EN + nccl_logs.OLD_EFA, "NET/OFI efa", 16),
        (nccl_logs.OLD_EFA, "NET/AWS Libfabric", None),
        (nccl_logs.SOCKET, "NET/Socket", None),
        (nccl_logs.IB_GDRDMA, "NET/IB GDRDMA", None),
        (nccl_logs.IB_VLLM, "NET/IB GDRDMA", None),
        (nccl_logs.IB_WITHOUT_GPUDIRECT, "NET/IB", None),
        (nccl_logs.IB_SHARP_4, None, 4),
        (nccl_logs.ROCE_2, None, 0),
        (nccl_logs.ROCE_MERGED, None, 0),
        (nccl_logs.ROCE_MERGED.replace("RoCE", "IB"), None, 2),
        (nccl_logs.OFI_FAILED, None, None),
        (IB_8, None, 8),
        # NVIDIA/nccl src/transport/net_ib/init.cc, June 2026: rail and plane may follow the port.
        ("NET/IB : Using [0]mlx5_0:1:0:1/IB [1]mlx5_1:1::1/IB ; OOB eth0:10.0.0.1<0>", None, 2),
    ],
)
def test_transport_and_devices(text: str, transport: str | None, nics: int | None) -> None:
    log = read(text)
    assert (log.transport, log.libfabric_nics if log.hcas is None else log.hcas) == (transport, nics)


@pytest.mark.parametrize(
    ("suffix", "gpudirect"),
    [("", False), ("/GDRDMA", True), ("/GDRDMA(PCI)", True), ("(1)/GDRDMA/Shared", True), ("(1)/Shared", False)],
)
def test_every_channel_suffix_of_nccl_s_source(suffix: str, gpudirect: bool) -> None:
    """NVIDIA/nccl src/transport/net.cc: `NET/%s/%d(%d)%s%s%s` with the proxy's rank, GDRDMA, (PCI) and Shared."""
    log = read(f"NCCL INFO Channel 00/0 : 3[3] -> 14[6] [send] via NET/Libfabric/3{suffix}")
    assert log.channels == {"Libfabric"}
    assert log.gpudirect is gpudirect


def test_one_channel_without_gpudirect_is_enough_to_say_no() -> None:
    assert not read(nccl_logs.IB_GDRDMA, nccl_logs.IB_WITHOUT_GPUDIRECT).gpudirect


@pytest.mark.parametrize(
    ("text", "version"), [(nccl_logs.VERSION_2_28, "2.28.9+cuda13.0"), (nccl_logs.VERSION_2_19, "2.19.3+cuda12.3")]
)
def test_version(text: str, version: str) -> None:
    assert read(text).version == version


def test_efa_direct_with_all_devices_is_good() -> None:
    assert why_not(read(nccl_logs.EFA_DIRECT_2_27), kind="efa", nics=32) is None


@pytest.mark.parametrize("log", [nccl_logs.IB_VLLM + IB_8, nccl_logs.IB_GDRDMA + nccl_logs.IB_SHARP_4 * 2 + IB_8])
def test_infiniband_with_all_devices_is_good(log: str) -> None:
    nics = 8 if "SHARP" not in log else 4
    assert why_not(read(log), kind="infiniband", nics=nics) is None


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("efa", nccl_logs.OFI_FAILED + nccl_logs.SOCKET, "data goes through NET/Socket instead of NET/OFI"),
        ("efa", nccl_logs.OFI_FAILED + nccl_logs.SOCKET, "NCCL said: NET/OFI aws-ofi-nccl initialization failed"),
        ("efa", nccl_logs.OFI_FAILED, "no channel through NET/OFI"),
        ("efa", nccl_logs.NO_EFA_DEVICE, "NCCL said: NET/OFI OFI fi_getinfo() call failed: No data available"),
        ("efa", nccl_logs.EFA_P5EN + nccl_logs.OLD_EFA, "NCCL found 16 EFA devices instead of 32"),
        ("efa", nccl_logs.EFA_DIRECT_2_27.replace("is efa,", "is tcp,"), "libfabric's provider is tcp instead of efa"),
        ("efa", nccl_logs.OLD_EFA, "provider is not named in the log instead of efa"),
        ("efa", nccl_logs.IB_VLLM, "data goes through NET/IB instead of NET/OFI with provider efa"),
        ("efa", "", "no channel through NET/OFI"),
        ("infiniband", nccl_logs.NO_IB + nccl_logs.SOCKET, "data goes through NET/Socket instead of NET/IB"),
        ("infiniband", nccl_logs.EFA_DIRECT_2_27, "data goes through NET/Libfabric instead of NET/IB"),
        ("infiniband", nccl_logs.IB_VLLM + nccl_logs.IB_SHARP_4, "NCCL found 4 InfiniBand HCAs instead of 8"),
        ("infiniband", nccl_logs.IB_VLLM + nccl_logs.ROCE_2, "NCCL found no InfiniBand HCAs instead of 8"),
        ("infiniband", nccl_logs.IB_VLLM + nccl_logs.SOCKET, "data goes through NET/Socket instead of NET/IB"),
    ],
)
def test_what_does_not_prove_the_fabric(kind: str, text: str, reason: str) -> None:
    found = why_not(read(text), kind=kind, nics=32 if kind == "efa" else 8)
    assert found is not None
    assert reason in found


def sixteen_ranks(network: str = "Libfabric") -> list[str]:
    """The lines of 16 ranks on two nodes, in the format of the p5 log above, in no order."""
    lines = []
    for rank in range(16):
        prefix = f"node-{rank // 8}:{100 + rank}:{200 + rank} [{rank % 8}] NCCL INFO"
        peer = (rank + 8) % 16
        used = network if rank == 11 else "Libfabric"
        lines += [
            f"{prefix} NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)",
            f"{prefix} Using network Libfabric",
            f"{prefix} Channel 00/0 : {rank}[{rank % 8}] -> {rank ^ 1}[{(rank ^ 1) % 8}] via P2P/CUMEM/read",
            f"{prefix} Channel 01/0 : {rank}[{rank % 8}] -> {peer}[{peer % 8}] [send] via NET/{used}/{rank % 8}/GDRDMA",
        ]
    random.Random(16).shuffle(lines)  # noqa: S311  reproducible, no secret
    return lines


def test_sixteen_ranks_in_one_stream() -> None:
    log = parse(sixteen_ranks())
    assert (log.transport, log.libfabric_nics) == ("NET/OFI efa-direct GDRDMA", 32)
    assert log.local == {"P2P/CUMEM"}
    assert why_not(log, kind="efa", nics=32) is None


def test_one_rank_of_sixteen_on_tcp_is_found() -> None:
    reason = why_not(parse(sixteen_ranks("Socket")), kind="efa", nics=32)
    assert reason is not None
    assert "data goes through NET/Socket" in reason


def test_one_rank_of_sixteen_with_fewer_devices_is_found() -> None:
    lines = sixteen_ranks()
    first = next(index for index, line in enumerate(lines) if "found 32 nics" in line)
    lines[first] = lines[first].replace("32 nics", "31 nics")
    assert why_not(parse(lines), kind="efa", nics=32) == "NCCL found 31 EFA devices instead of 32"


@pytest.mark.parametrize("text", [nccl_logs.OFI_FAILED + nccl_logs.SOCKET, nccl_logs.EFA_P5EN + nccl_logs.OLD_EFA])
def test_a_log_that_breaks_off_anywhere_proves_nothing_that_the_whole_one_does_not(text: str) -> None:
    for end in range(len(text)):
        assert why_not(parse(text[:end].splitlines()), kind="efa", nics=32) is not None


def own_log(name: str) -> NcclLog:
    """A whole log of this test's own runs on one H200 (NCCL 2.28.9, torch 2.11.0+cu130, 1 December 2026)."""
    return parse((Path(__file__).parent / "logs" / f"nccl-2.28.9-{name}.log").read_text().splitlines())


def test_own_run_over_sockets() -> None:
    """Two ranks on one GPU, told by NCCL_HOSTID that they are on two hosts: NCCL goes through the network."""
    log = own_log("two-hosts-over-sockets")
    assert (log.version, log.transport, log.networks) == ("2.28.9+cuda13.0", "NET/Socket", frozenset({"Socket"}))
    assert (log.libfabric_nics, log.hcas, log.gpudirect) == (None, 0, False)
    assert why_not(log, kind="efa", nics=32) == (
        "data goes through NET/Socket instead of NET/OFI with provider efa; "
        "NCCL said: NET/Plugin: Could not find: libnccl-net.so; NET/IB : No device found"
    )


def test_own_run_that_asked_for_a_plugin_that_is_not_there() -> None:
    """NCCL_NET=OFI in an image without aws-ofi-nccl."""
    log = own_log("no-plugin")
    assert log.transport is None
    assert log.network_warnings == ("Failed to initialize any NET plugin",)


def test_own_run_with_one_gpu_for_two_ranks() -> None:
    log = own_log("one-gpu-twice")
    assert log.warnings == ("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60",)
    assert not log.network_warnings
