"""The engine's calls, one by one: what is translated, what a preview and a refresh get to see."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from pulumi.provider.experimental import provider as engine

from simulation.aws.errors import SimulationError
from simulation.aws.provider import SimulatedAws
from simulation.aws.values import UNKNOWN, from_engine, to_engine
from tests.simulation.aws.conftest import RecordedCluster

T = TypeVar("T")
VPC = "urn:pulumi:dev::demo::vllm:index:Network$aws:ec2/vpc:Vpc::main"
PLACEMENT_GROUP = "urn:pulumi:dev::demo::aws:ec2/placementGroup:PlacementGroup::near"


def run(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


@pytest.fixture
def aws(cluster: RecordedCluster) -> SimulatedAws:
    return SimulatedAws(cluster)


def create(aws: SimulatedAws, urn: str, inputs: dict[str, Any], *, preview: bool = False) -> engine.CreateResponse:
    return run(aws.create(engine.CreateRequest(urn, to_engine(inputs), 0, preview=preview)))


def test_a_preview_shows_what_is_known_and_makes_nothing(aws: SimulatedAws) -> None:
    planned = create(aws, VPC, {"cidrBlock": "10.0.0.0/16"}, preview=True)
    properties = from_engine(planned.properties)
    assert planned.resource_id is None
    assert (properties["cidrBlock"], properties["arn"], properties["region"]) == ("10.0.0.0/16", UNKNOWN, "us-east-1")


def test_region_and_tags_come_from_the_provider(aws: SimulatedAws) -> None:
    settings = to_engine({"region": "eu-west-1", "defaultTags": '{"tags": {"stack": "demo"}}'})
    run(aws.configure(engine.ConfigureRequest({}, settings, True, True)))
    properties = from_engine(create(aws, VPC, {"cidrBlock": "10.0.0.0/16"}).properties)
    assert (properties["region"], properties["tagsAll"]) == ("eu-west-1", {"stack": "demo"})


def test_a_refresh_drops_what_is_gone_and_shows_what_is_there(aws: SimulatedAws) -> None:
    inputs = {"cidrBlock": "10.0.0.0/16"}
    made = create(aws, VPC, inputs)
    there = run(aws.read(engine.ReadRequest(VPC, made.resource_id or "", made.properties, to_engine(inputs))))
    assert there.resource_id == made.resource_id
    assert from_engine(there.inputs) == inputs
    assert not run(aws.read(engine.ReadRequest(VPC, "vpc-gone", {}, {}))).resource_id


def test_a_replacement_under_a_chosen_name_goes_first(aws: SimulatedAws) -> None:
    old = {"name": "near", "strategy": "cluster"}
    new = {"name": "near", "strategy": "spread", "__defaults": []}
    found = run(aws.diff(engine.DiffRequest(PLACEMENT_GROUP, "near", to_engine(old), to_engine(new), [])))
    assert (found.changes, found.replaces, found.delete_before_replace) == (True, ["strategy"], True)
    assert found.detailed_diff["strategy"].kind is engine.PropertyDiffKind.UPDATE_REPLACE
    generated = new | {"__defaults": ["name"]}
    found = run(aws.diff(engine.DiffRequest(PLACEMENT_GROUP, "near", to_engine(old), to_engine(generated), [])))
    assert (found.replaces, found.delete_before_replace) == (["strategy"], False)


def test_ignored_changes_are_none(aws: SimulatedAws) -> None:
    old, new = to_engine({"cidrBlock": "10.0.0.0/16"}), to_engine({"cidrBlock": "10.1.0.0/16"})
    found = run(aws.diff(engine.DiffRequest(VPC, "vpc-1", old, new, ["cidrBlock"])))
    assert found.changes is False


def test_faults_that_cannot_be_read_show_before_anything_is_made(
    aws: SimulatedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATE_FAULTS", "everything")
    with pytest.raises(SimulationError, match="everything"):
        run(aws.configure(engine.ConfigureRequest({}, {}, True, True)))


def test_names_and_policies_are_completed_at_check(aws: SimulatedAws) -> None:
    urn = "urn:pulumi:dev::demo::aws:iam/role:Role::node"
    inputs = to_engine({"assumeRolePolicy": {"Statement": []}})
    checked = from_engine(run(aws.check(engine.CheckRequest(urn, {}, inputs, b"seed"))).inputs or {})
    assert checked["name"].startswith("node-")
    assert checked["assumeRolePolicy"] == '{"Statement": []}'


def test_an_import_tells_what_aws_tells_and_a_refresh_keeps_the_rest(aws: SimulatedAws) -> None:
    urn = "urn:pulumi:dev::demo::aws:s3/bucket:Bucket::models"
    inputs = {"bucket": "models", "forceDestroy": True, "__defaults": ["bucket"]}
    made = create(aws, urn, inputs)
    imported = run(aws.read(engine.ReadRequest(urn, "models", {}, {})))
    assert from_engine(imported.inputs) == {"bucket": "models", "__defaults": []}
    assert "forceDestroy" not in from_engine(imported.properties)
    refreshed = run(aws.read(engine.ReadRequest(urn, "models", made.properties, to_engine(inputs))))
    assert from_engine(refreshed.inputs) == inputs
    assert from_engine(refreshed.properties)["forceDestroy"] is True


def test_a_default_that_cannot_be_read_back_is_an_input(aws: SimulatedAws) -> None:
    urn = "urn:pulumi:dev::demo::aws:fsx/lustreFileSystem:LustreFileSystem::weights"
    checked = run(aws.check(engine.CheckRequest(urn, {}, to_engine({"subnetIds": "subnet-1"}), b"")))
    new = from_engine(checked.inputs or {})
    assert new["skipFinalBackup"] is True
    found = run(aws.diff(engine.DiffRequest(urn, "fs-1", to_engine({"subnetIds": "subnet-1"}), to_engine(new), [])))
    assert (found.diffs, found.replaces) == (["skipFinalBackup"], [])
