"""What one check of an account says, what it may look at, and running all of them whatever becomes of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from operations.account import Account, AwsError
from planner.hardware import SYSTEM_TYPES, InstanceType
from planner.platform_settings import EksPlatform
from planner.settings import Deployment

Level = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line: `about` what, what AWS `says`, and for all but a pass what to `do`."""

    level: Level
    about: str
    says: str
    do: str = ""

    def data(self) -> dict[str, str]:
        """For programs."""
        return {"level": self.level, "about": self.about, "says": self.says, "do": self.do}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is checked: a stack's settings against an account."""

    account: Account
    settings: Deployment
    platform: EksPlatform
    gpu_type: InstanceType

    @property
    def system_type(self) -> InstanceType:
        """The CPU nodes' type."""
        return SYSTEM_TYPES[self.platform.system_nodes.instance_type]

    @property
    def nodes(self) -> int:
        """GPU and CPU nodes together."""
        return self.settings.gpu_nodes.count + self.platform.system_nodes.count


Question = Callable[[Subject], Iterator[Check]]


def run(questions: Mapping[str, Question], subject: Subject) -> Iterator[Check]:
    """Every check; one that AWS does not answer is a warning with the permission that it needs."""
    for about, question in questions.items():
        try:
            yield from question(subject)
        except AwsError as error:
            missing = f"allow {error.permission}, or see for yourself" if error.denied else "try again"
            yield Check(level="warn", about=about, says=f"could not be asked: {error}", do=missing)
