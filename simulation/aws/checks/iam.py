"""IAM's rules."""

from __future__ import annotations

import json

from simulation.aws.errors import AwsError
from simulation.aws.schema import Request
from simulation.aws.values import Json, at, values_at

_CLUSTER = "aws:eks/cluster:Cluster"
_NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
_ROLE = "aws:iam/role:Role"
_PODS = "pods.eks.amazonaws.com"
_POD_ACTIONS = ("sts:AssumeRole", "sts:TagSession")


def _document(text: Json, what: str) -> Json:
    try:
        document = json.loads(text)
    except (TypeError, ValueError) as error:
        raise AwsError("MalformedPolicyDocument", f"{what} is not valid JSON: {error}") from None
    if not isinstance(document, dict) or not document.get("Statement"):
        raise AwsError("MalformedPolicyDocument", f"{what} holds no Statement.")
    return document


def _statements(trust_policy: Json) -> list[Json]:
    return values_at(_document(trust_policy, "The trust policy"), "Statement[]")


def policy_is_json(request: Request) -> None:
    """A policy is a JSON document with statements."""
    _document(at(request.inputs, "policy"), "The policy")


def trust_policy_names_someone(request: Request) -> None:
    """A trust policy is JSON and each of its statements names a principal."""
    for statement in _statements(at(request.inputs, "assumeRolePolicy")):
        if "Principal" not in statement:
            raise AwsError(
                "MalformedPolicyDocument",
                "AssumeRole policy may only specify STS AssumeRole actions for a Principal; a statement names none.",
            )


def role_trusts_pods(request: Request) -> None:
    """The role of a pod identity may be assumed and tagged by EKS's own service (EKS user guide, pod-id-role)."""
    arn = request.inputs["roleArn"]
    role = next((row for row in request.view.rows(_ROLE) if row.state["arn"] == arn), None)
    if role is None:  # of another account; its own references are checked elsewhere
        return
    statements = _statements(role.state["assumeRolePolicy"])
    granted = {action for statement in statements if _admits(statement) for action in values_at(statement, "Action[]")}
    missing = [action for action in _POD_ACTIONS if action not in granted]
    if missing:
        raise AwsError(
            "InvalidParameterException",
            f"Trust policy of role {arn} does not let {_PODS} {' and '.join(missing)}: pods would get no credentials.",
        )


def _admits(statement: Json) -> bool:
    return statement.get("Effect") == "Allow" and _PODS in values_at(statement, "Principal.Service[]")


def role_keeps_working(request: Request) -> None:
    """A cluster's or node group's role keeps its policies until they are gone.

    IAM would let the policy go, but EKS could then not delete its network interfaces and security group, and
    the destroy would hang on the VPC (AWS provider, documentation of aws_eks_cluster).
    """
    role = next((row for row in request.view.rows(_ROLE) if row.state["name"] == request.inputs["role"]), None)
    if role is None:
        return
    arn = role.state["arn"]
    users = [row.title for row in request.view.rows(_CLUSTER) if row.state["roleArn"] == arn]
    users += [row.title for row in request.view.rows(_NODE_GROUP) if row.state["nodeRoleArn"] == arn]
    if users:
        raise AwsError(
            "SimulatedDependency",
            f"{request.inputs['policyArn']} is detached from role {role.id} while {', '.join(users)} "
            "still needs it: "
            "EKS could not clean up after itself and the VPC would never be deleted. "
            "Make the cluster or node group depend on the attachment.",
        )
