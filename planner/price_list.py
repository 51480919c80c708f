"""Today's prices from the AWS Price List, read with the user's own credentials (boto3, an optional dependency).

Capacity blocks are not in the price list: their price is offered anew every day. The queries follow the attributes
that infracost (infracost/infracost, internal/resources/aws) asks for; those of FSx for Lustre were not seen in an
answer, so that one that does not name exactly one price changes nothing.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.hardware import GPU_TYPES, SYSTEM_TYPES
from planner.prices import Reference, Region

# The Price List has its own few endpoints; this one answers for every region.
ENDPOINT_REGION = "us-east-1"
SOURCE = "AWS Price List"


class PriceListError(Exception):
    """The price list could not be read; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """How a price is found: exact attributes, and a pattern for the usage type, whose prefix names the region."""

    service: str
    attributes: Mapping[str, str]
    unit: str
    usage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What the price list says of one price. `after` is None where it names none, or several."""

    name: str
    before: Reference | None
    after: Reference | None
    note: str

    @property
    def differs(self) -> bool:
        """Whether the figure changed, or became known."""
        return self.after is not None and (self.before is None or self.before.known != self.after.usd)


def _compute(instance: str) -> Query:
    attributes = {
        "instanceType": instance,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    return Query(service="AmazonEC2", attributes=attributes, unit="hour", usage=r"BoxUsage:")


def _lustre(throughput: int) -> Query:
    """FSx for Lustre PERSISTENT_2 on SSD; the throughput per TiB stands in the usage type or its own attribute."""
    attributes = {"fileSystemType": "Lustre", "storageType": "SSD"}
    return Query(service="AmazonFSx", attributes=attributes, unit="GB-month", usage=rf"(?<!\d){throughput}(?!\d)")


def _query(service: str, family: str, usage: str, unit: str) -> Query:
    return Query(service=service, attributes={"productFamily": family}, unit=unit, usage=usage)


QUERIES: dict[str, Query] = {
    **{f"on_demand/{name}": _compute(name) for name in (*GPU_TYPES, *SYSTEM_TYPES)},
    **{f"fsx_persistent_2/{step}": _lustre(step) for step in (125, 250, 500, 1000)},
    "eks/standard_support": _query("AmazonEKS", "Compute", r"AmazonEKS-Hours:perCluster", "hour"),
    "eks/extended_support": _query("AmazonEKS", "Compute", r"AmazonEKS-Hours:extendedSupport", "hour"),
    "nat_gateway/hour": _query("AmazonEC2", "NAT Gateway", r"NatGateway-Hours$", "hour"),
    "nat_gateway/gb": _query("AmazonEC2", "NAT Gateway", r"NatGateway-Bytes$", "GB"),
    "public_ipv4": _query("AmazonVPC", "VpcPublicIPv4Address", r"PublicIPv4:InUseAddress$", "hour"),
    "gp3": _query("AmazonEC2", "Storage", r"EBS:VolumeUsage\.gp3$", "GB-month"),
    "logs/ingested": _query("AmazonCloudWatch", "Data Payload", r"-DataProcessing-Bytes$", "GB"),
    "s3/standard": _query("AmazonS3", "Storage", r"(?:^|-)TimedStorage-ByteHrs$", "GB-month"),
    "interface_endpoint/hour": _query("AmazonVPC", "VpcEndpoint", r"VpcEndpoint-Hours$", "hour"),
    "interface_endpoint/gb": _query("AmazonVPC", "VpcEndpoint", r"VpcEndpoint-Bytes$", "GB"),
    "load_balancer/hour": _query("AWSELB", "Load Balancer-Application", r"(?:^|-)LoadBalancerUsage$", "hour"),
    "load_balancer/lcu": _query("AWSELB", "Load Balancer-Application", r"(?:^|-)LCUUsage$", "LCU-hour"),
}


def client() -> Any:  # noqa: ANN401 (boto3 makes its clients at run time)
    """A Price List client with the user's own credentials. Raises PriceListError where there can be none."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise PriceListError("boto3 is not installed; type: pip install boto3") from None
    try:
        return boto3.client("pricing", region_name=ENDPOINT_REGION)
    except BotoCoreError as error:
        raise PriceListError(f"no client for the AWS Price List: {error}") from None


def refresh(client: Any, region: str, known: Region, today: datetime.date) -> Iterator[Change]:  # noqa: ANN401
    """What the price list says of every price that the planner uses in `region`. Raises PriceListError."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        for name, query in QUERIES.items():
            yield _change(name, query, _found(client, region, query), known.get(name), today)
    except (BotoCoreError, ClientError) as error:
        raise PriceListError(
            f"the AWS Price List did not answer: {error}\nIt needs credentials (`aws sts get-caller-identity` shows "
            "whose) that may call pricing:GetProducts"
        ) from None


def merged(known: Region, changes: Iterator[Change] | tuple[Change, ...]) -> Region:
    """The prices with what the price list said; what it did not name stays as it was."""
    return known | {change.name: change.after for change in changes if change.after is not None}


def _change(name: str, query: Query, found: frozenset[float], before: Reference | None, today: datetime.date) -> Change:
    if len(found) != 1:
        note = "not in the price list" if not found else f"{len(found)} prices match: {_listed(found)}"
        return Change(name=name, before=before, after=None, note=note)
    after = Reference(usd=min(found), unit=query.unit, date=today, confirmed=True, source=SOURCE)
    return Change(name=name, before=before, after=after, note="")


def _found(client: Any, region: str, query: Query) -> frozenset[float]:  # noqa: ANN401
    """The distinct on-demand prices of all products that match, of each the first tier."""
    wanted = {"regionCode": region, **query.attributes}
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    request: dict[str, Any] = {"ServiceCode": query.service, "Filters": filters, "FormatVersion": "aws_v1"}
    prices: set[float] = set()
    while True:
        answer = client.get_products(**request)
        for text in answer["PriceList"]:
            product = json.loads(text)
            if re.search(query.usage, _usage(product)):
                prices |= set(_usd(product))
        if not answer.get("NextToken"):
            return frozenset(prices)
        request["NextToken"] = answer["NextToken"]


def _usage(product: Mapping[str, Any]) -> str:
    """The usage type; for FSx the throughput beside it."""
    attributes = product.get("product", {}).get("attributes", {})
    return " ".join(str(attributes[key]) for key in ("throughputCapacity", "usagetype") if key in attributes)


def _usd(product: Mapping[str, Any]) -> Iterator[float]:
    """On-demand prices above zero, first tiers only: later ones are discounts for volumes beyond this stack's."""
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            usd = float(dimension.get("pricePerUnit", {}).get("USD", 0))
            if usd > 0 and dimension.get("beginRange", "0") == "0":
                yield usd


def _listed(found: frozenset[float]) -> str:
    return ", ".join(f"{usd:g}" for usd in sorted(found))
