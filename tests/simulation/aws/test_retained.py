"""What a stack leaves behind on purpose, and takes over again, with the real engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulation import paths, retained
from simulation.aws.resources import common
from simulation.aws.store import Store
from simulation.cli import main
from simulation.tools.build import missing
from tests.simulation.aws import world
from tests.simulation.aws.stacks import Stack, make

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing("engine")), reason="no engine: `python -m simulation tools` builds it"),
]


@pytest.fixture
def stack(simulation_home: Path) -> Stack:
    return make(simulation_home, "cache")


def ids() -> dict[str, str]:
    """Ids by logical name; both rules are called `self`, so they are named by their direction."""
    names = {common.INGRESS_RULE: "in", common.EGRESS_RULE: "out"}
    return {names.get(one.token, one.name): one.id for one in retained.listed()}


def test_a_retained_cache_is_named_and_taken_over(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    stack.up()
    assert retained.listed() == []
    mount = stack.ok("stack", "output", "mount")
    stack.destroy()

    kept = ids()
    assert set(kept) == {"weights", "models", "main", "gpu", "lustre", "in", "out"}
    assert [one.bills for one in retained.listed()] == [True, True, False, False, False, False, False]
    assert main(["retained"]) == 0
    printed = capsys.readouterr().out
    assert f"retained: fsx:LustreFileSystem weights ({kept['weights']}) still bills\n" in printed
    assert f"retained: ec2:Vpc main ({kept['main']})\n" in printed

    stack.ok("config", "set-all", *adoption(kept))
    differing = stack.ok("preview", "--diff")
    assert "lustreFileSystem:LustreFileSystem: (replace" in differing
    for unread in ("+ securityGroupIds", "+ skipFinalBackup : true", "+ forceDestroy: true"):
        assert unread in differing, differing

    stack.ok("config", "set", "ignore", "true")
    adopted = " ".join(stack.up().split())
    assert "= 7 imported" in adopted
    assert "~ 2 updated" in adopted, "the flags that deletion needs: skipFinalBackup, forceDestroy"
    assert retained.listed() == []
    assert stack.ok("stack", "output", "mount") == mount
    stack.up("--refresh", "--expect-no-changes")


def adoption(kept: dict[str, str]) -> list[str]:
    """The arguments of `config set-all` that name every kept resource's id."""
    pairs = [word for name, found in kept.items() for word in ("--plaintext", f"cache:adopt.{name}={found}")]
    return ["--path", *pairs]


def test_an_update_of_an_adopted_file_system_keeps_what_the_stack_does_not_know(stack: Stack) -> None:
    stack.up()
    stack.destroy()
    stack.ok("config", "set-all", *adoption(ids()))
    stack.ok("config", "set", "ignore", "true")
    stack.up()
    program = stack.folder / "__main__.py"
    program.write_text(program.read_text().replace("storage_capacity=2400", "storage_capacity=4800"))
    stack.up()
    store = Store(paths.aws_store())
    (row,) = [row for row in store.list_resources() if row.type == world.FILE_SYSTEM]
    assert row.state["storageCapacity"] == 4800
    (group,) = [row for row in store.list_resources() if row.type == common.SECURITY_GROUP and row.name == "lustre"]
    assert row.state["securityGroupIds"] == [group.id]


def test_what_a_kept_file_system_lies_in_cannot_go(stack: Stack) -> None:
    program = stack.folder / "__main__.py"
    program.write_text(program.read_text().replace('opts=kept("gpu")', "").replace('opts=kept("main")', ""))
    stack.up()
    refused = stack.pulumi("destroy", "--yes", "--skip-preview")
    assert refused.status != 0
    assert "fsx:LustreFileSystem weights" in refused.text
    left = json.loads(stack.ok("stack", "export"))["deployment"]["resources"]
    assert {"aws:ec2/subnet:Subnet", "aws:ec2/vpc:Vpc"} <= {resource["type"] for resource in left}
