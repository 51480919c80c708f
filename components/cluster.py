"""The EKS control plane and the way into it.

Owns the cluster with its log group, role, access entries and the add-ons that nodes need to join, the role that all
nodes run under, and the Kubernetes provider that everything inside the cluster is made with. It owns no node:
`system_nodes.py` and `gpu_nodes.py` do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, CustomTimeouts, Input, InvokeOptions, Output, Resource, ResourceOptions
from pulumi_aws import cloudwatch, eks, iam
from pulumi_aws.get_caller_identity import get_caller_identity
from pulumi_kubernetes.provider import Provider

from components.network import Network
from planner.platform_settings import EksPlatform

ADMIN_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
CLUSTER_POLICY = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
NODE_POLICIES = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonEKS_CNI_Policy",
    "AmazonSSMManagedInstanceCore",
)
LOG_RETENTION_DAYS = 30

EARLY_ADDONS: dict[str, dict[str, str] | None] = {
    "vpc-cni": {"enableNetworkPolicy": "true"},
    "kube-proxy": None,
    "eks-pod-identity-agent": None,
}
"""Add-ons that must be there before a node joins, with their configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterArgs:
    """`network` gives the control plane its private subnets, in two zones."""

    deployment: str
    platform: EksPlatform
    network: Network


class Cluster(ComponentResource):
    """EKS cluster, its access entries, early add-ons, node role and Kubernetes provider."""

    cluster: eks.Cluster
    security_group_id: Output[str]
    node_role_arn: Output[str]
    account_identity: str
    kubeconfig: Output[str]
    kubernetes: Provider
    before_nodes: Sequence[Resource]
    """What must exist before a node starts, and outlive it: a node needs its role's policies and the CNI to leave."""

    def __init__(self, name: str, args: ClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:Cluster", name, None, opts)
        self._name, self._args = name, args
        self.cluster = self._control_plane()
        self.security_group_id = self.cluster.vpc_config.apply(lambda vpc: vpc.cluster_security_group_id or "")
        access = self._access_entries()
        policies = self._node_role()
        self.before_nodes = (*policies, *self._early_addons())
        self.kubeconfig = kubeconfig(
            name=self.cluster.name,
            region=args.platform.region,
            endpoint=self.cluster.endpoint,
            certificate_authority=self.cluster.certificate_authority.apply(lambda ca: ca.data or ""),
        )
        self.kubernetes = Provider(
            f"{name}-kubernetes",
            kubeconfig=self.kubeconfig,
            # Without an identity of its own the provider would be replaced, and every object with it, whenever the
            # kubeconfig changes. Creation time, because a cluster made anew under the same name has the same ARN.
            cluster_identifier=Output.concat(self.cluster.arn, "@", self.cluster.created_at),
            opts=ResourceOptions(parent=self, depends_on=access),
        )
        self.register_outputs({"name": self.cluster.name, "kubeconfig": self.kubeconfig})

    def _control_plane(self) -> eks.Cluster:
        name, platform = self._args.deployment, self._args.platform
        # EKS would make this group itself, without retention, and leave it behind on destroy.
        logs = cloudwatch.LogGroup(
            f"{self._name}-logs",
            name=f"/aws/eks/{name}/cluster",
            retention_in_days=LOG_RETENTION_DAYS,
            opts=ResourceOptions(parent=self),
        )
        role = iam.Role(
            f"{self._name}-role",
            assume_role_policy=trust("eks.amazonaws.com"),
            opts=ResourceOptions(parent=self),
        )
        policy = iam.RolePolicyAttachment(
            f"{self._name}-role", role=role.name, policy_arn=CLUSTER_POLICY, opts=ResourceOptions(parent=self)
        )
        return eks.Cluster(
            f"{self._name}-eks",
            name=name,
            role_arn=role.arn,
            version=platform.kubernetes_version,
            vpc_config={
                "subnet_ids": self._args.network.control_plane_subnet_ids,
                "endpoint_private_access": True,
                "endpoint_public_access": True,
                "public_access_cidrs": list(platform.public_access_cidrs),
            },
            access_config={
                "authentication_mode": "API",
                "bootstrap_cluster_creator_admin_permissions": False,
            },
            bootstrap_self_managed_addons=False,
            enabled_cluster_log_types=["api", "audit", "authenticator"],
            # Extended support costs six times the standard price and starts without being asked for.
            upgrade_policy={"support_type": "STANDARD"},
            opts=ResourceOptions(parent=self, depends_on=[logs, policy]),
        )

    def _access_entries(self) -> list[Resource]:
        invoke = InvokeOptions(parent=self)
        self.account_identity = get_caller_identity(opts=invoke).arn
        deployer = iam.get_session_context(arn=self.account_identity, opts=invoke).issuer_arn
        return [self._admin(arn) for arn in sorted({deployer, *self._args.platform.admins})]

    def _admin(self, principal: str) -> eks.AccessPolicyAssociation:
        # Named by principal, not by part: who deploys next finds the entries that are there already.
        name = f"{self._name}-admin-{principal.rpartition('/')[2]}-{hashlib.sha256(principal.encode()).hexdigest()[:8]}"
        entry = eks.AccessEntry(
            name,
            cluster_name=self.cluster.name,
            principal_arn=principal,
            opts=ResourceOptions(parent=self),
        )
        return eks.AccessPolicyAssociation(
            name,
            cluster_name=self.cluster.name,
            principal_arn=principal,
            policy_arn=ADMIN_POLICY,
            access_scope={"type": "cluster"},
            opts=ResourceOptions(parent=self, depends_on=[entry]),
        )

    def _node_role(self) -> list[Resource]:
        role = iam.Role(
            f"{self._name}-node-role",
            assume_role_policy=trust("ec2.amazonaws.com"),
            opts=ResourceOptions(parent=self),
        )
        self.node_role_arn = role.arn
        return [
            iam.RolePolicyAttachment(
                f"{self._name}-node-{policy}",
                role=role.name,
                policy_arn=f"arn:aws:iam::aws:policy/{policy}",
                opts=ResourceOptions(parent=self),
            )
            for policy in NODE_POLICIES
        ]

    def _early_addons(self) -> list[Resource]:
        return [
            addon(self, self._name, self.cluster, addon_name, configuration)
            for addon_name, configuration in EARLY_ADDONS.items()
        ]


def addon(
    parent: ComponentResource,
    prefix: str,
    cluster: eks.Cluster,
    addon_name: str,
    configuration: dict[str, str] | None = None,
    depends_on: Sequence[Resource] = (),
) -> eks.Addon:
    """An EKS add-on at the version that is the default when it is made; EKS keeps it until somebody updates it."""
    return eks.Addon(
        f"{prefix}-{addon_name}",
        cluster_name=cluster.name,
        addon_name=addon_name,
        configuration_values=json.dumps(configuration, sort_keys=True) if configuration else None,
        resolve_conflicts_on_create="OVERWRITE",
        resolve_conflicts_on_update="OVERWRITE",
        opts=ResourceOptions(parent=parent, depends_on=list(depends_on), custom_timeouts=CustomTimeouts(create="30m")),
    )


def trust(service: str) -> str:
    """The trust policy by which an AWS service may take on a role."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": ["sts:AssumeRole", "sts:TagSession"] if "eks." in service else "sts:AssumeRole",
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}, sort_keys=True)


def kubeconfig(
    *, name: Input[str], region: str, endpoint: Input[str], certificate_authority: Input[str]
) -> Output[str]:
    """A kubeconfig that holds nothing secret: `aws eks get-token` gives a fresh token on every use."""

    def render(known: dict[str, str]) -> str:
        cluster = {"server": known["endpoint"], "certificate-authority-data": known["ca"]}
        token = {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "aws",
            "args": [
                "eks",
                "get-token",
                "--cluster-name",
                known["name"],
                "--region",
                region,
                "--output",
                "json",
            ],
            "interactiveMode": "Never",
        }
        context = {"cluster": known["name"], "user": known["name"]}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": known["name"], "cluster": cluster}],
            "users": [{"name": known["name"], "user": {"exec": token}}],
            "contexts": [{"name": known["name"], "context": context}],
            "current-context": known["name"],
        }
        return json.dumps(document, sort_keys=True)

    return Output.all(name=name, endpoint=endpoint, ca=certificate_authority).apply(render)
