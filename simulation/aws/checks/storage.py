"""FSx's and CloudWatch's rules (FSx for Lustre user guide, as read in 2026-08)."""

from __future__ import annotations

from simulation.aws.errors import AwsError
from simulation.aws.schema import Request
from simulation.aws.store import View
from simulation.aws.values import Properties, at, values_at

_RULES = (
    ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "ingress"),
    ("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule", "egress"),
)
_SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
_THROUGHPUT = {"PERSISTENT_1": (50, 100, 200), "PERSISTENT_2": (125, 250, 500, 1000)}
_EFA_CAPACITY = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
_LUSTRE_PORT = 988
_RETENTION_DAYS = (
    *(0, 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180),
    *(365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653),
)


def _refuse(message: str) -> AwsError:
    return AwsError("BadRequest", message)


def _deployment(request: Request) -> str:
    return str(at(request.inputs, "deploymentType", "SCRATCH_1"))


def _is_ssd(request: Request) -> bool:
    return bool(at(request.inputs, "storageType", "SSD") == "SSD")


def _throughput_fits_deployment(request: Request) -> None:
    throughput = at(request.inputs, "perUnitStorageThroughput")
    allowed = _THROUGHPUT.get(_deployment(request))
    if allowed is None and throughput:
        raise _refuse(f"PerUnitStorageThroughput is not supported for {_deployment(request)} file systems")
    if allowed and _is_ssd(request) and throughput not in allowed:
        raise _refuse(
            f"PerUnitStorageThroughput {throughput} is not valid for {_deployment(request)} on SSD: "
            f"one of {', '.join(map(str, allowed))} MB/s/TiB"
        )


def _capacity_steps(request: Request) -> None:
    capacity = int(at(request.inputs, "storageCapacity", 1200))
    step = 3600 if _deployment(request) == "SCRATCH_1" else 2400
    if _is_ssd(request) and capacity not in (1200, 2400) and (capacity < step or capacity % step):
        raise _refuse(f"StorageCapacity {capacity} is not valid: 1200, 2400 or a multiple of {step} GiB")


def _lustre_version(request: Request) -> None:
    version = at(request.inputs, "fileSystemTypeVersion")
    allowed = ("2.12", "2.15") if _deployment(request) == "PERSISTENT_2" else ("2.10", "2.12", "2.15")
    if version and version not in allowed:
        raise _refuse(f"FileSystemTypeVersion {version} is not valid for {_deployment(request)}: {', '.join(allowed)}")


def _efa_needs_metadata_and_steps(request: Request) -> None:
    if not at(request.inputs, "efaEnabled", False):
        return
    throughput = at(request.inputs, "perUnitStorageThroughput")
    capacity = at(request.inputs, "storageCapacity", 0)
    if _deployment(request) != "PERSISTENT_2" or not at(request.inputs, "metadataConfiguration"):
        raise _refuse("EfaEnabled needs the deployment type PERSISTENT_2 and a metadata configuration")
    if capacity % _EFA_CAPACITY.get(throughput, 1):
        raise _refuse(
            f"With EFA at {throughput} MB/s/TiB the capacity is a multiple of {_EFA_CAPACITY[throughput]} GiB"
        )


def _lustre_port_is_open(request: Request) -> None:
    """Rules for port 988 stand before the file system is created, in and out, in one of its groups."""
    groups = values_at(request.inputs, "securityGroupIds[]")
    for rule_type, direction in _RULES:
        open_here = any(_permits(request.view, group, rule_type, direction) for group in groups)
        if groups and not open_here:
            raise AwsError(
                "InvalidNetworkSettings",
                f"The file system cannot be created because the provided security group(s) {', '.join(groups)} "
                f"do not permit Lustre LNET network traffic on port {_LUSTRE_PORT} ({direction}). "
                "Make the file system depend on the rules.",
            )


def _permits(view: View, group: str, rule_type: str, direction: str) -> bool:
    row = view.get(_SECURITY_GROUP, group)
    if row and row.owner:  # AWS's own groups let their members talk to each other
        return True
    inline = values_at(row.state, f"{direction}[]") if row else []
    rules = [state for state in (r.state for r in view.rows(rule_type)) if state["securityGroupId"] == group]
    return any(_covers(rule, _LUSTRE_PORT) for rule in [*inline, *rules])


def _covers(rule: Properties, port: int) -> bool:
    protocol = str(rule.get("ipProtocol", rule.get("protocol")))
    return protocol == "-1" or (
        protocol in ("tcp", "6") and rule.get("fromPort", 0) <= port <= rule.get("toPort", 65535)
    )


LUSTRE = (
    _throughput_fits_deployment,
    _capacity_steps,
    _lustre_version,
    _efa_needs_metadata_and_steps,
    _lustre_port_is_open,
)


def log_retention(request: Request) -> None:
    """Log retention is one of CloudWatch's steps; 0 keeps for ever."""
    days = at(request.inputs, "retentionInDays", 0)
    if days not in _RETENTION_DAYS:
        raise AwsError("InvalidParameterException", f"retentionInDays {days} is not one of {_RETENTION_DAYS}")
