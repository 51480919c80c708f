"""`python -m operations.capacity`: where the GPU nodes could come from: capacity blocks on offer, quota, zones.

Buys nothing. A block is paid when it is bought and cannot be given back; nobody tells whether there is capacity on
demand before it is asked for. Exit status: 0 when a block is offered, 1 when none is, 2 when refused.
Permissions: sts:GetCallerIdentity, ec2:DescribeCapacityBlockOfferings, ec2:DescribeInstanceTypeOfferings,
ec2:DescribeInstances, servicequotas:GetServiceQuota, servicequotas:GetAWSDefaultServiceQuota.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from operations.account import Account, AwsError, connect
from operations.check_place import zones_offering
from operations.check_quotas import gpu_vcpus
from operations.checks import Check, Subject, run
from operations.command import DEFAULT_STACK_FILE, StackFile, app_of, stack_of
from operations.findings import Prices
from operations.report import place
from planner.command_line import facts_of, refuse, show
from planner.options import AsJson
from planner.platform_settings import EksPlatform
from planner.tables import table

NO_OFFER = 1
# A block lasts whole days up to two weeks, then whole weeks, and starts within eight weeks (EKS user guide,
# capacity-blocks-mng, 2026).
LONGEST_BY_DAY, LONGEST, AHEAD_DAYS = 14, 182, 56

Days = Annotated[int, typer.Option("--days", help="How long the block lasts.", show_default=True)]
From = Annotated[
    datetime.datetime | None,
    typer.Option("--from", help="The first day on which it may start; today if left out.", formats=["%Y-%m-%d"]),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One capacity block on offer. `upfront`: what all instances cost for the whole time, in `currency`."""

    id: str
    zone: str
    start: datetime.datetime
    end: datetime.datetime
    hours: float
    instances: int
    upfront: float
    currency: str

    @property
    def per_instance_hour(self) -> float:
        """What an instance costs by the hour, used or not."""
        return self.upfront / (self.hours * self.instances)

    def data(self) -> dict[str, object]:
        """For programs."""
        return {
            "id": self.id,
            "zone": self.zone,
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
            "hours": self.hours,
            "instances": self.instances,
            "upfront": self.upfront,
            "per_instance_hour": self.per_instance_hour,
            "currency": self.currency,
        }


def capacity(
    stack_file: StackFile = DEFAULT_STACK_FILE, days: Days = 1, first: From = None, as_json: AsJson = False
) -> None:
    """Capacity blocks on offer for a stack's GPU nodes, the on-demand quota, and the zones that have the type."""
    stack = stack_of(stack_file)
    start = _start(first)
    if not 1 <= days <= LONGEST or (days > LONGEST_BY_DAY and days % 7):
        refuse("--days", f"1 to {LONGEST_BY_DAY}, or whole weeks up to {LONGEST}", "--days 7", given=days)
    facts = facts_of(stack_file, ())
    count, platform = facts.settings.gpu_nodes.count, facts.settings.platform
    assert isinstance(platform, EksPlatform)  # noqa: S101 (stack_of refuses the other kind)
    if not count:
        mend = "pulumi config set --path deployment.gpuNodes.count 2"
        refuse(f"{stack_file}: gpuNodes.count", "1 or more: a paused stack has no GPU nodes", mend, given=0)
    account = connect(stack.region)
    subject = Subject(account=account, settings=facts.settings, platform=platform, gpu_type=facts.instance)
    try:
        offers = _offers(account, facts.instance.name, count, days, start)
        zones = zones_offering(account, facts.instance.name)
    except AwsError as error:
        permission = f" The permission {error.permission} is missing." if error.denied else ""
        refuse(place(account, stack), f"what EC2 answers: {error}.{permission}")
    quota = tuple(run({"vCPU quota": gpu_vcpus}, subject))
    on_demand = Prices(region=stack.region).hourly(f"on_demand/{facts.instance.name}")
    data = {
        "instance_type": facts.instance.name,
        "zones": list(zones),
        "on_demand_per_instance_hour": on_demand,
        "quota": [check.data() for check in quota],
        "offers": [offer.data() for offer in offers],
    }
    tables = (Text(place(account, stack)), *_told(subject, offers, zones, quota, on_demand))
    show(data, tables, as_json=as_json)
    if not offers:
        raise typer.Exit(NO_OFFER)


