"""The gate between GPU nodes and serving, on the stand-in: what it stops, what it lets through, when it runs again.

The tests of this file run in order on one stack. Their Jobs end as they are told, with the texts that the payloads
write; no GPU computes and no fabric carries a byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from payloads.fabric_settings import ExitCode
from payloads.node_check import ExitCode as CheckCode
from simulation import control_plane
from simulation.control_plane import jobs
from tests.payloads.test_fabric_verdict import node, verdict_of
from tests.stack.simulated import Run, SimulatedStack, make

pytestmark = pytest.mark.slow

NAMESPACE = ("--namespace", "kimi-k25")
CHECK, TEST, BOARD = "kimi-k25-fabric-check", "kimi-k25-fabric-test", "kimi-k25-fabric-verdict"
SLOW, FAST = 41.3, 466.2
"""GB/s of bus bandwidth: TCP beside EFA."""
REPAIRED, NEWER = "registry.example/vllm:0.27.1-repaired", "registry.example/vllm:0.27.1-newer"
LACKING = "GPU nodes are not ready: ip-10-0-64-14.ec2.internal offers 7 of 8 nvidia.com/gpu (waited 900 s)"
ANNOUNCED = "2 x p5.48xlarge are running: 110.08 USD per hour"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedStack]:
    """The default stack, not up yet; whatever a test left running is ended by its own process ids."""
    folder: Path = tmp_path_factory.mktemp("gate")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SIMULATION_HOME", str(folder / "home"))
        try:
            yield make(folder / "project", cluster=True)
        finally:
            control_plane.stop()


@pytest.fixture(autouse=True)
def _jobs_end_well_again(stack: SimulatedStack) -> Iterator[None]:  # noqa: ARG001 - in the home of the stack
    yield
    jobs.reset()


def measures(busbw: float, seconds: float = 0) -> str:
    """Has the test end as it would with that bandwidth; returns the line that it writes for people."""
    verdict = verdict_of(node(0, busbw), node(1, busbw))
    board = {"phase": "complete", "message": verdict.line, "verdict": verdict.text.partition("\n")[2]}
    jobs.finish(TEST, exit_code=verdict.code, message=verdict.text, config_map={BOARD: board}, seconds=seconds)
    return verdict.line


def refused(stack: SimulatedStack) -> Run:
    """An `up` that fails, serves nothing, and says what runs and what stops it."""
    run = stack.pulumi("up", "--yes", "--skip-preview")
    assert run.status != 0, run.text
    assert ANNOUNCED in run.text, run.text
    assert "pulumi config set --path deployment.gpuNodes.count 0 && pulumi up" in run.text
    assert stack.get("leaderworkerset", *NAMESPACE) == []
    return run


def job(stack: SimulatedStack, name: str) -> dict[str, Any]:
    return stack.get("job", *NAMESPACE, name)[0]


def uids(stack: SimulatedStack) -> list[str]:
    """Of both Jobs of the gate."""
    return [str(job(stack, name)["metadata"]["uid"]) for name in (CHECK, TEST)]


def image_of(template: dict[str, Any]) -> str:
    return str(template["spec"]["containers"][0]["image"])


def gang(stack: SimulatedStack) -> dict[str, Any]:
    (found,) = stack.get("leaderworkerset", *NAMESPACE)
    return found


def pods(stack: SimulatedStack, selector: str) -> list[dict[str, Any]]:
    return stack.get("pods", *NAMESPACE, f"--selector={selector}")


def gate_pods(stack: SimulatedStack) -> list[dict[str, Any]]:
    return pods(stack, f"batch.kubernetes.io/job-name={TEST}")


def test_a_node_that_is_not_whole_is_named_and_no_test_is_started(stack: SimulatedStack) -> None:
    jobs.finish(CHECK, exit_code=CheckCode.NOT_THERE, message=LACKING)
    run = refused(stack)
    assert LACKING in run.text, run.text
    assert TEST not in {found["metadata"]["name"] for found in stack.get("job", *NAMESPACE)}


def test_a_slow_fabric_stops_the_up_with_what_was_measured(stack: SimulatedStack) -> None:
    line = measures(SLOW)
    run = refused(stack)
    assert "41.3 GB/s" in line
    assert line in run.text, run.text
    ends = [pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in gate_pods(stack)]
    assert ends == [ExitCode.LOW_BANDWIDTH] * 2


def test_the_next_up_tests_again_and_then_serves_and_tells_the_figures(stack: SimulatedStack) -> None:
    failed = uids(stack)
    measures(FAST)
    stack.set("serving.image", REPAIRED)
    stack.up()
    checked, tested = uids(stack)
    assert image_of(job(stack, TEST)["spec"]["template"]) == REPAIRED, "a test that its image failed could not pass"
    assert checked == failed[0], "the nodes were whole"
    assert tested != failed[1]
    assert stack.output("fabric") == {
        "verdict": "pass",
        "busbw_gb_per_s": pytest.approx(FAST),
        "transport": "NET/OFI efa-direct GDRDMA",
        "nics": 32,
    }
    assert job(stack, TEST)["status"]["completionTime"] <= gang(stack)["metadata"]["creationTimestamp"]
    stack.ok("up", "--yes", "--skip-preview", "--refresh", "--expect-no-changes")


def test_another_image_replaces_the_gang_and_proves_nothing_anew(stack: SimulatedStack) -> None:
    jobs_before, gang_before = uids(stack), gang(stack)["metadata"]["uid"]
    stack.set("serving.image", NEWER)
    steps = stack.up_steps()
    assert {step.name for step in steps} == {"serving-gang"}, steps
    assert uids(stack) == jobs_before
    assert image_of(job(stack, TEST)["spec"]["template"]) == REPAIRED
    assert gang(stack)["metadata"]["uid"] != gang_before
    assert stack.output("fabric")["busbw_gb_per_s"] == pytest.approx(FAST)


def test_other_nodes_of_the_same_kind_are_tested_before_the_gang_gets_them_back(stack: SimulatedStack) -> None:
    before, serving = uids(stack), gang(stack)["metadata"]["uid"]
    leaders = {pod["metadata"]["uid"] for pod in pods(stack, "leaderworkerset.sigs.k8s.io/name=kimi-k25")}
    assert len(leaders) == 2
    measures(FAST, seconds=3)
    stack.set("gpuNodes.amiRelease", "1.35.4-20260720")
    stack.up()
    assert not set(uids(stack)) & set(before)
    assert gang(stack)["metadata"]["uid"] == serving, "the gang was not deleted: it had to yield"
    preempted = stack.get("events", *NAMESPACE, "--field-selector=reason=Preempted")
    assert preempted, "the gang held every GPU"
    assert {event["involvedObject"]["name"] for event in preempted} <= {"kimi-k25-0", "kimi-k25-0-1"}
    assert len({pod["spec"]["nodeName"] for pod in gate_pods(stack)}) == 2, "one pod a node, at the same time"
    again = {pod["metadata"]["uid"] for pod in pods(stack, "leaderworkerset.sigs.k8s.io/name=kimi-k25")}
    assert not again & leaders


def test_another_node_group_is_tested_before_the_new_gang(stack: SimulatedStack) -> None:
    before = uids(stack)
    measures(FAST)
    stack.set("gpuNodes.instanceType", "p5e.48xlarge")
    stack.up()
    assert not set(uids(stack)) & set(before)
    assert image_of(job(stack, TEST)["spec"]["template"]) == NEWER
    assert job(stack, TEST)["status"]["completionTime"] <= gang(stack)["metadata"]["creationTimestamp"]
    nodes = {pod["spec"]["nodeName"] for pod in gate_pods(stack)}
    kinds = {found["metadata"]["labels"]["node.kubernetes.io/instance-type"] for found in stack.get("nodes", *nodes)}
    assert kinds == {"p5e.48xlarge"}
