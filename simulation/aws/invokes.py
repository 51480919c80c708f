"""The data sources that the simulated account answers."""

from __future__ import annotations

import re
from collections.abc import Callable

from simulation.aws import tagging
from simulation.aws.account import Account
from simulation.aws.errors import AwsError, SimulationError
from simulation.aws.resources.common import SIMULATED_ROLE, SUBNET, VPC
from simulation.aws.schema import ACCOUNT, PARTITION
from simulation.aws.store import Row
from simulation.aws.values import Json, Properties, at
from simulation.aws.versions import ami_release
from simulation.aws.zones import zone_id, zones

_AMI_RELEASE = re.compile(r"/aws/service/eks/optimized-ami/([0-9.]+)/amazon-linux-2023/\S+/recommended/release_version")


def answer(account: Account, token: str, arguments: Properties) -> Properties:
    """The result of the data source `token`. Raises SimulationError for an unknown one."""
    if token not in _INVOKES:
        raise SimulationError(
            f"The simulated AWS does not answer the data source {token}. Add it to simulation/aws/invokes.py."
        )
    return _INVOKES[token](account, arguments)


def _caller_identity(_account: Account, _arguments: Properties) -> Properties:
    return {
        "accountId": ACCOUNT,
        "arn": f"arn:{PARTITION}:sts::{ACCOUNT}:assumed-role/SIMULATED/laptop",
        "id": ACCOUNT,
        "userId": "AROASIMULATED:laptop",
    }


def _session_context(_account: Account, arguments: Properties) -> Properties:
    arn = arguments["arn"]
    assumed = re.fullmatch(rf"arn:{PARTITION}:sts::(\d+):assumed-role/([^/]+)/(.+)", arn)
    role, session = (assumed[2], assumed[3]) if assumed else ("", "")
    issuer = f"arn:{PARTITION}:iam::{assumed[1]}:role/{role}" if assumed else arn
    known = issuer == SIMULATED_ROLE
    return {
        "arn": arn,
        "id": arn,
        "issuerArn": issuer,
        "issuerId": "AROASIMULATED" if known else "",
        "issuerName": role,
        "sessionName": session,
    }


def _availability_zones(account: Account, arguments: Properties) -> Properties:
    without = {*at(arguments, "excludeNames", [])}
    without_ids = {*at(arguments, "excludeZoneIds", [])}
    names = [zone for zone in zones(account.region) if zone not in without and zone_id(zone) not in without_ids]
    return {
        **arguments,
        "id": account.region,
        "region": account.region,
        "groupNames": [account.region],
        "names": names,
        "zoneIds": [zone_id(zone) for zone in names],
    }


def _region(account: Account, arguments: Properties) -> Properties:
    region = at(arguments, "region") or at(arguments, "name") or account.region
    return {
        "id": region,
        "name": region,
        "region": region,
        "description": f"{region} (SIMULATED)",
        "endpoint": f"ec2.{region}.amazonaws.com",
    }


def _partition(_account: Account, _arguments: Properties) -> Properties:
    return {
        "id": PARTITION,
        "partition": PARTITION,
        "dnsSuffix": "amazonaws.com",
        "reverseDnsPrefix": "com.amazonaws",
    }


def _parameter(account: Account, arguments: Properties) -> Properties:
    name = arguments["name"]
    release = _AMI_RELEASE.fullmatch(name)
    if release is None:
        raise AwsError("ParameterNotFound", f"{name} (the simulation knows the EKS optimized AMI's release alone)")
    value = ami_release(release[1])
    return {
        **arguments,
        "id": name,
        "arn": f"arn:{PARTITION}:ssm:{account.region}::parameter{name}",
        "insecureValue": value,
        "value": value,
        "type": "String",
        "version": 1,
        "region": account.region,
    }


def _subnet(account: Account, arguments: Properties) -> Properties:
    row = _one(account, SUBNET, arguments, ("InvalidSubnetID.NotFound", "The subnet ID '{}' does not exist"))
    return {
        **row.state,
        "availableIpAddressCount": 2 ** (32 - int(str(row.state["cidrBlock"]).partition("/")[2])) - 5,
        "defaultForAz": False,
        "state": "available",
        "tags": at(row.state, "tags", {}),
        "customerOwnedIpv4Pool": "",
        "enableLniAtDeviceIndex": 0,
        "ipv6CidrBlock": "",
        "mapCustomerOwnedIpOnLaunch": False,
        "outpostArn": "",
    }


def _vpc(account: Account, arguments: Properties) -> Properties:
    row = _one(account, VPC, arguments, ("InvalidVpcID.NotFound", "The vpc ID '{}' does not exist"))
    block = {
        "associationId": f"vpc-cidr-assoc-{row.id[4:]}",
        "cidrBlock": row.state["cidrBlock"],
        "state": "associated",
    }
    return {
        **row.state,
        "cidrBlockAssociations": [block],
        "ipv6CidrBlockAssociations": [],
        "default": False,
        "state": "available",
        "tags": at(row.state, "tags", {}),
    }


def _one(account: Account, token: str, arguments: Properties, missing: tuple[str, str]) -> Row:
    wanted: Json = at(arguments, "id")
    if wanted is None:
        raise SimulationError(f"The simulated AWS finds {token} by id only, not by filters or tags.")
    row = account.read(token, wanted)
    if row is None:
        raise AwsError(missing[0], missing[1].format(wanted))
    return row


_INVOKES: dict[str, Callable[[Account, Properties], Properties]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:iam/getSessionContext:getSessionContext": _session_context,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _availability_zones,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getPartition:getPartition": _partition,
    "aws:ssm/getParameter:getParameter": _parameter,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:resourcegroupstaggingapi/getResources:getResources": tagging.get_resources,
}
