"""Where the stack stands: a cluster of its own on EKS, or one that is there already.

Owns nothing by itself. `build` makes network, cluster and CPU nodes, or only the provider of an existing cluster, and
says what later parts need of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from pulumi import Output, Resource, ResourceOptions
from pulumi_aws import eks
from pulumi_aws.provider import Provider as AwsProvider
from pulumi_kubernetes.provider import Provider as KubernetesProvider

from components.cluster import Cluster, ClusterArgs
from components.kubeconfig import check_context
from components.launch_template import STACK_TAG
from components.network import Network, NetworkArgs
from components.system_nodes import SystemNodes, SystemNodesArgs
from planner.cache import SCRATCH_MIB_PER_SECOND, through_bucket
from planner.platform_settings import EksPlatform, ExistingPlatform
from planner.settings import Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class Eks:
    """What only a cluster of the stack's own has. `account`: its twelve digits. `opts` is for AWS resources."""

    platform: EksPlatform
    network: Network
    cluster: Cluster
    csi_driver: Resource
    account: str
    opts: ResourceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """`opts` is for what lies inside the cluster; pods run once `ready` is there, and die with `lifetime`."""

    opts: ResourceOptions
    ready: Sequence[Resource]
    lifetime: eks.Cluster | None
    kubeconfig: Output[str] | None
    eks: Eks | None


def build(settings: Deployment) -> Site:
    """The site that the stack file asks for."""
    if isinstance(settings.platform, EksPlatform):
        return _eks(settings, settings.platform)
    return _existing(settings.platform)


def _eks(settings: Deployment, platform: EksPlatform) -> Site:
    aws = AwsProvider("aws", region=platform.region, default_tags={"tags": {STACK_TAG: settings.name}})
    opts = ResourceOptions(providers=[aws])
    network = Network("network", NetworkArgs(deployment=settings.name, platform=platform), opts)
    cluster = Cluster("cluster", ClusterArgs(deployment=settings.name, platform=platform, network=network), opts)
    nodes_args = SystemNodesArgs(
        deployment=settings.name,
        platform=platform,
        cluster=cluster,
        network=network,
        scratch_mib_per_second=SCRATCH_MIB_PER_SECOND if through_bucket(settings) else None,
    )
    nodes = SystemNodes("system-nodes", nodes_args, opts)
    return Site(
        opts=ResourceOptions(providers=[aws, cluster.kubernetes]),
        ready=[nodes],
        lifetime=cluster.cluster,
        kubeconfig=cluster.kubeconfig,
        eks=Eks(
            platform=platform,
            network=network,
            cluster=cluster,
            csi_driver=nodes,
            account=cluster.account_identity.split(":")[4],
            opts=opts,
        ),
    )


def _existing(platform: ExistingPlatform) -> Site:
    check_context(platform, os.environ)
    provider = KubernetesProvider(
        "cluster-kubernetes",
        kubeconfig=platform.kubeconfig,
        context=platform.context,
        # The same cluster by another file or with another certificate is the same cluster.
        cluster_identifier=platform.context,
    )
    return Site(opts=ResourceOptions(providers=[provider]), ready=[], lifetime=None, kubeconfig=None, eks=None)
