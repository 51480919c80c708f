"""An account in which the default stack can start, as far as moto does not know it, and the command run on it."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from typer.testing import CliRunner

from operations import account_check
from operations.check_quotas import ADDRESSES, STANDARD, VPCS, P
from tests.operations.made import ACCOUNT, REGION
from tests.operations.stubbed import Answers, answering

TODAY = datetime.date(2026, 12, 1)
ENDS = datetime.datetime(2027, 3, 27, tzinfo=datetime.UTC)
QUOTAS = {P.code: 384.0, STANDARD.code: 32.0, ADDRESSES.code: 5.0, VPCS.code: 50.0}
DENIED = "AccessDeniedException"


def quotas(**changed: float) -> Any:
    """Service Quotas, with other values for some codes, whose `-` is written `_`."""
    values = QUOTAS | {code.replace("_", "-"): value for code, value in changed.items()}
    return lambda request: {"Quota": {"Value": values[request["QuotaCode"]]}}


def versions(status: str = "STANDARD_SUPPORT", ends: datetime.datetime = ENDS) -> dict[str, Any]:
    kept = {"clusterVersion": "1.35", "versionStatus": status, "endOfStandardSupportDate": ends}
    newer = {"clusterVersion": "1.36", "versionStatus": "STANDARD_SUPPORT", "endOfStandardSupportDate": ends}
    return {"clusterVersions": [kept, newer]}


def role(request: dict[str, str]) -> dict[str, Any]:
    """A role of the name that is asked for."""
    name = request["RoleName"]
    arn = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{name}"
    made = {"RoleName": name, "Arn": arn, "Path": "/", "RoleId": "AROA0123456789ABCDEF", "CreateDate": ENDS}
    return {"Role": made}


def ready() -> Answers:
    """What moto does not know of an account in which the default stack can start."""
    offered = {"LocationType": "availability-zone", "Location": f"{REGION}a"}
    return {
        ("service-quotas", "get_service_quota"): quotas(),
        ("eks", "describe_cluster_versions"): versions(),
        ("iam", "get_role"): role,  # moto's own service-linked roles have other names than AWS's
        ("ec2", "describe_instance_type_offerings"): lambda request: {
            "InstanceTypeOfferings": [offered | {"InstanceType": request["Filters"][0]["Values"][0]}]
        },
    }


def checked(
    monkeypatch: pytest.MonkeyPatch, file: str = "Pulumi.dev.yaml", **changed: Any
) -> dict[str, dict[str, str]]:
    """The checks by what they are about, with some answers changed: `ec2__describe_regions={…}`."""
    named = {tuple(key.split("__")): value for key, value in changed.items()}
    answers = ready() | {(service.replace("_", "-"), operation): value for (service, operation), value in named.items()}
    answering(monkeypatch, account_check, answers)
    result = CliRunner().invoke(account_check.app, [file, "--json"])
    assert isinstance(result.exception, SystemExit | None), result.exception
    found = json.loads(result.stdout)
    levels = {check["level"] for check in found["checks"]}
    assert result.exit_code == (account_check.FAILS if "fail" in levels else 0)
    assert found["ready"] is ("fail" not in levels)
    assert all(check["do"] for check in found["checks"] if check["level"] != "pass")
    return {check["about"]: check for check in found["checks"]}


def not_passed(checks: dict[str, dict[str, str]]) -> dict[str, str]:
    return {about: check["level"] for about, check in checks.items() if check["level"] != "pass"}
