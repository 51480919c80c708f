"""The CPU nodes of the cluster, and the add-ons that need a node to run on.

Owns the system node group (DNS, operators, weight staging; in the GPU nodes' zone, so that staging writes to the
cache without crossing zones), CoreDNS and the FSx CSI driver.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws import ec2, eks

from components.cluster import Cluster, addon
from components.launch_template import METADATA_OPTIONS, root_disk, tag_specifications
from components.network import Network
from planner.placement import ROLE_LABEL
from planner.platform_settings import EksPlatform

DISK_GIB = 200

LATE_ADDONS = ("coredns", "aws-fsx-csi-driver")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemNodesArgs:
    """`network` is waited for as a whole: a node that cannot reach the internet never joins.

    `scratch_mib_per_second`: throughput of the root disk, where staging goes through it; None is what gp3 includes.
    """

    deployment: str
    platform: EksPlatform
    cluster: Cluster
    network: Network
    scratch_mib_per_second: int | None


class SystemNodes(ComponentResource):
    """The system node group with CoreDNS and the FSx CSI driver."""

    node_group: eks.NodeGroup

    def __init__(self, name: str, args: SystemNodesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:SystemNodes", name, None, opts)
        nodes = args.platform.system_nodes
        template = ec2.LaunchTemplate(
            f"{name}-template",
            metadata_options=METADATA_OPTIONS,
            block_device_mappings=[root_disk(DISK_GIB, args.scratch_mib_per_second)],
            tag_specifications=tag_specifications(args.deployment, "system"),
            opts=ResourceOptions(parent=self),
        )
        self.node_group = eks.NodeGroup(
            f"{name}-group",
            cluster_name=args.cluster.cluster.name,
            node_role_arn=args.cluster.node_role_arn,
            subnet_ids=[args.network.system_subnet_id],
            instance_types=[nodes.instance_type],
            ami_type="AL2023_x86_64_STANDARD",
            version=args.platform.kubernetes_version,
            release_version=nodes.ami_release,
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            labels={ROLE_LABEL: "system"},
            scaling_config={
                "min_size": nodes.count,
                "desired_size": nodes.count,
                "max_size": nodes.count + 1,
            },
            update_config={"max_unavailable": 1},
            opts=ResourceOptions(parent=self, depends_on=[args.network, *args.cluster.before_nodes]),
        )
        for addon_name in LATE_ADDONS:
            addon(self, name, args.cluster.cluster, addon_name, depends_on=[self.node_group])
        self.register_outputs({"nodeGroup": self.node_group.node_group_name})
