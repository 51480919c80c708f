"""Security groups and their rules."""

from __future__ import annotations

from simulation.aws.resources import common
from simulation.aws.resources.common import arn, constant, own_id, owner_id, random_id
from simulation.aws.schema import OnDelete, ResourceType, Unique

_SECURITY_GROUP = ResourceType(
    token=common.SECURITY_GROUP,
    new_id=random_id("sg"),
    outputs={
        "arn": arn("ec2", "security-group"),
        "ownerId": owner_id,
        "ingress": constant([]),
        "egress": constant([]),
    },
    defaults={"description": "Managed by Pulumi", "revokeRulesOnDelete": False},
    forces_replacement=frozenset({"description", "name", "namePrefix", "vpcId"}),
    unread=frozenset({"revokeRulesOnDelete"}),
    references=(common.vpc_reference(),),
    unique=(
        Unique(
            paths=("name", "vpcId"),
            error=("InvalidGroup.Duplicate", "The security group '{}' already exists for VPC '{}'"),
        ),
    ),
    autonamed="name",
    in_use=("DependencyViolation", "resource {id} has a dependent object"),
)


def _rule(token: str) -> ResourceType:
    """Ingress and egress rules differ in their token alone."""
    return ResourceType(
        token=token,
        new_id=random_id("sgr"),
        outputs={"arn": arn("ec2", "security-group-rule"), "securityGroupRuleId": own_id},
        forces_replacement=frozenset({"securityGroupId"}),
        references=(
            common.security_group_reference("securityGroupId", OnDelete.FOLLOWS),
            common.security_group_reference("referencedSecurityGroupId"),
        ),
        unique=(
            Unique(
                paths=("securityGroupId", "ipProtocol"),
                also=(
                    "fromPort",
                    "toPort",
                    "referencedSecurityGroupId",
                    "cidrIpv4",
                    "cidrIpv6",
                    "prefixListId",
                ),
                error=(
                    "InvalidPermission.Duplicate",
                    "the same rule already exists in security group {} (protocol {}, equal ports and peer)",
                ),
            ),
        ),
    )


TYPES = (_SECURITY_GROUP, _rule(common.INGRESS_RULE), _rule(common.EGRESS_RULE))
