"""A stack's life on the stand-in: up, every kind of change, failures, destroy.

The tests of this file run in order on one stack; each leaves it up and unchanged for the next.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulation import control_plane, paths
from simulation.aws.store import Store
from simulation.control_plane import jobs
from tests.stack.simulated import SimulatedStack, Step, make

pytestmark = pytest.mark.slow

NAMESPACE = ("--namespace", "kimi-k25")
GANG = "kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedStack]:
    """The default stack, up; whatever a test left running is ended by its own process ids."""
    folder: Path = tmp_path_factory.mktemp("life")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SIMULATION_HOME", str(folder / "home"))
        made = make(folder / "project", cluster=True)
        try:
            made.up()
            yield made
        finally:
            control_plane.stop()


def gang_pods(stack: SimulatedStack) -> list[dict[str, Any]]:
    return stack.get("pods", *NAMESPACE, "--selector=leaderworkerset.sigs.k8s.io/name=kimi-k25")


def test_leader_and_worker_run_on_two_nodes_with_all_their_devices(stack: SimulatedStack) -> None:
    pods = gang_pods(stack)
    assert len(pods) == 2
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    nodes = {pod["spec"]["nodeName"] for pod in pods}
    assert len(nodes) == 2
    for pod in pods:
        limits = pod["spec"]["containers"][0]["resources"]["limits"]
        assert (limits["nvidia.com/gpu"], limits["vpc.amazonaws.com/efa"]) == ("8", "32")
        names = {entry["name"] for entry in pod["spec"]["containers"][0]["env"]}
        assert {"LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"} <= names
    types = {node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in stack.get("nodes", *nodes)}
    assert types == {"p5.48xlarge"}


def test_the_gang_is_available_and_was_made_after_the_weights_were_staged(stack: SimulatedStack) -> None:
    (gang,) = stack.get("leaderworkerset", *NAMESPACE)
    assert {"type": "Available", "status": "True"}.items() <= {
        key: entry[key] for entry in gang["status"]["conditions"] if entry["type"] == "Available" for key in entry
    }.items()
    (job,) = stack.get("job", *NAMESPACE, "kimi-k25-staging")
    assert job["status"]["succeeded"] == 1
    assert job["status"]["completionTime"] <= gang["metadata"]["creationTimestamp"]


def test_a_second_up_changes_nothing(stack: SimulatedStack) -> None:
    stack.ok("up", "--yes", "--skip-preview", "--expect-no-changes")
    stack.ok("up", "--yes", "--skip-preview", "--refresh", "--expect-no-changes")


def test_the_exported_state_holds_no_secret_in_plain_text(stack: SimulatedStack) -> None:
    key = stack.ok("config", "get", "apiKey").strip()
    assert key
    assert key not in stack.ok("stack", "export")


def test_a_serving_parameter_touches_the_gang_alone(stack: SimulatedStack) -> None:
    stack.set("serving.maxNumSeqs", 32)
    steps = stack.up_steps()
    assert {(step.type, step.name) for step in steps} == {(GANG, "serving-gang")}
    (gang,) = stack.get("leaderworkerset", *NAMESPACE)
    arguments = gang["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]["containers"][0]["args"]
    assert arguments[arguments.index("--max-num-seqs") + 1] == "32"


def test_another_instance_type_replaces_the_node_group_delete_first(stack: SimulatedStack) -> None:
    stack.set("gpuNodes.instanceType", "p5en.48xlarge")
    steps = stack.up_steps()
    assert Step(operation="update", type=TEMPLATE, name="gpu-nodes-template") in steps
    group = [step.operation for step in steps if step.name == "gpu-nodes-group"]
    assert group.index("delete-replaced") < group.index("create-replacement")
    placed = {"device-plugins-nvidia-device-plugin", "fabric-gate-check", "fabric-gate-test"}
    assert {step.name for step in steps} == {"gpu-nodes-template", "gpu-nodes-group", *placed, "serving-gang"}
    limits = gang_pods(stack)[0]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["vpc.amazonaws.com/efa"] == "16"


def test_zero_nodes_pause_the_stack_and_two_resume_it(stack: SimulatedStack) -> None:
    stack.set("gpuNodes.count", 0)
    stack.up()
    assert gang_pods(stack) == []
    assert not stack.get("nodes", "--selector=vllm-multinode/role=gpu")
    assert stack.get("persistentvolumeclaims", *NAMESPACE)
    stack.set("gpuNodes.count", 2)
    stack.up()
    assert len(gang_pods(stack)) == 2


def test_a_group_that_was_scaled_down_behind_the_stacks_back_resumes_with_refresh(stack: SimulatedStack) -> None:
    with Store(paths.aws_store()).transaction() as view:
        group = next(row for row in view.rows(NODE_GROUP) if row.name == "gpu-nodes-group")
        group.state["scalingConfig"] |= {"minSize": 0, "desiredSize": 0}
        view.put(group)
    text = stack.ok("up", "--yes", "--skip-preview", "--refresh", "--diff")
    assert "desiredSize: 0 => 2" in text, text
    assert len(gang_pods(stack)) == 2


def test_a_larger_file_system_grows_and_a_smaller_one_is_made_anew_with_its_volume(stack: SimulatedStack) -> None:
    stack.set("weights.capacityGib", 4800)
    grown = {step.name: step.operation for step in stack.up_steps() if "Lustre" in step.type}
    assert grown == {"weights-lustre": "update"}
    (before,) = stack.get("persistentvolumes")
    stack.set("weights.capacityGib", 2400)
    stack.up()
    (after,) = stack.get("persistentvolumes")
    assert after["spec"]["csi"]["volumeHandle"] != before["spec"]["csi"]["volumeHandle"]
    (claim,) = stack.get("persistentvolumeclaims", *NAMESPACE)
    assert claim["spec"]["volumeName"] == after["metadata"]["name"]
    pod = gang_pods(stack)[0]
    mounted = {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in pod["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    }
    assert mounted == {claim["metadata"]["name"]}
    (job,) = stack.get("job", *NAMESPACE, "kimi-k25-staging")
    assert job["status"]["succeeded"] == 1, "a new file system is empty: it must be staged again"


def test_missing_capacity_fails_the_update_and_the_next_one_goes_on(stack: SimulatedStack) -> None:
    stack.faults = "eks:NodeGroup/gpu-nodes-group=InsufficientInstanceCapacity:1"
    stack.set("gpuNodes.instanceType", "p5.48xlarge")
    run = stack.pulumi("up", "--yes", "--skip-preview")
    assert run.status != 0
    assert "InsufficientInstanceCapacity" in run.text
    stack.up()
    stack.faults = ""
    assert len(gang_pods(stack)) == 2


def test_a_failed_staging_job_shows_its_reason_and_runs_again(stack: SimulatedStack) -> None:
    former = "4d01dfe0332d63057c186e0b262165819efb6611"
    jobs.finish("kimi-k25-staging", exit_code=12, message="the Hub knows no such revision")
    stack.set("weights.revision", "0" * 40)
    run = stack.pulumi("up", "--yes", "--skip-preview")
    assert run.status != 0
    assert "the Hub knows no such revision" in run.text, run.text
    jobs.reset()
    stack.set("weights.revision", former)
    stack.up()
    (job,) = stack.get("job", *NAMESPACE, "kimi-k25-staging")
    assert job["status"]["succeeded"] == 1


def test_the_cluster_is_not_deleted_over_what_it_still_holds_and_then_leaves_nothing(stack: SimulatedStack) -> None:
    stack.kubectl("create", "namespace", "forgotten")
    refused = stack.destroy()
    assert refused.status != 0
    assert "Namespace forgotten" in refused.text, refused.text
    stack.kubectl("delete", "namespace", "forgotten")
    done = stack.destroy()
    assert done.status == 0, done.text
    assert Store(paths.aws_store()).is_empty()
    assert stack.state() == []
    assert not paths.control_plane().exists()


def test_no_process_of_the_stack_is_left(stack: SimulatedStack) -> None:
    home = str(paths.home())
    running = [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if home in _read(path) and path.parent.name != str(os.getpid())
    ]
    assert stack.state() == []
    assert running == []


def _read(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
