"""The simulated provider answers for its own stacks alone, on every call that could touch a state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from pulumi.provider.experimental import provider as engine

from simulation import paths
from simulation.aws.provider import SimulatedAws
from simulation.aws.safety import MARKER, WrongBackendError, mark_backend

URN = "urn:pulumi:dev::demo::aws:ec2/vpc:Vpc::main"
OTHER_STACK = "urn:pulumi:production::demo::aws:ec2/vpc:Vpc::main"

Call = Callable[[SimulatedAws, str], Coroutine[Any, Any, object]]
CALLS: dict[str, Call] = {
    "check_config": lambda aws, urn: aws.check_config(engine.CheckRequest(urn, {}, {}, b"")),
    "check": lambda aws, urn: aws.check(engine.CheckRequest(urn, {}, {}, b"seed")),
    "diff": lambda aws, urn: aws.diff(engine.DiffRequest(urn, "vpc-1", {}, {}, [])),
    "create": lambda aws, urn: aws.create(engine.CreateRequest(urn, {}, 0, preview=False)),
    "preview": lambda aws, urn: aws.create(engine.CreateRequest(urn, {}, 0, preview=True)),
    "update": lambda aws, urn: aws.update(engine.UpdateRequest(urn, "vpc-1", {}, {}, 0, [], preview=False)),
    "delete": lambda aws, urn: aws.delete(engine.DeleteRequest(urn, "vpc-1", {}, 0)),
    "read": lambda aws, urn: aws.read(engine.ReadRequest(urn, "vpc-1", {}, {})),
}
WITHOUT_URN: dict[str, Call] = {
    "configure": lambda aws, _: aws.configure(engine.ConfigureRequest({}, {}, True, True)),
    "invoke": lambda aws, _: aws.invoke(engine.InvokeRequest("aws:index/getRegion:getRegion", {})),
}


def refuse(call: Call, urn: str, reason: str) -> None:
    with pytest.raises(WrongBackendError, match=reason):
        asyncio.run(call(SimulatedAws(), urn))


def cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "https://api.pulumi.com")


def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_BACKEND_URL")


def other_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{paths.backend().parent}")


def unmarked(_monkeypatch: pytest.MonkeyPatch) -> None:
    (paths.backend() / MARKER).unlink()


@pytest.mark.parametrize("spoil", [cloud, unset, other_folder, unmarked])
@pytest.mark.parametrize("call", [*CALLS.values(), *WITHOUT_URN.values()], ids=[*CALLS, *WITHOUT_URN])
def test_other_backends_are_refused(
    spoil: Callable[[pytest.MonkeyPatch], None], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch)
    refuse(call, URN, "SIMULATED")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_stacks_that_live_elsewhere_are_refused(call: Call) -> None:
    refuse(call, OTHER_STACK, "demo/production does not live in")
    refuse(call, "", "names no stack")


def test_nothing_is_written_on_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud(monkeypatch)
    refuse(CALLS["create"], URN, "PULUMI_BACKEND_URL is https://api.pulumi.com")
    assert not paths.aws_store().exists()


def test_the_own_backend_is_served_through_a_link_too(simulation_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = simulation_home / "link"
    link.symlink_to(paths.backend())
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{link}")
    response = asyncio.run(SimulatedAws().create(engine.CreateRequest(URN, {}, 0, preview=False)))
    assert (response.resource_id or "").startswith("vpc-0")


def test_a_folder_of_other_stacks_is_not_taken_over(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / ".pulumi" / "stacks").mkdir(parents=True)
    with pytest.raises(WrongBackendError, match="already holds stacks"):
        mark_backend(real)
    assert not (real / MARKER).exists()
