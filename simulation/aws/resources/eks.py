"""The EKS cluster, its node groups and add-ons."""

from __future__ import annotations

import secrets
import uuid

from simulation.aws import lookups
from simulation.aws.checks import eks as checks
from simulation.aws.checks.node_group import NODE_GROUP
from simulation.aws.resources import common
from simulation.aws.resources.common import arn, constant, now, random_output, role_reference
from simulation.aws.resources.eks_access import NO_ROLE, cluster_reference, in_cluster
from simulation.aws.schema import (
    Facts,
    OnDelete,
    Owned,
    Reference,
    ResourceType,
    Unique,
)
from simulation.aws.values import Json, Properties, at
from simulation.aws.versions import ADDON_VERSION, DEFAULT_KUBERNETES, ami_release


def _vpc_of_subnets(facts: Facts) -> Json:
    subnet = facts.view.get(common.SUBNET, at(facts.state, "vpcConfig.subnetIds[]", ""))
    return subnet.state["vpcId"] if subnet else ""


def _cluster_group(cluster: Properties) -> Properties:
    return {
        "name": f"eks-cluster-sg-{cluster['name']}-{secrets.randbelow(10**9)}",
        "description": "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes",
        "vpcId": cluster["vpcConfig"]["vpcId"],
    }


def _issuer(facts: Facts) -> Json:
    issuer = f"https://oidc.eks.{facts.region}.amazonaws.com/id/{secrets.token_hex(16).upper()}"
    return [{"oidcs": [{"issuer": issuer}]}]


_CLUSTER = ResourceType(
    token=common.CLUSTER,
    new_id=lambda inputs: str(inputs["name"]),
    outputs={
        "arn": arn("eks", "cluster"),
        "endpoint": lambda facts: facts.kubernetes["endpoint"],
        "certificateAuthority": lambda facts: {"data": facts.kubernetes["certificateAuthority"]},
        "createdAt": now,
        "identities": _issuer,
        "platformVersion": constant("eks.1"),
        "status": constant("ACTIVE"),
        "vpcConfig.clusterSecurityGroupId": random_output("sg"),
        "vpcConfig.vpcId": _vpc_of_subnets,
        "version": constant(DEFAULT_KUBERNETES),
        "accessConfig": constant({"authenticationMode": "CONFIG_MAP", "bootstrapClusterCreatorAdminPermissions": True}),
        "accessConfig.authenticationMode": constant("CONFIG_MAP"),
        "kubernetesNetworkConfig": constant({}),
        "kubernetesNetworkConfig.ipFamily": constant("ipv4"),
        "kubernetesNetworkConfig.serviceIpv4Cidr": constant("172.20.0.0/16"),
        "kubernetesNetworkConfig.elasticLoadBalancing": constant({"enabled": False}),
        "upgradePolicy": constant({"supportType": "EXTENDED"}),
        "deletionProtection": constant(False),
        "computeConfig": constant({"enabled": False}),
        "storageConfig": constant({"blockStorage": {"enabled": False}}),
    },
    defaults={
        "bootstrapSelfManagedAddons": True,
        "vpcConfig.endpointPrivateAccess": False,
        "vpcConfig.endpointPublicAccess": True,
        "vpcConfig.publicAccessCidrs": ["0.0.0.0/0"],
    },
    forces_replacement=frozenset(
        {
            "name",
            "roleArn",
            "bootstrapSelfManagedAddons",
            "accessConfig.bootstrapClusterCreatorAdminPermissions",
            "encryptionConfig",
            "kubernetesNetworkConfig.ipFamily",
            "kubernetesNetworkConfig.serviceIpv4Cidr",
            "outpostConfig",
        }
    ),
    references=(
        role_reference("roleArn", NO_ROLE),
        common.subnet_reference("vpcConfig.subnetIds[]"),
        common.security_group_reference("vpcConfig.securityGroupIds[]"),
    ),
    unique=(Unique(paths=("name",), error=("ResourceInUseException", "Cluster already exists with name: {}")),),
    autonamed="name",
    owned=(Owned(type=common.SECURITY_GROUP, id_path="vpcConfig.clusterSecurityGroupId", inputs=_cluster_group),),
    checks=(checks.subnets_of_two_zones, checks.admin_access_needs_api, checks.version_moves_one_up),
    delete_checks=(checks.not_protected,),
    in_use=("ResourceInUseException", "Cluster {id} has nodegroups attached"),
)

