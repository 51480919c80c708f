"""Whether the account's quotas hold the stack beside what runs now.

Codes of quotas: EC2 user guide and Service Quotas console (read in public tools of 2025 and 2026).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from operations.account import Account, AwsError
from operations.checks import Check, Subject
from operations.command import STACK_TAG
from operations.search import tags_of
from planner.hardware import GPU_TYPES, SYSTEM_TYPES, InstanceType
from planner.platform_settings import NewNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A quota of Service Quotas: its `service` there, its code, and the name in the console."""

    service: str
    code: str
    name: str


# Running on-demand instances are counted in vCPUs, by the letters that begin the type's name.
P = Quota(service="ec2", code="L-417A185B", name="Running On-Demand P instances")
G = Quota(service="ec2", code="L-DB2E81BA", name="Running On-Demand G and VT instances")
STANDARD = Quota(service="ec2", code="L-1216C47A", name="Running On-Demand Standard instances")
_STANDARD_LETTERS = ("a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z")
_FAMILIES = {"p": P, "g": G, "gr": G, "vt": G} | dict.fromkeys(_STANDARD_LETTERS, STANDARD)
ADDRESSES = Quota(service="ec2", code="L-0263D0A3", name="EC2-VPC Elastic IPs")
VPCS = Quota(service="vpc", code="L-F678F1CE", name="VPCs per Region")


def quota_of(instance_type: str) -> Quota | None:
    """The quota that on-demand instances of a type count against, None for families that no stack uses."""
    return _FAMILIES.get(re.split(r"\d", instance_type)[0])


def vcpus(subject: Subject) -> Iterator[Check]:
    """vCPUs of GPU and CPU nodes, each against its own quota."""
    yield from gpu_vcpus(subject)
    yield _vcpus(subject, subject.system_type, subject.platform.system_nodes.count)


def gpu_vcpus(subject: Subject) -> Iterator[Check]:
    """vCPUs of the GPU nodes alone."""
    yield _vcpus(subject, subject.gpu_type, subject.settings.gpu_nodes.count)


def _vcpus(subject: Subject, kind: InstanceType, count: int) -> Check:
    quota = quota_of(kind.name)
    assert quota is not None, kind.name  # noqa: S101 (a test holds it for all types of the tables)
    needed = f"{count} x {kind.name} of {kind.vcpus} vCPUs"
    return _compared(subject, quota, _running(subject).get(quota.code, 0), count * kind.vcpus, needed)


def network(subject: Subject) -> Iterator[Check]:
    """One VPC and one Elastic IP address, where the stack makes its own network."""
    if not isinstance(subject.platform.network, NewNetwork):
        return
    ask = subject.account.ask
    held = len(_others(subject, ask("ec2", "describe_addresses")["Addresses"]))
    yield _compared(subject, ADDRESSES, held, 1, "one for the NAT gateway")
    vpcs = len(_others(subject, subject.account.pages("ec2", "describe_vpcs", "Vpcs")))
    yield _compared(subject, VPCS, vpcs, 1, "one for the stack")


def value_of(account: Account, quota: Quota) -> float:
    """The account's own value, or AWS's default where none was ever set. Raises AwsError."""
    which = {"ServiceCode": quota.service, "QuotaCode": quota.code}
    try:
        return float(account.ask("service-quotas", "get_service_quota", **which)["Quota"]["Value"])
    except AwsError as error:
        if error.code != "NoSuchResourceException":
            raise
        return float(account.ask("service-quotas", "get_aws_default_service_quota", **which)["Quota"]["Value"])


def _compared(subject: Subject, quota: Quota, used: float, needed: int, what: str) -> Check:
    value = value_of(subject.account, quota)
    says = f"{value:g} in all, {used:g} used by others, {needed} needed: {what}"
    about = f"{quota.name} ({quota.code})"
    if used + needed <= value:
        return Check(level="pass", about=about, says=says)
    request = (
        f"aws service-quotas request-service-quota-increase --service-code {quota.service} --quota-code {quota.code}"
        f" --desired-value {math.ceil(used + needed)} --region {subject.account.region}"
    )
    return Check(level="fail", about=about, says=says, do=request)


def _running(subject: Subject) -> dict[str, int]:
    """vCPUs that others run on demand, by the quota's code; the stack's own are needed, not used."""
    states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    used: dict[str, int] = {}
    for reservation in subject.account.pages("ec2", "describe_instances", "Reservations", Filters=states):
        for item in _others(subject, reservation["Instances"]):
            quota = quota_of(item["InstanceType"])
            if quota is None or item.get("InstanceLifecycle") is not None:
                continue
            known = GPU_TYPES.get(item["InstanceType"]) or SYSTEM_TYPES.get(item["InstanceType"])
            cores = item.get("CpuOptions", {})
            told = cores.get("CoreCount", 0) * cores.get("ThreadsPerCore", 1)
            used[quota.code] = used.get(quota.code, 0) + (known.vcpus if known else told)
    return used


def _others(subject: Subject, items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What does not carry the stack's tag."""
    return [item for item in items if tags_of(item.get("Tags")).get(STACK_TAG) != subject.settings.name]
