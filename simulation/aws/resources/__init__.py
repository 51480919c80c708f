"""The tables of the AWS resource types that the simulation knows.

A new type is one `ResourceType` in the table of its service, listed in that module's TYPES. The tests hold it against
the installed SDK: every output that the SDK reads must be computed.
"""

from __future__ import annotations

from simulation.aws.errors import SimulationError
from simulation.aws.resources import compute, eks, eks_access, iam, network, routing, s3, security, storage
from simulation.aws.schema import ResourceType

TABLE: dict[str, ResourceType] = {
    resource_type.token: resource_type
    for module in (network, routing, security, compute, iam, eks, eks_access, storage, s3)
    for resource_type in module.TYPES
}


def resource_type(token: str) -> ResourceType:
    """The table entry of `token`, or a SimulationError that says where to add one."""
    try:
        return TABLE[token]
    except KeyError:
        module = token.removeprefix("aws:").partition("/")[0]
        own = {name: f"{name}.py" for name in ("iam", "eks", "s3")}
        files = {"ec2": "network.py or compute.py", "vpc": "security.py"} | own
        raise SimulationError(
            f"The simulated AWS does not know the resource type {token}. "
            "Add a ResourceType for it to "
            f"simulation/aws/resources/{files.get(module, 'storage.py, or a new table')}."
        ) from None