_NODE_GROUP = ResourceType(
    token=common.NODE_GROUP,
    new_id=lambda inputs: f"{inputs['clusterName']}:{inputs['nodeGroupName']}",
    outputs={
        "arn": in_cluster("nodegroup", "clusterName", "nodeGroupName"),
        "resources": lambda facts: [
            {
                "autoscalingGroups": [{"name": f"eks-{at(facts.state, 'nodeGroupName')}-{uuid.uuid4()}"}],
                "remoteAccessSecurityGroupId": "",
            }
        ],
        "status": constant("ACTIVE"),
        "amiType": constant("AL2023_x86_64_STANDARD"),
        "capacityType": constant("ON_DEMAND"),
        "diskSize": lambda facts: 0 if at(facts.state, "launchTemplate") else 20,
        "instanceTypes": lambda facts: [] if at(facts.state, "launchTemplate") else ["t3.medium"],
        "version": lambda facts: lookups.cluster_version(facts.view, facts.state["clusterName"]),
        "releaseVersion": lambda facts: ami_release(lookups.cluster_version(facts.view, facts.state["clusterName"])),
        "launchTemplate.id": lambda facts: lookups.template_id(facts.view, facts.state),
        "launchTemplate.name": lambda facts: lookups.template_name(facts.view, facts.state),
        "updateConfig": constant({"maxUnavailable": 1, "updateStrategy": "DEFAULT"}),
        "updateConfig.updateStrategy": constant("DEFAULT"),
        "nodeRepairConfig": constant({"enabled": False}),
    },
    forces_replacement=frozenset(
        {
            "amiType",
            "capacityType",
            "clusterName",
            "diskSize",
            "instanceTypes",
            "launchTemplate.id",
            "launchTemplate.name",
            "nodeGroupName",
            "nodeGroupNamePrefix",
            "nodeRoleArn",
            "remoteAccess",
            "subnetIds",
        }
    ),
    references=(
        cluster_reference(OnDelete.BLOCKS),
        role_reference("nodeRoleArn", NO_ROLE),
        common.subnet_reference(),
        Reference(
            path="launchTemplate.id",
            target=common.LAUNCH_TEMPLATE,
            missing=(
                "InvalidLaunchTemplateId.NotFound",
                "The specified launch template, with ID {value}, does not exist.",
            ),
        ),
        Reference(
            path="launchTemplate.name",
            target=common.LAUNCH_TEMPLATE,
            key="name",
            missing=(
                "InvalidLaunchTemplateName.NotFound",
                "The specified launch template {value} does not exist.",
            ),
        ),
    ),
    unique=(
        Unique(
            paths=("nodeGroupName", "clusterName"),
            error=("ResourceInUseException", "NodeGroup already exists with name {} and cluster name {}"),
        ),
    ),
    autonamed="nodeGroupName",
    checks=NODE_GROUP,
)

_ADDON = ResourceType(
    token="aws:eks/addon:Addon",  # noqa: S106
    new_id=lambda inputs: f"{inputs['clusterName']}:{inputs['addonName']}",
    outputs={
        "arn": in_cluster("addon", "clusterName", "addonName"),
        "createdAt": now,
        "modifiedAt": now,
        "addonVersion": lambda facts: ADDON_VERSION.get(facts.state["addonName"], "v1.0.0-eksbuild.1"),
        "configurationValues": constant(""),
    },
    recomputed=frozenset({"modifiedAt"}),
    forces_replacement=frozenset({"addonName", "clusterName"}),
    references=(
        cluster_reference(OnDelete.FOLLOWS),
        role_reference("serviceAccountRoleArn", NO_ROLE),
        role_reference("podIdentityAssociations[].roleArn", NO_ROLE),
    ),
    unique=(
        Unique(
            paths=("addonName", "clusterName"),
            error=("ResourceInUseException", "Addon {} already exists in {}."),
        ),
    ),
    checks=(checks.configuration_is_json,),
)

TYPES = (_CLUSTER, _NODE_GROUP, _ADDON)
