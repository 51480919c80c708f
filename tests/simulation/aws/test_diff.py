"""Nothing, update or replacement; and names that Pulumi generates."""

from __future__ import annotations

from typing import Any

import pytest

from simulation.aws import naming, states
from simulation.aws.account import Account
from simulation.aws.diff import Change, Kind, changes
from simulation.aws.resources import TABLE, common
from simulation.aws.values import UNKNOWN
from tests.simulation.aws import world

NODE_GROUP = TABLE[common.NODE_GROUP]
CLUSTER = TABLE[common.CLUSTER]
FILE_SYSTEM = TABLE[world.FILE_SYSTEM]
ROLE = TABLE[common.ROLE]


@pytest.fixture
def node_group(account: Account) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and state of a node group."""
    _, subnets = world.cluster(account)
    row = account.create(common.NODE_GROUP, "gpu", world.node_group_inputs(account, subnets))
    return row.inputs, row.state


def test_nothing_given_differently_is_no_change(node_group: tuple[dict[str, Any], dict[str, Any]]) -> None:
    inputs, state = node_group
    assert changes(NODE_GROUP, state, inputs) == []


@pytest.mark.parametrize(
    ("change", "path", "replace"),
    [
        ({"scalingConfig": {"minSize": 0, "desiredSize": 0, "maxSize": 2}}, "scalingConfig.desiredSize", False),
        ({"labels": {"role": "gpu", "a/b": "c"}}, 'labels["a/b"]', False),
        ({"labels": {}}, "labels.role", False),
        ({"taints": []}, "taints", False),
        ({"subnetIds": [UNKNOWN]}, "subnetIds", True),
        ({"instanceTypes": ["p5en.48xlarge"]}, "instanceTypes[0]", True),
        ({"capacityType": "SPOT"}, "capacityType", True),
        ({"launchTemplate": {"id": "lt-1", "version": "1"}}, "launchTemplate", False),
        ({"remoteAccess": {"ec2SshKey": "me"}}, "remoteAccess", True),
        ({"region": "eu-west-1"}, "region", True),
    ],
)
def test_changes_of_a_node_group(
    node_group: tuple[dict[str, Any], dict[str, Any]], change: dict[str, Any], path: str, replace: bool
) -> None:
    inputs, state = node_group
    found = changes(NODE_GROUP, state, inputs | change)
    assert [(item.path, item.replace) for item in found] == [(path, replace)]


def test_template_version_updates_and_template_replaces() -> None:
    old = {"launchTemplate": {"id": "lt-1", "name": "gpu", "version": "1"}}
    assert [item.replace for item in changes(NODE_GROUP, old, {"launchTemplate": {"id": "lt-1", "version": "2"}})] == [
        False
    ]
    other = changes(NODE_GROUP, old, {"launchTemplate": {"id": "lt-2", "version": "1"}})
    assert other == [Change(path="launchTemplate.id", kind=Kind.UPDATE, replace=True)]


def test_what_stands_inside_a_fixed_block_replaces_too() -> None:
    old, new = {"remoteAccess": {"ec2SshKey": "me"}}, {"remoteAccess": {"ec2SshKey": "you"}}
    assert changes(NODE_GROUP, old, new) == [Change(path="remoteAccess.ec2SshKey", kind=Kind.UPDATE, replace=True)]


def test_taking_away_an_input_goes_back_to_the_default_or_keeps_what_aws_chose() -> None:
    old = {"deploymentType": "PERSISTENT_2", "weeklyMaintenanceStartTime": "1:05:00", "storageType": "SSD"}
    found = changes(FILE_SYSTEM, old, {})
    assert [(item.path, item.kind, item.replace) for item in found] == [("deploymentType", Kind.DELETE, True)]


@pytest.mark.parametrize(("capacity", "replace"), [(4800, False), (1200, True)])
def test_a_file_system_grows_in_place_but_does_not_shrink(capacity: int, replace: bool) -> None:
    found = changes(FILE_SYSTEM, {"storageCapacity": 2400}, {"storageCapacity": capacity})
    assert [item.replace for item in found] == [replace]


def test_order_of_sets_and_layout_of_policies_do_not_matter() -> None:
    assert changes(NODE_GROUP, {"subnetIds": ["a", "b"]}, {"subnetIds": ["b", "a"]}) == []
    assert changes(ROLE, {"assumeRolePolicy": '{"a": 1}'}, {"assumeRolePolicy": '{ "a":1 }'}) == []


def test_creator_access_is_decided_for_good() -> None:
    old = {"accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}}
    new = {"accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}}
    assert [item.replace for item in changes(CLUSTER, old, new)] == [True]


class TestNames:
    def test_generated_name_is_kept(self) -> None:
        first = naming.complete(ROLE, "node", {}, {}, b"seed")
        assert first["name"] == naming.complete(ROLE, "node", {}, {}, b"seed")["name"]
        assert naming.complete(ROLE, "node", {}, first, b"other")["name"] == first["name"]
        assert first["name"].startswith("node-")
        assert len(first["name"]) == len("node-") + 7

    def test_chosen_name_that_is_taken_away_is_generated_anew(self) -> None:
        chosen = naming.complete(ROLE, "node", {"name": "mine"}, {}, b"")
        assert naming.complete(ROLE, "node", {}, chosen, b"seed")["name"] != "mine"

    def test_only_a_chosen_name_forces_the_old_resource_out_first(self) -> None:
        chosen = naming.complete(ROLE, "node", {"name": "mine"}, {}, b"")
        generated = naming.complete(ROLE, "node", {}, {}, b"seed")
        assert naming.chosen_name_stays(ROLE, {"name": "mine"}, chosen)
        assert not naming.chosen_name_stays(ROLE, {"name": generated["name"]}, generated)

    def test_policy_documents_become_text(self) -> None:
        completed = naming.complete(ROLE, "node", {"assumeRolePolicy": {"b": 1, "a": 2}}, {}, b"")
        assert completed["assumeRolePolicy"] == '{"a": 2, "b": 1}'


class TestPlans:
    def test_what_aws_computes_is_unknown_and_what_is_given_is_not(self) -> None:
        inputs = {"name": "demo", "vpcConfig": {"subnetIds": [UNKNOWN], "endpointPrivateAccess": True}}
        state = states.planned(CLUSTER, inputs, {})
        assert state["endpoint"] == UNKNOWN
        assert state["vpcConfig"]["clusterSecurityGroupId"] == UNKNOWN
        assert state["vpcConfig"]["endpointPrivateAccess"] is True
        assert state["vpcConfig"]["publicAccessCidrs"] == ["0.0.0.0/0"]

    def test_an_update_keeps_outputs_but_for_the_template_version(self) -> None:
        old = {"name": "gpu", "arn": "arn:x", "latestVersion": 3, "defaultVersion": 1}
        state = states.planned(TABLE[common.LAUNCH_TEMPLATE], {"name": "gpu"}, old)
        assert (state["arn"], state["latestVersion"]) == ("arn:x", UNKNOWN)

    def test_refreshed_inputs_follow_the_state(self) -> None:
        inputs = {"scalingConfig": {"minSize": 0, "desiredSize": 2}, "labels": {"a": "b"}}
        state = {"scalingConfig": {"minSize": 0, "desiredSize": 0, "maxSize": 2}, "arn": "x", "labels": {"a": "b"}}
        followed = states.inputs_from(inputs, state)
        assert followed == {"scalingConfig": {"minSize": 0, "desiredSize": 0}, "labels": {"a": "b"}}