def _start(first: datetime.datetime | None) -> datetime.datetime:
    """The beginning of the day, in UTC, which EC2 counts in."""
    now = datetime.datetime.now(tz=datetime.UTC)
    day = now.date() if first is None else first.date()
    last = now.date() + datetime.timedelta(days=AHEAD_DAYS)
    if not now.date() <= day <= last:
        refuse("--from", f"{now.date()} to {last}: blocks start within eight weeks", f"--from {now.date()}", given=day)
    return max(now, datetime.datetime.combine(day, datetime.time(), tzinfo=datetime.UTC))


def _offers(account: Account, kind: str, count: int, days: int, start: datetime.datetime) -> tuple[Offer, ...]:
    """What is on offer, the earliest first and of equal ones the cheapest. Raises AwsError."""
    request = {
        "InstanceType": kind,
        "InstanceCount": count,
        "CapacityDurationHours": 24 * days,
        "StartDateRange": start,
    }
    found = account.pages("ec2", "describe_capacity_block_offerings", "CapacityBlockOfferings", **request)
    return tuple(sorted(map(_offer, found), key=lambda offer: (offer.start, offer.upfront)))


def _offer(answer: Mapping[str, Any]) -> Offer:
    return Offer(
        id=answer["CapacityBlockOfferingId"],
        zone=answer["AvailabilityZone"],
        start=answer["StartDate"],
        end=answer["EndDate"],
        hours=(answer["EndDate"] - answer["StartDate"]).total_seconds() / 3600,
        instances=answer["InstanceCount"],
        upfront=float(answer["UpfrontFee"]),
        currency=answer["CurrencyCode"],
    )


def _told(
    subject: Subject,
    offers: tuple[Offer, ...],
    zones: tuple[str, ...],
    quota: tuple[Check, ...],
    on_demand: float | None,
) -> Iterator[RenderableType]:
    kind, wanted = subject.gpu_type.name, subject.platform.availability_zone
    usd = "at an unknown price" if on_demand is None else f"{on_demand:.2f} USD per instance-hour"
    yield Text(f"On demand: {kind}, {usd}, sold in {', '.join(zones) or 'no zone'}; the stack is in {wanted}.")
    for check in quota:
        yield Text(f"{check.level}: {check.about}: {check.says}")
        if check.do:
            yield Text(f"   {check.do}", no_wrap=True, overflow="ignore")
    if not offers:
        yield Text("\nNo capacity block is offered for that long from that day on. Ask for fewer days, or for others.")
        return
    yield Text("\nCapacity blocks, paid in full when bought, used or not:")
    made = table("id", "zone", "start (UTC)", "end (UTC)", "per instance-hour", "upfront", left=4)
    for offer in offers:
        per_hour, upfront = f"{offer.per_instance_hour:,.2f}", f"{offer.upfront:,.2f} {offer.currency}"
        made.add_row(offer.id, offer.zone, _minute(offer.start), _minute(offer.end), per_hour, upfront)
    yield made
    elsewhere = sorted({offer.zone for offer in offers} - {wanted})
    if elsewhere:
        yield Text(f"A block in {', '.join(elsewhere)} needs the stack there: platform.availabilityZone.")
    yield Text("EC2 takes the nodes back 30 minutes before the end, EKS begins to end them 40 minutes before.")


def _minute(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M")


app = app_of(capacity)

if __name__ == "__main__":
    app(prog_name="python -m operations.capacity")
