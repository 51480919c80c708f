"""Creations that take as long as told, and hold up nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from simulation.aws import latency
from simulation.aws.account import Account
from simulation.aws.errors import AwsError, SimulationError
from simulation.aws.resources import common
from simulation.tools.build import missing
from tests.simulation.aws import world
from tests.simulation.aws.conftest import RecordedCluster
from tests.simulation.aws.stacks import make
from tests.simulation.timeline import spans

SLEEP = "simulation.aws.account.time.sleep"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited, without waiting."""
    waited: list[float] = []
    monkeypatch.setattr(SLEEP, waited.append)
    return waited


def test_minutes_are_scaled_and_come_before_the_cluster(
    account: Account, cluster: RecordedCluster, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = replace(account, seconds_per_minute=2)
    calls_at_wait: list[int] = []
    monkeypatch.setattr(SLEEP, lambda _: calls_at_wait.append(len(cluster.calls)))
    _, subnets = world.cluster(slow)
    assert calls_at_wait[-1] == 0, "the control plane answers only after its nine minutes"
    monkeypatch.setattr(SLEEP, waits.append)
    inputs = world.node_group_inputs(slow, subnets)
    slow.create(common.NODE_GROUP, "gpu", inputs)
    assert max(waits) == 12
    waits.clear()
    idle = inputs | {"nodeGroupName": "idle", "scalingConfig": {"minSize": 0, "desiredSize": 0, "maxSize": 2}}
    slow.create(common.NODE_GROUP, "idle", idle)
    assert set(waits) == {0}


def test_nothing_waits_unless_told(account: Account, waits: list[float]) -> None:
    world.cluster(account)
    assert set(waits) == {0}


def test_a_refusal_costs_no_time(account: Account, waits: list[float]) -> None:
    with pytest.raises(AwsError):
        replace(account, seconds_per_minute=1).create(world.FILE_SYSTEM, "cache", {"subnetIds": "subnet-gone"})
    assert waits == []


@pytest.mark.parametrize("text", ["fast", "-1", "nan", "inf"])
def test_what_is_no_number_of_seconds_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(latency.VARIABLE, text)
    with pytest.raises(SimulationError, match=f"{latency.VARIABLE}='{text}'"):
        latency.seconds_per_minute()


@pytest.mark.slow
@pytest.mark.skipif(bool(missing("engine")), reason="no engine: `python -m simulation tools` builds it")
def test_slow_creations_run_side_by_side(simulation_home: Path) -> None:
    stack = make(simulation_home, "slow")
    stack.variables[latency.VARIABLE] = "0.6"
    text = stack.up("--json", "--parallel", "32")
    timeline = spans(text.splitlines())
    caches = [timeline[f"cache-{number}"] for number in range(12)]
    lengths = [span.end - span.begin for span in caches]
    assert min(lengths) >= 5, lengths
    assert max(lengths) < 11, f"a call that waits for a thread takes twice its six seconds: {lengths}"
    assert all(span.overlaps(caches[0]) for span in caches)
