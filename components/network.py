"""The network that the cluster and its nodes live in.

Owns a VPC with two public and two private subnets, one private GPU subnet in the capacity's zone, one NAT gateway and
the S3 gateway endpoint; or nothing at all where the stack file names an existing VPC. It owns no security group:
those stand with what they protect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pulumi
from pulumi import ComponentResource, InvokeOptions, Output, ResourceOptions
from pulumi_aws import GetAvailabilityZonesFilterArgs, ec2
from pulumi_aws.get_availability_zones import get_availability_zones

from planner.addresses import divide
from planner.platform_settings import EksPlatform, ExistingNetwork, NewNetwork

ZONES_WITHOUT_EKS = ("use1-az3", "usw1-az2", "cac1-az3")
"""Zone ids where EKS puts no control plane (Amazon EKS user guide, network requirements, 2026)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkArgs:
    """`deployment`: its name. `platform.availability_zone` is the zone that has the GPU capacity."""

    deployment: str
    platform: EksPlatform


class Zoned(NamedTuple):
    """The two public or two private subnets: in the GPU nodes' zone, and in the second zone that EKS asks for."""

    near: ec2.Subnet
    far: ec2.Subnet


class Network(ComponentResource):
    """VPC and subnets, new or existing."""

    vpc_id: Output[str]
    control_plane_subnet_ids: Output[list[str]]
    system_subnet_id: Output[str]
    gpu_subnet_id: Output[str]

    def __init__(self, name: str, args: NetworkArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:Network", name, None, opts)
        self._name, self._args = name, args
        self._zone, self._region = args.platform.availability_zone, args.platform.region
        if isinstance(args.platform.network, ExistingNetwork):
            self._adopt(args.platform.network)
        else:
            self._create(args.platform.network)
        self.register_outputs({"vpcId": self.vpc_id, "gpuSubnetId": self.gpu_subnet_id})

    def _adopt(self, existing: ExistingNetwork) -> None:
        self.vpc_id = Output.from_input(existing.vpc_id)
        self.control_plane_subnet_ids = Output.from_input(list(existing.control_plane_subnet_ids))
        self.gpu_subnet_id = Output.from_input(existing.gpu_subnet_id)
        self.system_subnet_id = self.gpu_subnet_id

    def _create(self, new: NewNetwork) -> None:
        addresses = divide(new.cidr)
        zones = (self._zone, self._second_zone())
        self._vpc = ec2.Vpc(
            f"{self._name}-vpc",
            cidr_block=new.cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=self._tags("vpc"),
            opts=self._child(),
        )
        public = self._pair("public", addresses.public, zones)
        private = self._pair("private", addresses.private, zones)
        gpu = self._subnet("gpu", addresses.gpu, zones[0])
        gateway = self._internet_routes(public)
        private_routes = self._nat_routes(public.near, gateway, (*private, gpu))
        ec2.VpcEndpoint(
            f"{self._name}-s3",
            vpc_id=self._vpc.id,
            service_name=f"com.amazonaws.{self._region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[private_routes.id],
            tags=self._tags("s3"),
            opts=self._child(),
        )
        self.vpc_id = self._vpc.id
        self.control_plane_subnet_ids = Output.all(private.near.id, private.far.id)
        self.system_subnet_id = private.near.id
        self.gpu_subnet_id = gpu.id

    def _second_zone(self) -> str:
        zones = get_availability_zones(
            state="available",
            filters=[GetAvailabilityZonesFilterArgs(name="opt-in-status", values=["opt-in-not-required"])],
            exclude_zone_ids=list(ZONES_WITHOUT_EKS),
            opts=InvokeOptions(parent=self),
        ).names
        others = [zone for zone in sorted(zones) if zone != self._zone]
        if not others:
            raise pulumi.RunError(f"EKS needs two availability zones; {self._region} offers only {zones}")
        return others[0]

    def _pair(self, role: str, blocks: tuple[str, str], zones: tuple[str, str]) -> Zoned:
        return Zoned(
            self._subnet(f"{role}-near", blocks[0], zones[0]),
            # A zone that opens later may sort before this one: it must not move a subnet that is in use.
            self._subnet(f"{role}-far", blocks[1], zones[1], ignore_changes=["availabilityZone"]),
        )

    def _subnet(self, role: str, block: str, zone: str, ignore_changes: list[str] | None = None) -> ec2.Subnet:
        return ec2.Subnet(
            f"{self._name}-{role}",
            vpc_id=self._vpc.id,
            cidr_block=block,
            availability_zone=zone,
            map_public_ip_on_launch=False,
            tags=self._tags(role),
            opts=ResourceOptions(parent=self, ignore_changes=ignore_changes),
        )

    def _internet_routes(self, public: Zoned) -> ec2.InternetGateway:
        gateway = ec2.InternetGateway(
            f"{self._name}-internet", vpc_id=self._vpc.id, tags=self._tags("internet"), opts=self._child()
        )
        table = self._route_table("public", public)
        ec2.Route(
            f"{self._name}-public-default",
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=gateway.id,
            opts=self._child(),
        )
        return gateway

    def _nat_routes(
        self, public: ec2.Subnet, gateway: ec2.InternetGateway, private: tuple[ec2.Subnet, ...]
    ) -> ec2.RouteTable:
        address = ec2.Eip(
            f"{self._name}-nat",
            domain="vpc",
            tags=self._tags("nat"),
            # An address can be attached only once the VPC has its gateway, and must be freed before that goes.
            opts=ResourceOptions(parent=self, depends_on=[gateway]),
        )
        nat = ec2.NatGateway(
            f"{self._name}-nat",
            allocation_id=address.id,
            subnet_id=public.id,
            tags=self._tags("nat"),
            opts=ResourceOptions(parent=self, depends_on=[gateway]),
        )
        table = self._route_table("private", private)
        ec2.Route(
            f"{self._name}-private-default",
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            nat_gateway_id=nat.id,
            opts=self._child(),
        )
        return table

    def _route_table(self, role: str, subnets: tuple[ec2.Subnet, ...]) -> ec2.RouteTable:
        table = ec2.RouteTable(f"{self._name}-{role}", vpc_id=self._vpc.id, tags=self._tags(role), opts=self._child())
        for index, subnet in enumerate(subnets):
            ec2.RouteTableAssociation(
                f"{self._name}-{role}-{index}",
                route_table_id=table.id,
                subnet_id=subnet.id,
                opts=self._child(),
            )
        return table

    def _tags(self, role: str) -> dict[str, str]:
        return {"Name": f"{self._args.deployment}-{role}"}

    def _child(self) -> ResourceOptions:
        return ResourceOptions(parent=self)
