"""The Resource Groups Tagging API: which resources bear which tags.

As in AWS only tagged resources of one region are found, those of IAM never, and a resource's type is what its ARN says.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.aws.account import Account
from simulation.aws.errors import AwsError
from simulation.aws.store import Row
from simulation.aws.values import Json, Properties, at, values_at


def get_resources(account: Account, arguments: Properties) -> Properties:
    """The answer of the data source `getResources`."""
    arns, filters = at(arguments, "resourceArnLists"), values_at(arguments, "tagFilters[]")
    if arns and (filters or at(arguments, "resourceTypeFilters")):
        raise AwsError("InvalidParameterException", "ResourceARNList cannot be used together with filters.")
    types = values_at(arguments, "resourceTypeFilters[]")
    region = at(arguments, "region", account.region)
    found = [
        {"resourceArn": arn, "tags": tags, "complianceDetails": []}
        for arn, tags in _tagged(account, region)
        if (not arns or arn in arns) and (not types or _is_any(arn, types)) and _match(tags, filters)
    ]
    return {**arguments, "id": region, "region": region, "resourceTagMappingLists": found}


def _tagged(account: Account, region: str) -> Iterator[tuple[str, dict[str, str]]]:
    for row in account.store.list_resources():
        arn, tags = _arn(row), at(row.state, "tagsAll", {})
        if arn and tags and row.state.get("region") == region:
            yield arn, tags


def _arn(row: Row) -> str | None:
    named = (row.state.get(key) for key in ("arn", "accessEntryArn", "associationArn"))
    return next((arn for arn in named if arn), None)


def _is_any(arn: str, types: list[str]) -> bool:
    """Whether the ARN is of one of `types`: a service (`fsx`) or a service's type (`fsx:file-system`)."""
    _, _, service, _, _, resource = arn.split(":", 5)
    kind = "bucket" if service == "s3" else resource.replace(":", "/").partition("/")[0]
    return any(wanted in (service, f"{service}:{kind}") for wanted in types)


def _match(tags: dict[str, str], filters: list[Json]) -> bool:
    """Every filter's key is there, with one of its values if it names any."""
    return all(
        wanted["key"] in tags and (not at(wanted, "values") or tags[wanted["key"]] in wanted["values"])
        for wanted in filters
    )
