"""`python -m operations.account_check`: whether an account is ready for the stack, before the first `pulumi up`.

Changes nothing. Exit status: 0 when nothing fails, 1 when a check does, 2 when refused. What cannot be asked is a
warning that names the missing permission.
Permissions: sts:GetCallerIdentity, ec2:DescribeRegions, ec2:DescribeAvailabilityZones,
ec2:DescribeInstanceTypeOfferings, ec2:DescribeInstances, ec2:DescribeAddresses, ec2:DescribeVpcs, ec2:DescribeSubnets,
servicequotas:GetServiceQuota, servicequotas:GetAWSDefaultServiceQuota, eks:DescribeClusterVersions, iam:GetRole,
iam:SimulatePrincipalPolicy, tag:GetResources.
"""

from __future__ import annotations

from collections.abc import Iterator

import typer
from rich.console import RenderableType
from rich.text import Text

from operations import check_place, check_quotas, check_services
from operations.account import Account, connect
from operations.checks import Check, Question, Subject, run
from operations.command import DEFAULT_STACK_FILE, Stack, StackFile, app_of, stack_of
from operations.report import place
from planner.command_line import facts_of, show
from planner.options import AsJson
from planner.platform_settings import EksPlatform
from planner.tables import table

FAILS = 1

QUESTIONS: dict[str, Question] = {
    "region": check_place.region,
    "zone": check_place.zone,
    "instance types": check_place.instance_types,
    "vCPU quotas": check_quotas.vcpus,
    "network quotas": check_quotas.network,
    "existing network": check_place.existing_network,
    "Kubernetes version": check_services.kubernetes_version,
    "service-linked roles": check_services.service_roles,
    "tagging API": check_services.tagging,
}


def account_check(stack_file: StackFile = DEFAULT_STACK_FILE, as_json: AsJson = False) -> None:
    """Whether an account has what a stack needs: quotas, instance types, addresses, versions, roles, permissions."""
    stack = stack_of(stack_file)
    facts = facts_of(stack_file, ())
    platform = facts.settings.platform
    assert isinstance(platform, EksPlatform)  # noqa: S101 (stack_of refuses the other kind)
    account = connect(stack.region)
    subject = Subject(account=account, settings=facts.settings, platform=platform, gpu_type=facts.instance)
    who = Check(level="pass", about="credentials", says=account.identity)
    checks = (who, *run(QUESTIONS, subject))
    failed = any(check.level == "fail" for check in checks)
    data = {
        "stack": stack.name,
        "account": account.number,
        "region": stack.region,
        "ready": not failed,
        "checks": [check.data() for check in checks],
    }
    show(data, tuple(_told(account, stack, checks)), as_json=as_json)
    if failed:
        raise typer.Exit(FAILS)


def _told(account: Account, stack: Stack, checks: tuple[Check, ...]) -> Iterator[RenderableType]:
    yield Text(place(account, stack))
    made = table("", "check", "AWS says", left=3, fold="AWS says")
    for check in checks:
        made.add_row(check.level, check.about, check.says)
    yield made
    for check in checks:
        if check.do:
            yield Text(f"{check.level}: {check.about}\n   {check.do}", no_wrap=True, overflow="ignore")


app = app_of(account_check)

if __name__ == "__main__":
    app(prog_name="python -m operations.account_check")
