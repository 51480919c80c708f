"""A stack's whole life with the real engine on simulated AWS, without a Kubernetes cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation import paths
from simulation.aws.store import Store
from simulation.tools.build import missing
from tests.simulation.aws.stacks import Stack, make

pytestmark = pytest.mark.skipif(bool(missing("engine")), reason="no engine: `python -m simulation tools` builds it")

NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
SECRET = "c2VjcmV0"  # base64, as user data must be


@pytest.fixture
def stack(simulation_home: Path) -> Stack:
    made = make(simulation_home, "graph")
    made.ok("config", "set", "--secret", "userData", SECRET)
    return made


def change_behind_the_back(resource_type: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes a resource in the account without Pulumi, as somebody with a console would."""
    with Store(paths.aws_store()).transaction() as view:
        row = view.rows(resource_type)[0]
        change(row.state)
        view.put(row)


def scale_to_nothing(state: dict[str, Any]) -> None:
    state["scalingConfig"]["desiredSize"] = 0


def test_life_of_a_stack(stack: Stack) -> None:
    store = Store(paths.aws_store())
    preview = stack.ok("preview")
    assert "+ 28 to create" in preview
    assert store.is_empty()

    stack.up()
    exported = stack.ok("stack", "export")
    resources = json.loads(exported)["deployment"]["resources"]
    outputs = next(resource["outputs"] for resource in resources if resource["type"] == "pulumi:pulumi:Stack")
    assert outputs["clusterSecurityGroup"].startswith("sg-0")
    assert outputs["autoscalingGroup"].startswith("eks-gpu-")
    assert all(outputs.values())
    assert SECRET not in exported

    change_behind_the_back(NODE_GROUP, scale_to_nothing)
    changed = stack.up("--refresh", "--diff", "--config", "hops=2", "--config", "strategy=spread")
    assert "desiredSize: 0 => 2" in changed
    assert "httpPutResponseHopLimit: 1 => 2" in changed
    assert "+-1 replaced" in " ".join(changed.split())
    assert "templateVersion: 1 => 2" in " ".join(changed.split()).replace(" :", ":")
    stack.up("--refresh", "--expect-no-changes")

    stack.destroy()
    assert store.is_empty()


@pytest.mark.slow
def test_a_failure_on_demand_is_shown_without_a_traceback_and_overcome(stack: Stack) -> None:
    failing = replace(
        stack, variables=stack.variables | {"SIMULATE_FAULTS": "eks:NodeGroup=InsufficientInstanceCapacity:1"}
    )
    answer = failing.pulumi("up", "--yes", "--skip-preview")
    assert answer.status != 0
    assert "error: InsufficientInstanceCapacity" in answer.text
    assert "Traceback" not in answer.text
    assert "simulation/aws" not in answer.text
    failing.up()
    stack.destroy()
    assert Store(paths.aws_store()).is_empty()
