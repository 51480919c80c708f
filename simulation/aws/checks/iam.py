"""IAM's rules."""

from __future__ import annotations

import json

from simulation.aws.errors import AwsError
from simulation.aws.schema import Request
from simulation.aws.values import Json, at

_CLUSTER = "aws:eks/cluster:Cluster"
_NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
_ROLE = "aws:iam/role:Role"


def _document(text: Json, what: str) -> Json:
    try:
        document = json.loads(text)
    except (TypeError, ValueError) as error:
        raise AwsError("MalformedPolicyDocument", f"{what} is not valid JSON: {error}") from None
    if not isinstance(document, dict) or not document.get("Statement"):
        raise AwsError("MalformedPolicyDocument", f"{what} holds no Statement.")
    return document


def policy_is_json(request: Request) -> None:
    """A policy is a JSON document with statements."""
    _document(at(request.inputs, "policy"), "The policy")


def trust_policy_names_someone(request: Request) -> None:
    """A trust policy is JSON and each of its statements names a principal."""
    statements = _document(at(request.inputs, "assumeRolePolicy"), "The trust policy")["Statement"]
    for statement in statements if isinstance(statements, list) else [statements]:
        if "Principal" not in statement:
            raise AwsError(
                "MalformedPolicyDocument",
                "AssumeRole policy may only specify STS AssumeRole actions for a Principal; a statement names none.",
            )


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
