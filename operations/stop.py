"""`python -m operations.stop`: ends the GPU nodes with AWS credentials alone, neither Pulumi nor cluster asked.

Scales the stack's GPU node group to none and waits until its instances are gone; the rest of the stack stays and is
told with its price. Doing it twice does nothing. Exit status: 0 when no GPU node bills any more, 1 when one still
does or could not be looked for, 2 when refused.
Permissions: sts:GetCallerIdentity, eks:DescribeNodegroup, eks:UpdateNodegroupConfig, ec2:DescribeInstances; those of
`operations.leftovers` for what bills afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from operations.account import Account, AwsError, connect
from operations.audit import Answer, audit
from operations.command import DEFAULT_STACK_FILE, STACK_TAG, Stack, StackFile, app_of, stack_of
from operations.findings import Prices
from operations.report import answer_data, listed, not_seen, place, sum_of
from operations.search_nodes import LIVE_STATES, instance_price
from planner.command_line import refuse, show
from planner.options import AsJson

STILL_RUNS = 1
MINUTES = 20
"""How long instances may take to end: EKS drains nodes, EC2 scrubs local disks."""
PAUSE_SECONDS = 10
RESUME = "`pulumi up --refresh` resumes with the count of the stack file."

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNodes:
    """The node group as EKS has it, None if there is none, and the instances that bill."""

    group: dict[str, Any] | None
    instances: tuple[dict[str, Any], ...]

    @property
    def ids(self) -> list[str]:
        """Of the instances."""
        return [item["InstanceId"] for item in self.instances]

    @property
    def stopped(self) -> bool:
        """Whether nothing runs, and nothing will be started."""
        wanted = self.group["scalingConfig"]["desiredSize"] if self.group else 0
        return not self.instances and not wanted


def stop(stack_file: StackFile = DEFAULT_STACK_FILE, yes: Yes = False, as_json: AsJson = False) -> None:
    """Scale the GPU nodes of a stack to none, wait until they are gone, and tell what bills after that."""
    if as_json and not yes:
        refuse("--json", "only beside --yes: nobody is asked", "--json --yes")
    stack = stack_of(stack_file)
    account = connect(stack.region)
    try:
        nodes = gpu_nodes(account, stack)
        if not nodes.stopped:
            if not yes:
                _ask(account, stack, nodes)
            nodes = _stopped(account, stack, nodes)
    except AwsError as error:
        permission = f" The permission {error.permission} is missing." if error.denied else ""
        refuse(place(account, stack), f"what EKS and EC2 allow: {error}.{permission}")
    left = audit(account, stack)
    commands = () if nodes.stopped else tuple(by_hand(stack, nodes))
    data = {"running": nodes.ids, "by_hand": list(commands), **answer_data(account, stack, left)}
    show(data, tuple(_told(account, stack, nodes, left)), as_json=as_json)
    if not nodes.stopped:
        if not as_json:
            typer.echo("\n".join(commands))
        raise typer.Exit(STILL_RUNS)


def gpu_nodes(account: Account, stack: Stack) -> GpuNodes:
    """How things stand. A node group that lacks the stack's tag is not the stack's. Raises AwsError."""
    which = {"clusterName": stack.name, "nodegroupName": stack.gpu_node_group}
    group: dict[str, Any] | None
    try:
        group = account.ask("eks", "describe_nodegroup", **which)["nodegroup"]
    except AwsError as error:
        if error.code != "ResourceNotFoundException":
            raise
        group = None
    if group is not None and group.get("tags", {}).get(STACK_TAG) != stack.name:
        group = None
    filters = [
        {"Name": "instance-state-name", "Values": list(LIVE_STATES)},
        {"Name": f"tag:{STACK_TAG}", "Values": [stack.name]},
        {"Name": "tag:eks:nodegroup-name", "Values": [stack.gpu_node_group]},
    ]
    found = account.pages("ec2", "describe_instances", "Reservations", Filters=filters)
    return GpuNodes(group=group, instances=tuple(item for one in found for item in one["Instances"]))


def _ask(account: Account, stack: Stack, nodes: GpuNodes) -> None:
    prices = Prices(region=stack.region)
    known = [instance_price(prices, item) for item in nodes.instances]
    usd = f"{sum(item or 0 for item in known):.2f} USD per hour{'' if None not in known else ', or more'}"
    typer.echo(f"{place(account, stack)}: {len(nodes.instances)} GPU nodes, {usd}. Requests in flight are cut off.")
    typer.confirm("Stop them?", abort=True)


def _stopped(account: Account, stack: Stack, nodes: GpuNodes) -> GpuNodes:
    """Scale to none and wait. Raises AwsError."""
    deadline = time.monotonic() + MINUTES * 60
    if nodes.group is not None:
        _scale(account, stack, deadline)
    while not (nodes := gpu_nodes(account, stack)).stopped and time.monotonic() < deadline:
        typer.echo(f"{len(nodes.ids)} GPU nodes are still there.", err=True)
        time.sleep(PAUSE_SECONDS)
    return nodes


def _scale(account: Account, stack: Stack, deadline: float) -> None:
    """Tell EKS; while another change of the group is under way it refuses, and is told again."""
    none = {"minSize": 0, "desiredSize": 0}
    which = {"clusterName": stack.name, "nodegroupName": stack.gpu_node_group}
    while True:
        try:
            account.ask("eks", "update_nodegroup_config", **which, scalingConfig=none)
        except AwsError as error:
            if error.code != "ResourceInUseException":
                raise
            typer.echo(f"EKS is busy with the node group: {error}", err=True)
            if time.monotonic() >= deadline:
                return
            time.sleep(PAUSE_SECONDS)
        else:
            return


def _told(account: Account, stack: Stack, nodes: GpuNodes, left: Answer) -> Iterator[RenderableType]:
    where = place(account, stack)
    if nodes.stopped:
        yield Text(f"{where}: no GPU node runs. {RESUME}")
    else:
        yield Text(f"{where}: not stopped within {MINUTES} minutes: {', '.join(nodes.ids) or 'nodes are wanted'}.")
    if left.billing:
        yield Text("\nStill bills:")
        yield listed(left.billing)
        yield Text(f"Together {sum_of(left)}. `pulumi destroy` ends that.")
    yield from not_seen(left.unseen)
    if not nodes.stopped:
        yield Text("\nWhat ends the GPU nodes where EKS does not:")


def by_hand(stack: Stack, nodes: GpuNodes) -> Iterator[str]:
    """Commands that end what EKS does not: the Auto Scaling group first, which replaces instances that end."""
    scaling = (nodes.group or {}).get("resources", {}).get("autoScalingGroups", ())
    for group in scaling:
        to_none = "--min-size 0 --desired-capacity 0"
        which = f"--auto-scaling-group-name {group['name']} --region {stack.region}"
        yield f"aws autoscaling update-auto-scaling-group {to_none} {which}"
    if nodes.ids:
        yield f"aws ec2 terminate-instances --instance-ids {' '.join(nodes.ids)} --region {stack.region}"


app = app_of(stop)

if __name__ == "__main__":
    app(prog_name="python -m operations.stop")
