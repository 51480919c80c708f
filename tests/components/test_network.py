"""Rules of the network."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from planner.addresses import divide
from tests.components import graph as recorder
from tests.components.graph import Graph, record


def test_gpu_subnet_is_one_private_slash_22_in_the_capacity_zone(graph: Graph) -> None:
    subnet = graph.one("network-gpu", "Subnet").inputs
    assert subnet["availabilityZone"] == "us-east-1a"
    assert subnet["cidrBlock"].endswith("/22")
    assert subnet["mapPublicIpOnLaunch"] is False


def test_control_plane_has_private_subnets_in_two_zones(graph: Graph) -> None:
    zones = [graph.one(f"network-private-{where}").inputs["availabilityZone"] for where in ("near", "far")]
    assert zones == ["us-east-1a", "us-east-1b"]


def test_a_zone_that_opens_later_moves_no_subnet(graph: Graph) -> None:
    assert graph.one("network-private-far").ignore_changes == ("availabilityZone",)
    assert graph.one("network-private-near").ignore_changes == ()


def test_private_subnets_leave_by_nat_and_reach_s3_without_it(graph: Graph) -> None:
    assert graph.one("network-private-default").inputs["natGatewayId"] == "network-nat-id"
    assert graph.one("network-public-default").inputs["gatewayId"] == "network-internet-id"
    endpoint = graph.one("network-s3").inputs
    assert (endpoint["vpcEndpointType"], endpoint["routeTableIds"]) == ("Gateway", ["network-private-id"])


def test_the_nat_gateway_has_its_address_only_once_the_vpc_has_its_gateway(graph: Graph) -> None:
    gateway = graph.one("network-internet").urn
    for kind in ("Eip", "NatGateway"):
        assert gateway in graph.one("network-nat", kind).dependencies
    associated = [entry.inputs["subnetId"] for entry in graph.all("RouteTableAssociation")]
    assert sorted(associated) == sorted(subnet.name + "-id" for subnet in graph.all("Subnet"))


def test_names_resolve_inside_the_vpc_as_private_endpoints_need(graph: Graph) -> None:
    vpc = graph.one("network-vpc").inputs
    assert vpc["enableDnsHostnames"] is vpc["enableDnsSupport"] is True


def test_address_blocks_do_not_overlap() -> None:
    from ipaddress import IPv4Network
    from itertools import combinations

    blocks = divide("10.42.0.0/16")
    networks = [IPv4Network(block) for block in (*blocks.public, *blocks.private, blocks.gpu)]
    assert not [pair for pair in combinations(networks, 2) if pair[0].overlaps(pair[1])]


def test_a_vpc_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="too small"):
        divide("10.42.0.0/18")


def test_an_existing_network_creates_no_network_resource() -> None:
    def adopt(deployment: dict[str, Any]) -> None:
        deployment["platform"]["network"] = {
            "kind": "existing",
            "vpcId": "vpc-0123456789abcdef0",
            "controlPlaneSubnetIds": ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"],
            "gpuSubnetId": "subnet-0cccccccccccccccc",
        }

    adopted = record(adopt)
    kinds = {resource.type.rpartition(":")[2] for resource in adopted.resources}
    assert not kinds & {"Vpc", "Subnet", "NatGateway", "Eip", "RouteTable", "InternetGateway"}
    assert adopted.one("gpu-nodes-group").inputs["subnetIds"] == ["subnet-0cccccccccccccccc"]


def test_a_region_with_one_zone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    token = "aws:index/getAvailabilityZones:getAvailabilityZones"
    monkeypatch.setitem(recorder.CALLS, token, {"names": ["us-east-1a"]})
    with pytest.raises(pulumi.RunError, match="two availability zones"):
        record()
