"""Failures on demand, to see what a stack does when AWS says no.

    SIMULATE_FAULTS=eks:NodeGroup/gpu-nodes-group=InsufficientInstanceCapacity:2
    SIMULATE_FAULTS=fsx:LustreFileSystem=delete/ServiceLimitExceeded:1

makes the first two creations of the node group of that name fail, and the first deletion of any file system. The
operation is create unless it is written before the code (create/, update/, delete/). Counts are kept in the account, so
a second `up` goes on where the first one stopped.

A failed creation leaves nothing behind. In AWS a node group without capacity stays as CREATE_FAILED, is
marked in the state, and is replaced by the next `up`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from simulation.aws.errors import AwsError, SimulationError
from simulation.aws.resources import TABLE
from simulation.aws.schema import ResourceType
from simulation.aws.store import View

VARIABLE = "SIMULATE_FAULTS"
_RULE = re.compile(
    r"(?P<type>[a-z0-9]+:\w+)(?:/(?P<name>[\w.-]+))?=(?:(?P<operation>create|update|delete)/)?(?P<code>[\w.]+):(?P<times>\d+)"
)
_MESSAGES = {
    "InsufficientInstanceCapacity": (
        "unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. last error: AsgInstanceLaunchFailures: "
        "Could not launch the instances. We currently do not have sufficient capacity in the Availability "
        "Zone you requested."
    ),
    "ServiceLimitExceeded": "The request exceeds a service quota of this account.",
    "ThrottlingException": "Rate exceeded",
    "AccessDenied": "User is not authorized to perform this operation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The first `times` calls of `operation` on the type (`eks:NodeGroup`) fail with `code`, of every name if None."""

    type: str
    name: str | None
    operation: str
    code: str
    times: int

    @property
    def rule(self) -> str:
        """The name under which failed calls are counted."""
        return f"{self.type}/{self.name or '*'}={self.operation}/{self.code}"


def parse(text: str) -> tuple[Fault, ...]:
    """The faults that SIMULATE_FAULTS asks for. Raises SimulationError for a rule it cannot read."""
    faults = []
    for rule in filter(None, (part.strip() for part in text.split(","))):
        match = _RULE.fullmatch(rule)
        if match is None:
            raise SimulationError(
                f"{VARIABLE}: cannot read {rule!r}. A rule is type=code:times, "
                "with /name after the type and operation/ before the code where wanted, "
                "such as eks:NodeGroup/gpu-nodes-group=InsufficientInstanceCapacity:2 "
                "or fsx:LustreFileSystem=delete/ServiceLimitExceeded:1."
            )
        if match["type"] not in {kind.title for kind in TABLE.values()}:
            raise SimulationError(f"{VARIABLE}: there is no simulated resource type {match['type']} ({rule!r}).")
        operation, times = match["operation"] or "create", int(match["times"])
        faults.append(
            Fault(type=match["type"], name=match["name"], operation=operation, code=match["code"], times=times)
        )
    return tuple(faults)


def due(
    faults: tuple[Fault, ...], resource_type: ResourceType, name: str, operation: str, view: View
) -> AwsError | None:
    """The error that this call must fail with, counted in `view`, or none."""
    for fault in faults:
        asked = (fault.type, fault.name or name, fault.operation) == (resource_type.title, name, operation)
        fired = view.fired(fault.rule)
        if asked and fired < fault.times:
            view.fire(fault.rule)
            message = _MESSAGES.get(fault.code, "The request failed.")
            return AwsError(fault.code, f"{message} ({VARIABLE} asked for this: {fired + 1} of {fault.times})")
    return None
