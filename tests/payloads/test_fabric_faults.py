"""Real ranks (Gloo, loopback) with something wrong, put in from outside the payload: a `sitecustomize` module that only
the ranks load, or a launcher that starts too few of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from payloads.fabric_settings import ExitCode
from tests import tools
from tests.payloads import nccl_logs
from tests.payloads.fabric_pods import FabricPods
from tests.payloads.fabric_stand_ins import add_device
from tests.payloads.kubernetes_server import kubernetes_server

pytestmark = pytest.mark.slow

WRONG_ON_RANK_3 = """
from torch import distributed
real = distributed.all_reduce
def all_reduce(tensor, *arguments, **named):
    result = real(tensor, *arguments, **named)
    if distributed.get_rank() == 3:
        tensor[5000 % tensor.numel()] += 1
    return result
distributed.all_reduce = all_reduce
"""
"""One element is wrong on one rank, as a broken memory or link would leave it."""

LOG_OF_NCCL = """
from pathlib import Path
Path(os.environ["FABRIC_RESULTS"], f"nccl-{{os.environ['RANK']}}.log").write_text({text!r})
"""
"""The log that NCCL would have written; Gloo writes none."""

ONE_RANK_TOO_FEW = """
import sys
from payloads import fabric_run, fabric_test
command = fabric_run.launch_command
def fewer(settings):
    words = command(settings)
    words[words.index("--nproc-per-node") + 1] = "1"
    return words
fabric_run.launch_command = fewer
sys.exit(fabric_test.main())
"""


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[FabricPods]:
    """Two nodes of two ranks on loopback."""
    if not tools.vllm_is_ready():
        pytest.fail("no torch: run `python -m tests.tools`")
    pods = FabricPods(root=tmp_path, python=str(tools.vllm_python()))
    yield pods
    pods.end()


def in_each_rank(folder: Path, code: str) -> dict[str, str]:
    """Variables with which every rank, and no other process, runs this code first."""
    folder.mkdir()
    lines = "".join(f"    {line}\n" for line in code.strip().splitlines())
    (folder / "sitecustomize.py").write_text(f"import os\nif 'LOCAL_RANK' in os.environ:\n{lines}")
    return {"PYTHONPATH": str(folder)}


def test_a_wrong_sum_names_the_rank(pods: FabricPods, tmp_path: Path) -> None:
    pods.environment |= in_each_rank(tmp_path / "site", WRONG_ON_RANK_3)
    leader, worker = pods.run()
    assert leader.code == worker.code == ExitCode.WRONG_SUM, leader.output
    # Place 5000 of the pattern 0 … 4098 that each of the four ranks adds its own number to.
    wanted = 4 * (5000 - 4099) + 0 + 1 + 2 + 3
    assert (
        "node 1 (node-1): the all-reduce's sum is wrong on rank 3: 1 of 65536 elements, the first at 5000: "
        f"{wanted + 1} instead of {wanted}" in leader.line
    )


def test_too_few_ranks(pods: FabricPods) -> None:
    processes = [pods.start(0), pods.start_program(1, "-c", ONE_RANK_TOO_FEW)]
    leader, worker = (pods.wait(rank, process) for rank, process in enumerate(processes))
    assert leader.code == worker.code == ExitCode.GPU_COUNT, leader.output
    assert "3 ranks met instead of 4" in leader.line


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        (nccl_logs.EFA_DIRECT_2_27, ExitCode.PASS, "over NET/OFI efa-direct GDRDMA, 32 network devices a node"),
        (
            nccl_logs.OFI_FAILED + nccl_logs.SOCKET,
            ExitCode.WRONG_TRANSPORT,
            "node 0 (node-0): data goes through NET/Socket instead of NET/OFI with provider efa; "
            "NCCL said: NET/OFI aws-ofi-nccl initialization failed",
        ),
        ("", ExitCode.WRONG_TRANSPORT, "node 0 (node-0): NCCL's log shows no channel through NET/OFI"),
    ],
)
def test_the_transport_that_the_log_shows_decides(
    pods: FabricPods, tmp_path: Path, text: str, code: ExitCode, reason: str
) -> None:
    for number in range(32):
        add_device(tmp_path / "root", number, driver="efa", layer="Unspecified")
    pods.environment |= {"FABRIC_KIND": "efa", "FABRIC_NICS": "32", "FABRIC_ROOT": str(tmp_path / "root")}
    if text:
        pods.environment |= in_each_rank(tmp_path / "site", LOG_OF_NCCL.format(text=text))
    leader, worker = pods.run()
    assert leader.code == worker.code == code, leader.output
    assert reason in leader.line
    assert leader.verdict["busbw_gb_per_s"] > 0


def test_one_node_tests_its_inner_links_and_posts_the_verdict(pods: FabricPods, tmp_path: Path) -> None:
    account = tmp_path / "account"
    account.mkdir()
    with kubernetes_server(account) as server:
        pods.environment |= {
            "FABRIC_NODES": "1",
            "FABRIC_CONFIGMAP": "fabric-verdict",
            "FABRIC_CONFIGMAP_NAMESPACE": "serving",
            "FABRIC_SERVICE_ACCOUNT": str(account),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(server.port),
        }
        (leader,) = pods.run({})
    assert leader.code == ExitCode.PASS, leader.output
    assert "One node: this shows the links inside it, nothing about a fabric between nodes" in leader.line
    reports = [body["data"] for _, _, body in server.patches]
    assert [report["phase"] for report in reports] == ["peers", "measuring", "complete"]
    assert reports[-1]["message"] == leader.line
    assert json.loads(reports[-1]["verdict"]) == leader.verdict
