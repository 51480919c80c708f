"""Whether EKS has the version, AWS's services have the roles that they take on, and tags can be asked for."""

from __future__ import annotations

from collections.abc import Iterator

from operations.account import AwsError
from operations.checks import Check, Subject
from planner.prices import today
from planner.weight_settings import FsxWeights

DAYS_OF_WARNING = 90

EKS_ROLES = {
    "eks.amazonaws.com": "AWSServiceRoleForAmazonEKS",
    "eks-nodegroup.amazonaws.com": "AWSServiceRoleForAmazonEKSNodegroup",
    "autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling",
}
FSX_ROLES = {"fsx.amazonaws.com": "AWSServiceRoleForAmazonFSx"}


def kubernetes_version(subject: Subject) -> Iterator[Check]:
    """EKS offers it, and for how long at the standard price."""
    version = subject.platform.kubernetes_version
    about = f"EKS {version}"
    offered = list(subject.account.pages("eks", "describe_cluster_versions", "clusterVersions", includeAll=True))
    found = next((item for item in offered if item["clusterVersion"] == version), None)
    standard = sorted(
        (item["clusterVersion"] for item in offered if item["versionStatus"] == "STANDARD_SUPPORT"), key=_numbers
    )
    do = f"pulumi config set --path deployment.platform.kubernetesVersion VERSION, of {', '.join(standard)}"
    if found is None or found["versionStatus"] == "UNSUPPORTED":
        yield Check(level="fail", about=about, says="not offered", do=do)
        return
    end = found["endOfStandardSupportDate"].date()
    left = (end - today()).days
    says = f"standard support until {end}"
    if found["versionStatus"] == "EXTENDED_SUPPORT" or left < 0:
        # The stack asks for standard support alone: EKS raises such a cluster by itself.
        yield Check(level="warn", about=about, says=f"{says}: EKS would raise the version by itself", do=do)
    elif left < DAYS_OF_WARNING:
        yield Check(level="warn", about=about, says=f"{says}, {left} days", do=do)
    else:
        yield Check(level="pass", about=about, says=says)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def service_roles(subject: Subject) -> Iterator[Check]:
    """Roles that services make for themselves on first use, if who deploys may make them."""
    wanted = EKS_ROLES | (FSX_ROLES if isinstance(subject.settings.weights, FsxWeights) else {})
    missing = {service: role for service, role in wanted.items() if not _exists(subject, role)}
    about = "service-linked roles"
    if not missing:
        yield Check(level="pass", about=about, says=", ".join(wanted.values()))
        return
    says = f"{', '.join(missing.values())} not there yet"
    by_hand = " && ".join(f"aws iam create-service-linked-role --aws-service-name {service}" for service in missing)
    may = _may_make_them(subject)
    if may:
        yield Check(level="pass", about=about, says=f"{says}, made on first use")
    elif may is None:
        do = f"whoever deploys needs iam:CreateServiceLinkedRole, or: {by_hand}"
        yield Check(level="warn", about=about, says=f"{says}, whether they can be made is unknown", do=do)
    else:
        yield Check(level="fail", about=about, says=f"{says}, and not allowed to be made", do=by_hand)


def _exists(subject: Subject, role: str) -> bool:
    try:
        subject.account.ask("iam", "get_role", RoleName=role)
    except AwsError as error:
        if error.code != "NoSuchEntity":
            raise
        return False
    return True


def _may_make_them(subject: Subject) -> bool | None:
    """Whether who asks may create service-linked roles; None where IAM does not say, as of an account's root."""
    asking = {"PolicySourceArn": principal(subject.account.identity), "ActionNames": ["iam:CreateServiceLinkedRole"]}
    try:
        results = subject.account.ask("iam", "simulate_principal_policy", **asking)["EvaluationResults"]
    except AwsError:
        return None
    return all(item["EvalDecision"] == "allowed" for item in results)


def principal(identity: str) -> str:
    """The role behind a session of it: arn:aws:sts::1:assumed-role/deployer/me is arn:aws:iam::1:role/deployer."""
    prefix, _, rest = identity.partition(":assumed-role/")
    return f"{prefix.replace(':sts:', ':iam:')}:role/{rest.partition('/')[0]}" if rest else identity


def tagging(subject: Subject) -> Iterator[Check]:
    """`weights.retain` and `operations.leftovers` find things by the stack's tag."""
    subject.account.ask("resourcegroupstaggingapi", "get_resources", ResourcesPerPage=1)
    yield Check(level="pass", about="tagging API", says="answers")
