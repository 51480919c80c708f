"""The tables against the installed Python SDK, which drops without a word what a provider does not return."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

from simulation.aws.resources import TABLE
from simulation.aws.schema import ResourceType

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NEVER_SET = {
    "aws:eks/cluster:Cluster": {"clusterId"},  # AWS sets it for clusters on Outposts only
    "aws:ec2/natGateway:NatGateway": {  # of regional NAT gateways only
        "autoProvisionZones",
        "autoScalingIps",
        "regionalNatGatewayAddresses",
        "regionalNatGatewayAutoMode",
        "routeTableId",
    },
}
ALWAYS = {"id", "urn", "tagsAll", "region", "pulumi_resource_name", "pulumi_resource_type"}


def sdk_class(token: str) -> type:
    _, module, name = token.split(":")[0], *token.split(":")[1].split("/")
    file = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    cls: type = getattr(importlib.import_module(f"pulumi_aws.{module}.{file}"), token.rpartition(":")[2])
    return cls


def names(cls: type) -> set[str]:
    """The wire names of a class's properties."""
    found = set()
    for name, member in inspect.getmembers(cls, lambda value: isinstance(value, property)):
        getter = re.search(r'getter\(name="(\w+)"\)', inspect.getsource(member.fget))
        found.add(getter[1] if getter else name)
    return found


def inputs(cls: type) -> set[str]:
    return names(getattr(inspect.getmodule(cls), f"{cls.__name__}Args"))


@pytest.mark.parametrize("kind", TABLE.values(), ids=lambda kind: kind.title)
class TestTable:
    def test_every_output_of_the_sdk_is_computed(self, kind: ResourceType) -> None:
        cls = sdk_class(kind.token)
        computed = {path.partition(".")[0] for path in kind.outputs} | ALWAYS
        assert names(cls) - inputs(cls) - computed - NEVER_SET.get(kind.token, set()) == set()

    def test_every_name_in_the_table_exists(self, kind: ResourceType) -> None:
        known = names(sdk_class(kind.token))
        paths = [
            *kind.outputs,
            *kind.defaults,
            *kind.forces_replacement,
            *(reference.path for reference in kind.references),
            *(path for rule in kind.unique for path in (*rule.paths, *rule.also)),
            *([kind.autonamed] if kind.autonamed else []),
        ]
        assert {re.split(r"[.\[]", path)[0] for path in paths} - known == set()

    def test_what_the_type_carries_is_what_the_sdk_reads(self, kind: ResourceType) -> None:
        known = names(sdk_class(kind.token))
        assert ("tagsAll" in known, "region" in known) == (kind.tagged, kind.regional)

    def test_recomputed_outputs_are_outputs(self, kind: ResourceType) -> None:
        assert kind.recomputed <= set(kind.outputs)

    def test_references_lead_to_known_types(self, kind: ResourceType) -> None:
        assert {reference.target for reference in kind.references} <= set(TABLE)
