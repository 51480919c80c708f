"""`python -m operations.leftovers`: what of a stack still exists in AWS, what it bills, and how to remove it.

Changes nothing. Exit status: 0 when nothing bills, 1 when something does or could not be looked for, 2 when refused.
Permissions: sts:GetCallerIdentity, tag:GetResources, ec2:Describe* (instances, volumes, snapshots, VPCs, NAT gateways,
addresses, VPC endpoints, network interfaces, security groups and their rules), eks:DescribeCluster,
eks:ListNodegroups, eks:DescribeNodegroup, fsx:DescribeFileSystems, fsx:DescribeBackups,
elasticloadbalancing:DescribeLoadBalancers, elasticloadbalancing:DescribeTargetGroups,
elasticloadbalancing:DescribeTags, s3:ListBucket, logs:DescribeLogGroups, iam:ListRoles, iam:ListRoleTags,
iam:ListAttachedRolePolicies, iam:ListRolePolicies, scheduler:ListSchedules, scheduler:GetSchedule, budgets:ViewBudget.
"""

from __future__ import annotations

from collections.abc import Iterator

import typer
from rich.console import RenderableType
from rich.text import Text

from operations.account import Account, connect
from operations.audit import Answer, audit
from operations.command import DEFAULT_STACK_FILE, Stack, StackFile, app_of, stack_of
from operations.report import answer_data, listed, not_seen, place, sum_of
from planner.command_line import show
from planner.options import AsJson

BILLS = 1


def leftovers(stack_file: StackFile = DEFAULT_STACK_FILE, as_json: AsJson = False) -> None:
    """What of a stack still exists in AWS, since when, what it bills, and the commands that remove it."""
    stack = stack_of(stack_file)
    account = connect(stack.region)
    answer = audit(account, stack)
    show(answer_data(account, stack, answer), tuple(_told(account, stack, answer)), as_json=as_json)
    if not as_json:
        typer.echo("\n".join(item.remove for item in answer.found if item.remove))
    if answer.billing or answer.unseen:
        raise typer.Exit(BILLS)


def _told(account: Account, stack: Stack, answer: Answer) -> Iterator[RenderableType]:
    where = place(account, stack)
    if answer.billing:
        yield Text(f"Bills: {where}")
        yield listed(answer.billing)
        yield Text(f"Together {sum_of(answer)}.")
    else:
        yield Text(f"Nothing that was looked for bills: {where}.")
    if answer.free:
        yield Text("\nExists and costs nothing:")
        yield listed(answer.free)
    yield from not_seen(answer.unseen)
    if answer.found:
        yield Text("\n`pulumi destroy` removes it while the stack's state knows it. By hand, in this order:")


app = app_of(leftovers)

if __name__ == "__main__":
    app(prog_name="python -m operations.leftovers")
