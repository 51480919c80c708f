"""The reference prices: one data file, `prices.yaml`, by region and name, each with its unit, date and source.

Reads and writes the file and says which prices are old. What a stack needs of them is `pricing.py`'s business;
`price_list.py` brings them up to date.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("prices.yaml")
REGION = "us-east-1"
"""The region whose prices alternatives and comparisons are told in."""

STALE_AFTER_DAYS = 90
UNITS = ("hour", "GB-month", "MiB/s-month", "GB", "LCU-hour")

_HEADER = """\
# Reference prices in USD, by region. `python -m planner price --refresh --write` rewrites this file from the AWS
# Price List with your own credentials; `prices:` in the stack file replaces a part's price for one stack alone.
#   unit       what `usd` is paid for: hour, GB-month or MiB/s-month (of 730 hours), GB or LCU-hour
#   date       when the source said so; older than 90 days is reported as old
#   confirmed  false: the figure was seen but no source stands for it, so that a bill counts it as unknown
"""


class PriceFileError(Exception):
    """A price file that is refused; the message says which entry and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One price: `usd` per `unit`, None where nobody named a figure. `date` is when the source said so."""

    usd: float | None
    unit: str
    date: datetime.date
    confirmed: bool
    source: str

    @property
    def known(self) -> float | None:
        """The price where a source confirms it; None is an unknown price."""
        return self.usd if self.confirmed else None

    def stale(self, today: datetime.date) -> bool:
        """Whether the price was read more than 90 days ago."""
        return (today - self.date).days > STALE_AFTER_DAYS


Region = dict[str, Reference]


def today() -> datetime.date:
    """The day against which the age of a price is told."""
    return datetime.date.today()


@cache
def reference() -> dict[str, Region]:
    """The project's own file."""
    return read(FILE)


def of(region: str) -> Region:
    """The prices of a region; empty where none are known."""
    return reference().get(region, {})


def on_demand(instance: str) -> float | None:
    """USD per hour of an instance type in `REGION`, None if unknown."""
    found = of(REGION).get(f"on_demand/{instance}")
    return None if found is None else found.known


def read(file: Path) -> dict[str, Region]:
    """The prices of a file by region and name. Raises PriceFileError."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PriceFileError(f"{file}: {error}") from None
    if not isinstance(content, dict):
        raise PriceFileError(f"{file}: a mapping of regions to prices is wanted")
    return {str(region): _region(file, str(region), entries) for region, entries in content.items()}


def write(file: Path, prices: Mapping[str, Region]) -> None:
    """Write the prices, one entry a line."""
    content = {region: {name: asdict(entry) for name, entry in entries.items()} for region, entries in prices.items()}
    text = yaml.safe_dump(content, default_flow_style=None, sort_keys=False, width=1000, allow_unicode=True)
    file.write_text(_HEADER + text, encoding="utf-8")


def _region(file: Path, region: str, entries: object) -> Region:
    if not isinstance(entries, dict):
        raise PriceFileError(f"{file}: {region}: a mapping of names to prices is wanted")
    return {str(name): _entry(f"{file}: {region}: {name}", entry) for name, entry in entries.items()}


def _entry(place: str, entry: object) -> Reference:
    wanted = ("usd", "unit", "date", "confirmed", "source")
    if not isinstance(entry, dict) or set(entry) != set(wanted):
        raise PriceFileError(f"{place}: exactly the keys {', '.join(wanted)} are wanted")
    usd, unit, date, confirmed, source = (entry[key] for key in wanted)
    number = isinstance(usd, int | float) and not isinstance(usd, bool)
    if not (usd is None or (number and 0 < usd < float("inf"))):
        raise PriceFileError(f"{place}: usd is {usd!r}; allowed: a number greater than 0, or null for unknown")
    if unit not in UNITS:
        raise PriceFileError(f"{place}: unit is {unit!r}; allowed: {', '.join(UNITS)}")
    if not isinstance(date, datetime.date):
        raise PriceFileError(f"{place}: date is {date!r}; allowed: a date, as 2026-07-20")
    if not isinstance(confirmed, bool) or not isinstance(source, str) or not source:
        raise PriceFileError(f"{place}: confirmed is true or false, and source is a text that names one")
    return Reference(usd=usd, unit=unit, date=date, confirmed=confirmed, source=source)
