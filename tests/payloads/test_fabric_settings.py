"""The fabric test's variables: defaults, and every problem named at once."""

from __future__ import annotations

import pytest

from payloads.fabric_settings import STEPS, ExitCode, FabricError, Settings

MINIMAL = {
    "FABRIC_NODES": "2",
    "FABRIC_NODE_RANK": "1",
    "FABRIC_LEADER": "gate-0.gate",
    "FABRIC_GPUS": "8",
    "FABRIC_KIND": "efa",
    "FABRIC_NICS": "32",
}


def test_defaults() -> None:
    settings = Settings.from_environment(MINIMAL)
    assert settings.ranks == 16
    assert not settings.is_leader
    assert (settings.bytes, settings.backend, settings.mode) == (2 * 1024**3, "nccl", "require")
    assert (settings.warn_below, settings.fail_below) == (0, 0)


def test_an_indexed_job_gives_the_rank() -> None:
    environment = MINIMAL | {"JOB_COMPLETION_INDEX": "0"}
    assert Settings.from_environment(environment).node_rank == 1
    del environment["FABRIC_NODE_RANK"]
    assert Settings.from_environment(environment).is_leader


def test_one_node_needs_neither_leader_nor_rank_nor_devices() -> None:
    settings = Settings.from_environment({"FABRIC_NODES": "1", "FABRIC_GPUS": "8", "FABRIC_KIND": "none"})
    assert settings.is_leader
    assert settings.nics == 0


def test_bytes_are_whole_elements() -> None:
    assert Settings.from_environment(MINIMAL | {"FABRIC_BYTES": "1027"}).bytes == 1024


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FABRIC_NODES", ""),
        ("FABRIC_NODES", "0"),
        ("FABRIC_NODES", "two"),
        ("FABRIC_NODE_RANK", "2"),
        ("FABRIC_NODE_RANK", "-1"),
        ("FABRIC_NODE_RANK", ""),
        ("FABRIC_LEADER", ""),
        ("FABRIC_PORT", "65535"),
        ("FABRIC_GPUS", "8.0"),
        ("FABRIC_KIND", "EFA"),
        ("FABRIC_NICS", ""),
        ("FABRIC_NICS", "0"),
        ("FABRIC_BACKEND", "mpi"),
        ("FABRIC_MODE", "off"),
        ("FABRIC_BYTES", "2GiB"),
        ("FABRIC_WARN_BELOW", "-1"),
        ("FABRIC_FAIL_BELOW", "nan"),
        ("FABRIC_ITERATIONS", "0"),
        ("FABRIC_PEER_TIMEOUT_SECONDS", "0"),
        ("FABRIC_TEST_TIMEOUT_SECONDS", "inf"),
    ],
)
def test_a_bad_value_is_named(name: str, value: str) -> None:
    with pytest.raises(FabricError) as caught:
        Settings.from_environment(MINIMAL | {name: value})
    assert caught.value.code == ExitCode.BAD_CONFIGURATION
    lines = str(caught.value).splitlines()[1:]
    assert [line.strip().split("=")[0].split(" ")[0] for line in lines] == [name]


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(FabricError) as caught:
        Settings.from_environment({"FABRIC_CONFIGMAP": "verdict"})
    for name in ("FABRIC_NODES", "FABRIC_GPUS", "FABRIC_KIND", "FABRIC_LEADER", "FABRIC_CONFIGMAP_NAMESPACE"):
        assert name in str(caught.value)


def test_every_exit_code_has_its_step() -> None:
    assert set(STEPS) == set(ExitCode)
    assert len(set(STEPS.values())) == len(ExitCode)
