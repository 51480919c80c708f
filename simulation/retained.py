"""What the simulated account holds and no stack's state knows: retained on destroy, or forgotten.

The engine drops a resource with `retain_on_delete` from its state without a word to the provider. So the account is
compared with the states in the simulation's backend, once no `pulumi` command runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from simulation import paths
from simulation.aws.resources import resource_type
from simulation.aws.store import Row, Store

BILLING = {
    "ec2:Eip",
    "ec2:NatGateway",
    "eks:Cluster",
    "eks:NodeGroup",
    "fsx:LustreFileSystem",
    "lb:LoadBalancer",
    "s3:Bucket",
}
"""What AWS bills by the hour or the gigabyte for as long as it is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """One resource outside of every stack."""

    token: str
    id: str
    name: str
    """The logical name that it had in its stack."""

    @property
    def bills(self) -> bool:
        """Whether it would cost money in a real account."""
        return resource_type(self.token).title in BILLING

    def __str__(self) -> str:
        kind = resource_type(self.token).title
        return f"retained: {kind} {self.name} ({self.id}){' still bills' if self.bills else ''}"


def listed() -> list[Retained]:
    """Every resource that no stack knows, those that bill first; what AWS made along with others is left out."""
    if not paths.aws_store().exists():
        return []
    known = _known()
    rows = [row for row in Store(paths.aws_store()).list_resources() if row.owner is None and _key(row) not in known]
    found = [Retained(token=row.type, id=row.id, name=row.name) for row in rows]
    return sorted(found, key=lambda one: not one.bills)


def _key(row: Row) -> tuple[str, str]:
    return row.type, row.id


def _known() -> set[tuple[str, str]]:
    """Type and id of every resource in the states of the backend."""
    found = set()
    for file in (paths.backend() / ".pulumi" / "stacks").glob("*/*.json"):
        latest = json.loads(file.read_text()).get("checkpoint", {}).get("latest") or {}
        found |= {(one["type"], one["id"]) for one in latest.get("resources") or [] if one.get("id")}
    return found
