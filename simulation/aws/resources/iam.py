"""Roles, policies and instance profiles: IAM, which is global."""

from __future__ import annotations

import secrets

from simulation.aws.checks import iam as checks
from simulation.aws.resources import common
from simulation.aws.resources.common import constant, iam_arn, now, role_reference
from simulation.aws.schema import Reference, ResourceType, Unique
from simulation.aws.values import Properties, at

_NO_ROLE = ("NoSuchEntity", "The role with name {value} cannot be found.")


def _aws_managed(policy_arn: str) -> bool:
    return policy_arn.startswith("arn:aws:iam::aws:policy/")


def _unique_id(prefix: str) -> str:
    return prefix + secrets.token_hex(9)[:17].upper()


def _name(inputs: Properties) -> str:
    return str(inputs["name"])


_ROLE = ResourceType(
    token=common.ROLE,
    new_id=_name,
    outputs={
        "arn": iam_arn("role"),
        "createDate": now,
        "uniqueId": lambda _: _unique_id("AROA"),
        "inlinePolicies": constant([]),
        "managedPolicyArns": constant([]),
    },
    defaults={"forceDetachPolicies": False, "maxSessionDuration": 3600, "path": "/"},
    forces_replacement=frozenset({"name", "namePrefix", "path"}),
    unique=(Unique(paths=("name",), error=("EntityAlreadyExists", "Role with name {} already exists.")),),
    autonamed="name",
    checks=(checks.trust_policy_names_someone,),
    in_use=("DeleteConflict", "Cannot delete entity {id}, must detach all policies and end its use first."),
    regional=False,
)

_ROLE_POLICY_ATTACHMENT = ResourceType(
    token=common.ROLE_POLICY_ATTACHMENT,
    new_id=lambda inputs: f"{inputs['role']}/{inputs['policyArn']}",
    forces_replacement=frozenset({"role", "policyArn"}),
    references=(
        role_reference("role", _NO_ROLE, key="name"),
        Reference(
            path="policyArn",
            target=common.POLICY,
            key="arn",
            missing=("NoSuchEntity", "Policy {value} does not exist or is not attachable."),
            outside=_aws_managed,
        ),
    ),
    delete_checks=(checks.role_keeps_working,),
    tagged=False,
    regional=False,
)

_ROLE_POLICY = ResourceType(
    token="aws:iam/rolePolicy:RolePolicy",  # noqa: S106
    new_id=lambda inputs: f"{inputs['role']}:{inputs['name']}",
    forces_replacement=frozenset({"role", "name", "namePrefix"}),
    references=(role_reference("role", _NO_ROLE, key="name"),),
    autonamed="name",
    checks=(checks.policy_is_json,),
    tagged=False,
    regional=False,
)

_POLICY = ResourceType(
    token=common.POLICY,
    new_id=lambda inputs: f"arn:aws:iam::000000000000:policy{at(inputs, 'path', '/')}{inputs['name']}",
    outputs={
        "arn": iam_arn("policy"),
        "policyId": lambda _: _unique_id("ANPA"),
        "attachmentCount": constant(0),
    },
    defaults={"path": "/"},
    forces_replacement=frozenset({"name", "namePrefix", "path", "description"}),
    unique=(Unique(paths=("name",), error=("EntityAlreadyExists", "A policy called {} already exists.")),),
    autonamed="name",
    checks=(checks.policy_is_json,),
    in_use=("DeleteConflict", "Cannot delete a policy attached to entities."),
    regional=False,
)

_INSTANCE_PROFILE = ResourceType(
    token="aws:iam/instanceProfile:InstanceProfile",  # noqa: S106
    new_id=_name,
    outputs={"arn": iam_arn("instance-profile"), "createDate": now, "uniqueId": lambda _: _unique_id("AIPA")},
    defaults={"path": "/"},
    forces_replacement=frozenset({"name", "namePrefix", "path"}),
    references=(role_reference("role", _NO_ROLE, key="name"),),
    unique=(Unique(paths=("name",), error=("EntityAlreadyExists", "Instance Profile {} already exists.")),),
    autonamed="name",
    regional=False,
)

TYPES = (_ROLE, _ROLE_POLICY_ATTACHMENT, _ROLE_POLICY, _POLICY, _INSTANCE_PROFILE)
