"""EKS's rules for clusters, access and add-ons. Those for node groups are in `node_group`."""

from __future__ import annotations

import json

from simulation.aws.errors import AwsError
from simulation.aws.schema import Request
from simulation.aws.values import at, values_at

_SUBNET = "aws:ec2/subnet:Subnet"
_CLUSTER = "aws:eks/cluster:Cluster"
_ACCESS_POLICIES = (
    "AmazonEKSAdminPolicy",
    "AmazonEKSClusterAdminPolicy",
    "AmazonEKSAdminViewPolicy",
    "AmazonEKSEditPolicy",
    "AmazonEKSViewPolicy",
)


def subnets_of_two_zones(request: Request) -> None:
    """The control plane needs subnets of at least two availability zones."""
    subnets = [request.view.get(_SUBNET, subnet) for subnet in values_at(request.inputs, "vpcConfig.subnetIds[]")]
    zones = sorted({subnet.state["availabilityZone"] for subnet in subnets if subnet})
    if len(zones) < 2:
        raise AwsError(
            "InvalidParameterException",
            f"Subnets specified must be in at least two different AZs (these are in {', '.join(zones) or 'none'})",
        )


def admin_access_needs_api(request: Request) -> None:
    """A cluster whose creator gets no access needs access entries, or nobody could ever use it."""
    access = request.inputs.get("accessConfig", {})
    refused = at(access, "bootstrapClusterCreatorAdminPermissions") is False
    if refused and at(access, "authenticationMode", "CONFIG_MAP") == "CONFIG_MAP":
        raise AwsError(
            "InvalidParameterException",
            "bootstrapClusterCreatorAdminPermissions must be true if cluster authentication mode is set to CONFIG_MAP",
        )


def version_moves_one_up(request: Request) -> None:
    """Kubernetes is upgraded a minor version at a time and never downgraded."""
    old, new = at(request.old.state, "version") if request.old else None, at(request.inputs, "version")
    if old and new and int(new.split(".")[1]) - int(old.split(".")[1]) not in (0, 1):
        raise AwsError("InvalidParameterException", f"Unsupported Kubernetes minor version update from {old} to {new}")


def not_protected(request: Request) -> None:
    """A protected cluster is not deleted."""
    if at(request.inputs, "deletionProtection", False):
        raise AwsError(
            "InvalidRequestException",
            f"Cluster {request.inputs['name']} has deletion protection enabled. Set deletionProtection to false first.",
        )


def access_entries_need_api(request: Request) -> None:
    """Access entries exist in the authentication modes API and API_AND_CONFIG_MAP."""
    cluster = next(row for row in request.view.rows(_CLUSTER) if row.state["name"] == request.inputs["clusterName"])
    if at(cluster.state, "accessConfig.authenticationMode") == "CONFIG_MAP":
        raise AwsError(
            "InvalidRequestException",
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to "
            "perform this operation.",
        )


def known_access_policy(request: Request) -> None:
    """Access policies are EKS's own, not IAM's."""
    arn = request.inputs["policyArn"]
    if not arn.startswith("arn:aws:eks::aws:cluster-access-policy/") or arn.rpartition("/")[2] not in _ACCESS_POLICIES:
        raise AwsError(
            "ResourceNotFoundException",
            f"The specified policyArn could not be found: {arn}. It is "
            "arn:aws:eks::aws:cluster-access-policy/ and "
            f"one of {', '.join(_ACCESS_POLICIES)}.",
        )


def configuration_is_json(request: Request) -> None:
    """An add-on's configuration values are a JSON object (YAML works in AWS too, but churns in a stack)."""
    text = at(request.inputs, "configurationValues")
    if not text:
        return
    try:
        valid = isinstance(json.loads(text), dict)
    except ValueError:
        valid = False
    if not valid:
        raise AwsError(
            "InvalidParameterException",
            f"ConfigurationValue provided for add-on {request.inputs['addonName']} is not a JSON object",
        )
