"""The CPU nodes of the cluster, and the add-ons that need a node to run on.

Owns the system node group (DNS, operators, weight staging; in the GPU nodes' zone, so that staging writes to the
cache without crossing zones), CoreDNS and the FSx CSI driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Resource, ResourceOptions
from pulumi_aws import ec2, eks

from components.cluster import addon
from planner.settings import SystemNodes as SystemNodesSettings

ROLE_LABEL = "vllm-multinode/role"
DISK_GIB = 200

LATE_ADDONS = ("coredns", "aws-fsx-csi-driver")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemNodesArgs:
    """`before_nodes`: resources that must outlive every node."""

    settings: SystemNodesSettings
    name: str
    cluster: eks.Cluster
    node_role_arn: Input[str]
    subnet_id: Input[str]
    before_nodes: Sequence[Resource]


class SystemNodes(ComponentResource):
    """The system node group with CoreDNS and the FSx CSI driver."""

    node_group: eks.NodeGroup

    def __init__(self, name: str, args: SystemNodesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:SystemNodes", name, None, opts)
        template = ec2.LaunchTemplate(
            f"{name}-template",
            name_prefix=f"{args.name}-system-",
            metadata_options={"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 1},
            block_device_mappings=[root_disk(DISK_GIB)],
            tag_specifications=tag_specifications(f"{args.name}-system"),
            opts=ResourceOptions(parent=self),
        )
        self.node_group = eks.NodeGroup(
            f"{name}-group",
            cluster_name=args.cluster.name,
            node_group_name=f"{args.name}-system",
            node_role_arn=args.node_role_arn,
            subnet_ids=[args.subnet_id],
            instance_types=[args.settings.instance_type],
            ami_type="AL2023_x86_64_STANDARD",
            release_version=args.settings.ami_release,
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            labels={ROLE_LABEL: "system"},
            scaling_config={
                "min_size": args.settings.count,
                "desired_size": args.settings.count,
                "max_size": args.settings.count + 1,
            },
            update_config={"max_unavailable": 1},
            opts=ResourceOptions(parent=self, depends_on=list(args.before_nodes)),
        )
        for addon_name in LATE_ADDONS:
            addon(self, name, args.cluster, addon_name, depends_on=[self.node_group])
        self.register_outputs({"nodeGroup": self.node_group.node_group_name})


def root_disk(size_gib: int) -> ec2.LaunchTemplateBlockDeviceMappingArgs:
    """The encrypted gp3 root volume of an AL2023 node, `size_gib` GiB."""
    return ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name="/dev/xvda",
        ebs=ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_size=size_gib, volume_type="gp3", encrypted="true", delete_on_termination="true"
        ),
    )


def tag_specifications(node_name: str) -> list[ec2.LaunchTemplateTagSpecificationArgs]:
    """Name tags for what EC2 makes from a launch template; the provider's default tags do not reach these."""
    return [
        ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags={"Name": node_name})
        for kind in ("instance", "volume", "network-interface")
    ]
