"""Availability zones: AWS Regional and zone names as of 2026; their ids differ from account to account."""

from __future__ import annotations

_REGION_ZONES = {"us-east-1": "abcdef", "us-west-2": "abcd", "ap-northeast-1": "acd", "us-west-1": "ac"}
_MOST_REGIONS = "abc"


def zones(region: str) -> list[str]:
    """The zone names of `region` in this account."""
    return [region + letter for letter in _REGION_ZONES.get(region, _MOST_REGIONS)]


def zone_id(zone: str) -> str:
    """The account-independent id of `zone`, such as use1-az1 for us-east-1a."""
    area, direction, number = zone[:-1].rsplit("-", 2)
    short = {"northeast": "ne", "southeast": "se", "northwest": "nw", "southwest": "sw"}.get(direction, direction[0])
    return f"{area.replace('-', '')}{short}{number}-az{zones(zone[:-1]).index(zone) + 1}"
