"""`operations.account_check`: each check passes in an account that is ready, and fails or warns as its matter does."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from operations import check_services
from operations.check_quotas import ADDRESSES, STANDARD, VPCS, G, P, quota_of
from planner.hardware import GPU_TYPES, SYSTEM_TYPES
from tests.operations.made import ACCOUNT, REGION, Made
from tests.operations.ready_account import DENIED, checked, not_passed, quotas, role, versions


def test_an_account_that_is_ready(account: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = checked(monkeypatch)
    assert not_passed(checks) == {}
    assert ACCOUNT in checks["credentials"]["says"]
    assert set(checks) == {
        "credentials",
        "region",
        "zone",
        "p5.48xlarge",
        "c6in.4xlarge",
        f"{P.name} ({P.code})",
        f"{STANDARD.name} ({STANDARD.code})",
        f"{ADDRESSES.name} ({ADDRESSES.code})",
        f"{VPCS.name} ({VPCS.code})",
        "EKS 1.35",
        "service-linked roles",
        "tagging API",
    }
    assert account


@pytest.mark.usefixtures("account")
def test_a_quota_one_node_short_says_how_much_to_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    about = f"{P.name} ({P.code})"
    checks = checked(monkeypatch, service_quotas__get_service_quota=quotas(L_417A185B=383))
    assert not_passed(checks) == {about: "fail"}
    assert "--desired-value 384" in checks[about]["do"]
    assert "2 x p5.48xlarge of 192 vCPUs" in checks[about]["says"]


def test_what_others_run_counts_against_the_quota_and_the_stack_s_own_does_not(
    account: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    subnet = account.network()["subnet"]
    account.gpu_node(subnet)
    assert not_passed(checked(monkeypatch)) == {}
    account.instance(subnet, "p5.4xlarge")
    checks = checked(monkeypatch)
    assert not_passed(checks) == {f"{P.name} ({P.code})": "fail"}
    assert "16 used by others" in checks[f"{P.name} ({P.code})"]["says"]


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(("lifecycle", "level"), [({}, "fail"), ({"InstanceLifecycle": "spot"}, "pass")])
def test_spot_instances_have_a_quota_of_their_own(
    monkeypatch: pytest.MonkeyPatch, lifecycle: dict[str, str], level: str
) -> None:
    running = {"InstanceId": "i-1", "InstanceType": "p5.48xlarge", **lifecycle}
    checks = checked(monkeypatch, ec2__describe_instances={"Reservations": [{"Instances": [running]}]})
    assert checks[f"{P.name} ({P.code})"]["level"] == level


@pytest.mark.usefixtures("account")
def test_a_quota_that_was_never_set_has_aws_s_default(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = checked(
        monkeypatch,
        service_quotas__get_service_quota="NoSuchResourceException",
        service_quotas__get_aws_default_service_quota=lambda _: {"Quota": {"Value": 0.0}},
    )
    assert set(not_passed(checks)) == {f"{quota.name} ({quota.code})" for quota in (P, STANDARD, ADDRESSES, VPCS)}


def test_addresses_and_vpcs_of_others_count_and_the_stack_s_own_do_not(
    account: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = quotas(L_0263D0A3=1, L_F678F1CE=2)  # moto's account has a VPC by default
    account.network()
    assert not_passed(checked(monkeypatch, service_quotas__get_service_quota=few)) == {}
    account.ec2.allocate_address(Domain="vpc")
    account.ec2.create_vpc(CidrBlock="10.0.0.0/16")
    assert not_passed(checked(monkeypatch, service_quotas__get_service_quota=few)) == {
        f"{ADDRESSES.name} ({ADDRESSES.code})": "fail",
        f"{VPCS.name} ({VPCS.code})": "fail",
    }


@pytest.mark.usefixtures("account")
def test_a_region_that_is_not_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = {"Regions": [{"RegionName": REGION, "OptInStatus": "not-opted-in"}]}
    checks = checked(monkeypatch, ec2__describe_regions=closed)
    assert not_passed(checks) == {"region": "fail"}
    assert checks["region"]["do"] == f"aws account enable-region --region-name {REGION}"


@pytest.mark.usefixtures("account")
def test_a_zone_that_is_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    zones = {"AvailabilityZones": [{"ZoneName": f"{REGION}b", "State": "available"}]}
    checks = checked(monkeypatch, ec2__describe_availability_zones=zones)
    assert not_passed(checks) == {"zone": "fail"}
    assert f"{REGION}b" in checks["zone"]["do"]


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(("zone", "tells"), [(f"{REGION}b", f"offered in {REGION}b"), (None, "offered nowhere")])
def test_an_instance_type_that_the_zone_does_not_sell(
    monkeypatch: pytest.MonkeyPatch, zone: str | None, tells: str
) -> None:
    offers = [{"InstanceType": "p5.48xlarge", "Location": zone}] if zone else []
    checks = checked(monkeypatch, ec2__describe_instance_type_offerings={"InstanceTypeOfferings": offers})
    assert not_passed(checks) == {"p5.48xlarge": "fail", "c6in.4xlarge": "fail"}
    assert tells in checks["p5.48xlarge"]["says"]


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("answer", "level", "raised"),
    [
        (versions("UNSUPPORTED"), "fail", False),
        ({"clusterVersions": []}, "fail", False),
        (versions("EXTENDED_SUPPORT", datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)), "warn", True),
        (versions(ends=datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC)), "warn", False),
    ],
)
def test_a_version_that_eks_does_not_offer_or_not_for_long(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], level: str, raised: bool
) -> None:
    checks = checked(monkeypatch, eks__describe_cluster_versions=answer)
    assert not_passed(checks) == {"EKS 1.35": level}
    assert ("by itself" in checks["EKS 1.35"]["says"]) is raised


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(("decision", "level"), [("allowed", "pass"), ("implicitDeny", "fail"), (None, "warn")])
def test_a_service_linked_role_that_is_not_there_yet(
    monkeypatch: pytest.MonkeyPatch, decision: str | None, level: str
) -> None:
    def all_but_one(request: dict[str, str]) -> Any:
        return "NoSuchEntity" if request["RoleName"] == "AWSServiceRoleForAmazonFSx" else role(request)

    result = {"EvalActionName": "iam:CreateServiceLinkedRole", "EvalDecision": decision}
    answer = {"EvaluationResults": [result]} if decision else "AccessDenied"
    changed: dict[str, Any] = {"iam__get_role": all_but_one, "iam__simulate_principal_policy": answer}
    check = checked(monkeypatch, **changed)["service-linked roles"]
    assert check["level"] == level
    assert "AWSServiceRoleForAmazonFSx" in check["says"]
    assert "AWSServiceRoleForAmazonEKS," not in check["says"]


def test_the_role_behind_a_session_is_asked_about() -> None:
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/laptop"
    assert check_services.principal(session) == f"arn:aws:iam::{ACCOUNT}:role/deployer"
    assert check_services.principal(f"arn:aws:iam::{ACCOUNT}:user/me") == f"arn:aws:iam::{ACCOUNT}:user/me"


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("question", "about", "permission"),
    [
        ("ec2__describe_regions", "region", "ec2:DescribeRegions"),
        ("ec2__describe_availability_zones", "zone", "ec2:DescribeAvailabilityZones"),
        ("ec2__describe_instance_type_offerings", "instance types", "ec2:DescribeInstanceTypeOfferings"),
        ("service_quotas__get_service_quota", "vCPU quotas", "servicequotas:GetServiceQuota"),
        ("ec2__describe_addresses", "network quotas", "ec2:DescribeAddresses"),
        ("eks__describe_cluster_versions", "Kubernetes version", "eks:DescribeClusterVersions"),
        ("iam__get_role", "service-linked roles", "iam:GetRole"),
        ("resourcegroupstaggingapi__get_resources", "tagging API", "tag:GetResources"),
    ],
)
def test_a_check_that_is_denied_warns_and_names_the_permission(
    monkeypatch: pytest.MonkeyPatch, question: str, about: str, permission: str
) -> None:
    checks = checked(monkeypatch, **{question: DENIED})
    assert checks[about]["level"] == "warn"
    assert permission in checks[about]["do"]
    assert "fail" not in not_passed(checks).values()


def test_every_instance_type_of_the_tables_has_a_quota() -> None:
    for name in GPU_TYPES:
        assert quota_of(name) == (P if name.startswith("p") else G), name
    for name in SYSTEM_TYPES:
        assert quota_of(name) == STANDARD, name
    assert quota_of("inf2.48xlarge") is quota_of("trn2.48xlarge") is quota_of("hpc7a.96xlarge") is None
    assert quota_of("im4gn.large") == STANDARD
