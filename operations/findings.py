"""What is found of a stack in AWS, what it costs by the hour, and the command that removes it. It asks nothing."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from planner import prices
from planner.pricing import HOURS_PER_MONTH

FREE = 0.0

# The order in which removing works: what stands later is held by what stands before it.
ORDER = (
    "load balancer",
    "target group",
    "file system",
    "file system backup",
    "node group",
    "instance",
    "security group rules",
    "cluster",
    "volume",
    "snapshot",
    "VPC endpoint",
    "NAT gateway",
    "address",
    "network interface",
    "security group",
    "internet gateway",
    "subnet",
    "route table",
    "VPC",
    "launch template",
    "placement group",
    "bucket",
    "log group",
    "role",
    "schedule",
    "budget",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One thing that exists. `usd_per_hour`: 0 is free, None a price that nobody confirmed.

    `remove`: a shell command, empty where it goes with something else; `note` then says with what.
    """

    kind: str
    id: str
    usd_per_hour: float | None
    remove: str
    since: datetime.datetime | None = None
    note: str = ""

    @property
    def bills(self) -> bool:
        """Whether it costs, or may: an unknown price is not none."""
        return self.usd_per_hour != FREE

    def data(self) -> dict[str, object]:
        """For programs: `since` in ISO 8601."""
        return {
            "kind": self.kind,
            "id": self.id,
            "since": self.since.isoformat() if self.since else None,
            "usd_per_hour": self.usd_per_hour,
            "bills": self.bills,
            "note": self.note,
            "remove": self.remove or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """What could not be looked for, and why. `permission`: the one that is missing, None if another thing is wrong."""

    what: str
    why: str
    permission: str | None

    def data(self) -> dict[str, object]:
        """For programs."""
        return {"what": self.what, "why": self.why, "missing_permission": self.permission}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The planner's reference prices of a region, in USD per hour."""

    region: str

    def hourly(self, name: str, quantity: float = 1) -> float | None:
        """`quantity` of what stands under `name` in prices.yaml; None if the price is unknown."""
        entry = prices.of(self.region).get(name)
        if entry is None or entry.known is None:
            return None
        return quantity * entry.known / (HOURS_PER_MONTH if entry.unit.endswith("-month") else 1)


def in_order(found: Iterable[Found]) -> tuple[Found, ...]:
    """As the commands that remove them work; what has no place in the order stands last."""
    places = {kind: place for place, kind in enumerate(ORDER)}
    return tuple(sorted(found, key=lambda item: (places.get(item.kind, len(ORDER)), item.kind, item.id)))
