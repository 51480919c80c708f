"""Who may use an EKS cluster: access entries for people and nodes, pod identities for service accounts."""

from __future__ import annotations

import secrets
import uuid

from simulation.aws.checks import eks as checks
from simulation.aws.checks import iam as iam_checks
from simulation.aws.resources import common
from simulation.aws.resources.common import constant, now, role_reference
from simulation.aws.schema import ACCOUNT, PARTITION, Facts, OnDelete, Output, Reference, ResourceType, Unique
from simulation.aws.values import Json, at

NO_ROLE = (
    "InvalidParameterException",
    "Role with arn: {value}, could not be assumed because it does not exist or the trusted entity is not correct",
)


def cluster_reference(on_delete: OnDelete) -> Reference:
    """A cluster by name."""
    return Reference(
        path="clusterName",
        target=common.CLUSTER,
        key="name",
        missing=("ResourceNotFoundException", "No cluster found for name: {value}."),
        on_delete=on_delete,
    )


def in_cluster(kind: str, *paths: str) -> Output:
    """The ARN of something in a cluster: kind/cluster/…/random."""

    def output(facts: Facts) -> Json:
        names = "/".join(str(at(facts.state, path)) for path in paths)
        return f"arn:{PARTITION}:eks:{facts.region}:{ACCOUNT}:{kind}/{names}/{uuid.uuid4()}"

    return output


_ACCESS_ENTRY = ResourceType(
    token=common.ACCESS_ENTRY,
    new_id=lambda inputs: f"{inputs['clusterName']}:{inputs['principalArn']}",
    outputs={
        "accessEntryArn": in_cluster("access-entry", "clusterName"),
        "createdAt": now,
        "modifiedAt": now,
        "kubernetesGroups": constant([]),
        "userName": lambda facts: facts.state["principalArn"],
    },
    defaults={"type": "STANDARD"},
    recomputed=frozenset({"modifiedAt"}),
    forces_replacement=frozenset({"clusterName", "principalArn", "type"}),
    references=(cluster_reference(OnDelete.FOLLOWS), role_reference("principalArn", NO_ROLE)),
    unique=(
        Unique(
            paths=("clusterName", "principalArn"),
            error=(
                "ResourceInUseException",
                "Cluster {}: the access entry of {} is already in use on this cluster.",
            ),
        ),
    ),
    checks=(checks.access_entries_need_api,),
)

_ACCESS_POLICY_ASSOCIATION = ResourceType(
    token="aws:eks/accessPolicyAssociation:AccessPolicyAssociation",  # noqa: S106
    new_id=lambda inputs: f"{inputs['clusterName']}#{inputs['principalArn']}#{inputs['policyArn']}",
    outputs={"associatedAt": now, "modifiedAt": now},
    forces_replacement=frozenset({"clusterName", "principalArn", "policyArn", "accessScope"}),
    references=(
        cluster_reference(OnDelete.FOLLOWS),
        Reference(
            path="principalArn",
            target=common.ACCESS_ENTRY,
            key="principalArn",
            missing=("ResourceNotFoundException", "The specified principalArn could not be found: {value}. "
                     "Make the association depend on its access entry."),
            on_delete=OnDelete.FOLLOWS,
        ),
    ),
    checks=(checks.known_access_policy,),
    tagged=False,
)  # fmt: skip

_POD_IDENTITY_ASSOCIATION = ResourceType(
    token="aws:eks/podIdentityAssociation:PodIdentityAssociation",  # noqa: S106
    new_id=lambda _: f"a-{secrets.token_hex(9)[:17]}",
    outputs={
        "associationArn": in_cluster("podidentityassociation", "clusterName"),
        "associationId": lambda facts: facts.id,
        "externalId": constant(""),
    },
    defaults={"disableSessionTags": False},
    forces_replacement=frozenset({"clusterName", "namespace", "serviceAccount"}),
    references=(cluster_reference(OnDelete.FOLLOWS), role_reference("roleArn", NO_ROLE)),
    unique=(
        Unique(
            paths=("clusterName", "namespace", "serviceAccount"),
            error=("ResourceInUseException", "Association already exists in {} for {}/{}"),
        ),
    ),
    checks=(iam_checks.role_trusts_pods,),
)

TYPES = (_ACCESS_ENTRY, _ACCESS_POLICY_ASSOCIATION, _POD_IDENTITY_ASSOCIATION)
