"""Looking for what stands outside of any network: roles, schedules, budgets. All of it is free."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from operations.command import STACK_TAG
from operations.findings import FREE, Found
from operations.search import Search, tags_of

# Pulumi names the program's roles so; IAM cannot be asked by tag, and each role is one question more.
ROLE_NAME = re.compile(r"-role-[0-9a-f]{7}$")


def roles(search: Search) -> Iterator[Found]:
    """IAM roles with the stack's tag."""
    for role in search.account.pages("iam", "list_roles", "Roles"):
        name = role["RoleName"]
        if not ROLE_NAME.search(name):
            continue
        tags = tags_of(search.account.pages("iam", "list_role_tags", "Tags", RoleName=name))
        if tags.get(STACK_TAG) == search.stack.name:
            yield Found(
                kind="role",
                id=name,
                since=role.get("CreateDate"),
                usd_per_hour=FREE,
                remove=_role_removal(search, name),
            )


def _role_removal(search: Search, name: str) -> str:
    """IAM deletes no role that has a policy."""
    attached = search.account.pages("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=name)
    inline = search.account.pages("iam", "list_role_policies", "PolicyNames", RoleName=name)
    commands = (
        *(f"iam detach-role-policy --role-name {name} --policy-arn {item['PolicyArn']}" for item in attached),
        *(f"iam delete-role-policy --role-name {name} --policy-name {policy}" for policy in inline),
        f"iam delete-role --role-name {name}",
    )
    return " && ".join(map(search.command, commands))


def schedules(search: Search) -> Iterator[Found]:
    """Schedules that call EKS for the stack's cluster. They carry no tags: the name begins with the stack's."""
    for item in search.account.pages("scheduler", "list_schedules", "Schedules", NamePrefix=search.stack.name):
        name, group = item["Name"], item.get("GroupName", "default")
        about = search.account.ask("scheduler", "get_schedule", Name=name, GroupName=group)
        if search.owns_cluster_name and _cluster_of(about) == search.stack.name:
            yield Found(
                kind="schedule",
                id=name,
                since=about.get("CreationDate"),
                usd_per_hour=FREE,
                note=str(about.get("ScheduleExpression", "")),
                remove=search.command(f"scheduler delete-schedule --name {name} --group-name {group}"),
            )


def _cluster_of(schedule: Mapping[str, Any]) -> object:
    """The cluster that a schedule's call names, None where it names none."""
    try:
        request = json.loads(schedule["Target"].get("Input", ""))
    except ValueError:
        return None
    return request.get("ClusterName") if isinstance(request, dict) else None


def budgets(search: Search) -> Iterator[Found]:
    """Budgets that count what carries the stack's tag."""
    number, wanted = search.account.number, f"user:{STACK_TAG}${search.stack.name}"
    for budget in search.account.pages("budgets", "describe_budgets", "Budgets", AccountId=number):
        if wanted in budget.get("CostFilters", {}).get("TagKeyValue", ()):
            name = budget["BudgetName"]
            yield Found(
                kind="budget",
                id=name,
                usd_per_hour=FREE,
                remove=search.command(f"budgets delete-budget --account-id {number} --budget-name {shlex.quote(name)}"),
            )
