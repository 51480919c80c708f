"""Whether region and zone are open to the account and have the instance types, and a given network has room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from operations.account import Account, AwsError
from operations.checks import Check, Subject
from planner.platform_settings import ExistingNetwork

# What EKS puts into each subnet of a control plane at most (EKS user guide, network requirements).
CONTROL_PLANE_ADDRESSES = 6
# Of a node and its first pods; and what the CNI takes ahead for one: two interfaces of up to 50 addresses on a p5.
LEAST_ADDRESSES, USUAL_ADDRESSES = 5, 100


def region(subject: Subject) -> Iterator[Check]:
    """A region may have to be enabled for the account first."""
    name = subject.platform.region
    found = subject.account.ask("ec2", "describe_regions", RegionNames=[name], AllRegions=True)["Regions"]
    state = found[0].get("OptInStatus", "opt-in-not-required") if found else "unknown"
    if state in ("opt-in-not-required", "opted-in"):
        yield Check(level="pass", about="region", says=f"{name}: {state}")
    else:
        do = f"aws account enable-region --region-name {name}"
        yield Check(level="fail", about="region", says=f"{name}: {state}", do=do)


def zone(subject: Subject) -> Iterator[Check]:
    """The zone is the account's, and open."""
    name = subject.platform.availability_zone
    zones = subject.account.ask("ec2", "describe_availability_zones")["AvailabilityZones"]
    states = {item["ZoneName"]: item["State"] for item in zones}
    if states.get(name) == "available":
        yield Check(level="pass", about="zone", says=f"{name}: available")
    else:
        has = ", ".join(sorted(zone for zone, state in states.items() if state == "available"))
        says = f"{name}: {states.get(name, 'not a zone of this account')}"
        yield Check(level="fail", about="zone", says=says, do=_set_zone(f"of {has}"))


def instance_types(subject: Subject) -> Iterator[Check]:
    """Both types are sold in the zone; whether there is capacity now nobody tells before it is asked for."""
    zone_name = subject.platform.availability_zone
    for name in dict.fromkeys((subject.gpu_type.name, subject.system_type.name)):
        zones = zones_offering(subject.account, name)
        if zone_name in zones:
            yield Check(level="pass", about=name, says=f"offered in {zone_name}")
        else:
            where = f"offered in {', '.join(zones)}" if zones else f"offered nowhere in {subject.platform.region}"
            do = _set_zone(f"of {', '.join(zones)}") if zones else "another region, or another instance type"
            yield Check(level="fail", about=name, says=f"{where}, not in {zone_name}", do=do)


def zones_offering(account: Account, instance_type: str) -> tuple[str, ...]:
    """The zones of the region that sell an instance type. Raises AwsError."""
    kind = [{"Name": "instance-type", "Values": [instance_type]}]
    request = {"LocationType": "availability-zone", "Filters": kind}
    found = account.pages("ec2", "describe_instance_type_offerings", "InstanceTypeOfferings", **request)
    return tuple(sorted(item["Location"] for item in found))


def existing_network(subject: Subject) -> Iterator[Check]:
    """Subnets of a network that is there already: in the VPC, in the right zones, with free addresses."""
    network = subject.platform.network
    if not isinstance(network, ExistingNetwork):
        return
    named = [network.gpu_subnet_id, *network.control_plane_subnet_ids]
    try:
        answer = subject.account.ask("ec2", "describe_subnets", SubnetIds=sorted(set(named)))["Subnets"]
    except AwsError as error:
        if error.code != "InvalidSubnetID.NotFound":
            raise
        yield Check(level="fail", about="subnets", says=str(error), do="correct deployment.platform.network")
        return
    subnets = {item["SubnetId"]: item for item in answer}
    elsewhere = sorted({name for name in named if subnets[name]["VpcId"] != network.vpc_id})
    if elsewhere:
        says = f"{', '.join(elsewhere)} not in {network.vpc_id}"
        yield Check(level="fail", about="subnets", says=says, do="correct deployment.platform.network")
    yield _gpu_subnet(subject, subnets[network.gpu_subnet_id])
    yield _control_plane([subnets[name] for name in network.control_plane_subnet_ids])


def _gpu_subnet(subject: Subject, subnet: dict[str, object]) -> Check:
    free, found = int(str(subnet["AvailableIpAddressCount"])), subnet["AvailabilityZone"]
    about, wanted = f"GPU subnet {subnet['SubnetId']}", subject.platform.availability_zone
    if found != wanted:
        says = f"in {found}, the stack in {wanted}"
        return Check(level="fail", about=about, says=says, do=_set_zone(str(found)))
    says = f"{free} free addresses for {subject.nodes} nodes in {found}"
    if free < LEAST_ADDRESSES * subject.nodes:
        return Check(level="fail", about=about, says=says, do="another subnet, a /24 or larger")
    if free < USUAL_ADDRESSES * subject.nodes:
        do = f"the CNI takes up to {USUAL_ADDRESSES} a node ahead: a larger subnet, or WARM_IP_TARGET on vpc-cni"
        return Check(level="warn", about=about, says=says, do=do)
    return Check(level="pass", about=about, says=says)


def _control_plane(subnets: Iterable[dict[str, object]]) -> Check:
    about, listed = "control plane subnets", list(subnets)
    zones = sorted({str(item["AvailabilityZone"]) for item in listed})
    full = [item["SubnetId"] for item in listed if int(str(item["AvailableIpAddressCount"])) < CONTROL_PLANE_ADDRESSES]
    if len(zones) < 2:
        return Check(level="fail", about=about, says=f"all in {zones[0]}", do="name subnets of two zones")
    if full:
        says = f"fewer than {CONTROL_PLANE_ADDRESSES} free addresses in {', '.join(map(str, full))}"
        return Check(level="fail", about=about, says=says, do="name subnets with room")
    return Check(level="pass", about=about, says=f"in {', '.join(zones)}, with room")


def _set_zone(value: str) -> str:
    if value.startswith("of "):
        return f"pulumi config set --path deployment.platform.availabilityZone ZONE, {value}"
    return f"pulumi config set --path deployment.platform.availabilityZone {value}"
