"""Tables for people of what was found, and the same as data. No question and no figure of its own."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from operations.account import Account
from operations.audit import Answer
from operations.command import Stack
from operations.findings import Found, Unseen
from planner.tables import table


def place(account: Account, stack: Stack) -> str:
    """Which stack was looked for, and where."""
    return f"{stack.name} in account {account.number}, {stack.region}"


def sum_of(answer: Answer) -> str:
    """What bills by the hour, a lower bound where something is not known."""
    return f"{'' if answer.complete else 'at least '}{answer.usd_per_hour:.2f} USD per hour"


def listed(found: Iterable[Found]) -> RenderableType:
    """What, id, since when and USD per hour."""
    made = table("what", "id", "since", "about", "USD/h", left=4, fold="about")
    for item in found:
        usd = "unknown" if item.usd_per_hour is None else f"{item.usd_per_hour:.3f}"
        made.add_row(item.kind, item.id, _day(item.since), item.note, usd)
    return made


def not_seen(unseen: Iterable[Unseen]) -> Iterator[Text]:
    """What could not be looked for: it may exist and bill."""
    for item in unseen:
        why = f"the permission {item.permission} is missing" if item.permission else item.why
        yield Text(f"Not looked for: {item.what}: {why}.")


def answer_data(account: Account, stack: Stack, answer: Answer) -> dict[str, object]:
    """The answer for programs."""
    return {
        "stack": stack.name,
        "account": account.number,
        "region": stack.region,
        "usd_per_hour": answer.usd_per_hour,
        "complete": answer.complete,
        "found": [item.data() for item in answer.found],
        "unseen": [item.data() for item in answer.unseen],
    }


def _day(since: datetime.datetime | None) -> str:
    return "" if since is None else since.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M")
