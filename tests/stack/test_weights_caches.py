"""Weights on disks of nodes and on a kept file system, on the stand-in: up, destroy, what stays, who adopts it.

The tests of this file run in order on one stack, which goes down and comes up again. No byte of weights moves: buckets
hold as many objects as they are told, staging ends as it is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from payloads.staging_settings import ExitCode
from simulation import control_plane, paths, retained
from simulation.aws import objects
from simulation.aws.account import Account
from simulation.aws.kubernetes import NoKubernetes
from simulation.aws.resources.common import BUCKET, NODE_GROUP
from simulation.aws.store import Row, Store
from simulation.control_plane import jobs
from tests.simulation.aws import world
from tests.simulation.timeline import Span, spans
from tests.stack.simulated import SimulatedStack, make

pytestmark = pytest.mark.slow

NAMESPACE = ("--namespace", "kimi-k25")
STAGING = "kimi-k25-staging"
REASON = "weight staging failed (no_space): the scratch space holds 80 GB, 100 GB are needed"
STAGED_IN = 8
"""Seconds that staging lasts where order is looked at: the GPU nodes take six."""

THEIRS = {"main", "subnet-0", "subnet-1", "subnet-2"}
"""What `tests.simulation.aws.world` calls a network of somebody else's."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedStack]:
    """A stack with weights on the nodes' disks, not up yet; what a test left running is ended by its process ids."""
    folder: Path = tmp_path_factory.mktemp("caches")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SIMULATION_HOME", str(folder / "home"))
        try:
            made = make(folder / "project", cluster=True)
            made.change("weights", kind="nvme", retain=True, capacityGib=None, throughputPerTib=None)
            yield made
        finally:
            control_plane.stop()


def rows(token: str) -> list[Row]:
    return [row for row in Store(paths.aws_store()).list_resources() if row.type == token]


def kept() -> dict[str, str]:
    """What outlived the stack: ids by logical name."""
    return {one.name: one.id for one in retained.listed()}


def staging_and_gpu_nodes(stack: SimulatedStack) -> tuple[Span, Span]:
    """When an `up` made the two, with a staging Job that takes its time."""
    jobs.finish(STAGING, seconds=STAGED_IN)
    found = spans(stack.up_events())
    jobs.reset()
    staging = found["staging-job"]
    assert staging.end - staging.begin >= STAGED_IN - 1
    return staging, found["gpu-nodes-group"]


def destroyed(stack: SimulatedStack) -> str:
    done = stack.destroy()
    assert done.status == 0, done.text
    assert stack.state() == []
    return done.text


class TestDisksOfTheNodes:
    def test_failed_staging_says_why_before_a_gpu_node_exists(self, stack: SimulatedStack) -> None:
        jobs.finish(STAGING, exit_code=ExitCode.NO_SPACE, message=REASON)
        run = stack.pulumi("up", "--yes", "--skip-preview")
        assert run.status != 0
        assert REASON in run.text, run.text
        assert [row.name for row in rows(NODE_GROUP)] == ["system-nodes-group"]

    def test_the_next_up_stages_again_and_nodes_boot_meanwhile_if_told_so(self, stack: SimulatedStack) -> None:
        stack.change("weights", start="overlap")
        stack.variables["SIMULATE_SECONDS_PER_MINUTE"] = "1"
        staging, gpu_nodes = staging_and_gpu_nodes(stack)
        del stack.variables["SIMULATE_SECONDS_PER_MINUTE"]
        assert gpu_nodes.overlaps(staging)
        (fill,) = stack.get("daemonset", *NAMESPACE)
        assert fill["status"]["numberReady"] == 2

    def test_nothing_changes_after_that(self, stack: SimulatedStack) -> None:
        stack.ok("up", "--yes", "--skip-preview", "--refresh", "--expect-no-changes")

    def test_a_kept_bucket_outlives_the_stack_alone(self, stack: SimulatedStack) -> None:
        (bucket,) = rows(BUCKET)
        objects.fill(bucket.id, 64)
        assert "weights-bucket deleted [retain]" in re.sub(r" \([\d.]+s\)", " ", destroyed(stack))
        assert kept() == {"weights-bucket": bucket.id}
        assert "retained: s3:Bucket weights-bucket" in str(retained.listed()[0])

    def test_the_next_up_adopts_it_and_pays_for_gpu_nodes_once_it_is_filled(self, stack: SimulatedStack) -> None:
        stack.change("weights", start="after_staging")
        (bucket,) = rows(BUCKET)
        staging, gpu_nodes = staging_and_gpu_nodes(stack)
        assert kept() == {}
        (adopted,) = rows(BUCKET)
        assert adopted.id == bucket.id
        assert gpu_nodes.begin >= staging.end

    def test_a_bucket_that_is_not_kept_goes_with_what_it_holds(self, stack: SimulatedStack) -> None:
        stack.change("weights", retain=False)
        stack.up()
        (bucket,) = rows(BUCKET)
        objects.fill(bucket.id, 64)
        destroyed(stack)
        assert Store(paths.aws_store()).is_empty()


def network() -> dict[str, str]:
    """A VPC that somebody else has made, as the stack file names it."""
    account = Account(store=Store(paths.aws_store()), cluster=NoKubernetes())
    vpc = world.vpc(account)
    near, far, gpu = (world.subnet(account, vpc.id, index, zone) for index, zone in enumerate("aba"))
    return {
        "kind": "existing",
        "vpcId": vpc.id,
        "controlPlaneSubnetIds[0]": near.id,
        "controlPlaneSubnetIds[1]": far.id,
        "gpuSubnetId": gpu.id,
    }


def file_system(stack: SimulatedStack) -> str:
    """The id of the file system, which is also what the volume of the pods names."""
    (found,) = rows(world.FILE_SYSTEM)
    (volume,) = stack.get("persistentvolumes")
    assert volume["spec"]["csi"]["volumeHandle"] == found.id
    return found.id


class TestFileSystemInANetworkThatIsThere:
    """With no GPU nodes: they have nothing to do with what stays."""

    def test_keeping_it_is_decided_late_and_makes_nothing_anew(self, stack: SimulatedStack) -> None:
        stack.set("gpuNodes.count", 0)
        stack.change("weights", kind="fsx", start=None, retain=None, capacityGib=2400, throughputPerTib=1000)
        stack.change("platform.network", **network())
        stack.up()
        made = file_system(stack)
        stack.change("weights", retain=True)
        assert stack.up_steps() == []
        assert file_system(stack) == made

    def test_it_outlives_the_stack_with_its_security_group(self, stack: SimulatedStack) -> None:
        destroyed(stack)
        assert {(one.name, one.bills) for one in retained.listed() if one.name not in THEIRS} == {
            ("weights-lustre", True),
            ("weights-lustre", False),
        }

    def test_the_next_up_adopts_it(self, stack: SimulatedStack) -> None:
        (before,) = rows(world.FILE_SYSTEM)
        stack.up()
        assert file_system(stack) == before.id
        stack.ok("up", "--yes", "--skip-preview", "--expect-no-changes")

    def test_it_is_given_up_by_an_up_and_a_destroy(self, stack: SimulatedStack) -> None:
        before = file_system(stack)
        stack.change("weights", retain=False)
        stack.up()
        assert file_system(stack) == before
        destroyed(stack)
        assert set(kept()) == THEIRS
