"""The GPU nodes: the part of the stack that costs.

Owns the launch template with one EFA interface a network card, the security group that lets the nodes reach each
other over EFA, the cluster placement group and the node group. The node group is replaced delete-first: there is no
spare capacity to make the new nodes beside the old ones. It owns no driver and no device plugin: the AMI and
`device_plugins.py` do.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, CustomTimeouts, Output, Resource, ResourceOptions
from pulumi_aws import ec2, eks, vpc

from components.launch_template import METADATA_OPTIONS, root_disk, tag_specifications
from components.site import Eks
from planner.nodes import network_interfaces, user_data
from planner.placement import GPU_TAINT, ROLE_LABEL
from planner.plan import Plan

TAINT_VALUE = "present"
"""Also what NFD's worker tolerates, should somebody install it (NVIDIA/k8s-device-plugin#1934)."""

DISK_GIB = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNodesArgs:
    """`after`: what the nodes wait for, so that no GPU is paid for before it is there."""

    plan: Plan
    eks: Eks
    after: Sequence[Resource]


class GpuNodes(ComponentResource):
    """Launch template, security group, placement group and node group of the GPU nodes."""

    node_group: eks.NodeGroup
    security_group_id: Output[str]
    identity: Output[str]
    """Another for other nodes: the group's ARN, which is new with each group, and what its nodes are made from."""

    def __init__(self, name: str, args: GpuNodesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:GpuNodes", name, None, opts)
        self._name, self._args = name, args
        fabric_rules = self._security_group()
        placement = ec2.PlacementGroup(f"{name}-placement", strategy="cluster", opts=ResourceOptions(parent=self))
        template = self._launch_template(placement)
        self.node_group = self._node_group(template, fabric_rules)
        release = args.plan.settings.gpu_nodes.ami_release
        self.identity = Output.concat(self.node_group.arn, "@", template.latest_version.apply(str), "@", release)
        self.register_outputs({"nodeGroup": self.node_group.node_group_name})

    def _security_group(self) -> list[Resource]:
        group = ec2.SecurityGroup(
            f"{self._name}-efa",
            description="EFA between the GPU nodes: all traffic from and to this group",
            vpc_id=self._args.eks.network.vpc_id,
            tags={"Name": f"{self._args.plan.settings.name}-efa"},
            opts=ResourceOptions(parent=self),
        )
        self.security_group_id = group.id
        # EFA needs both directions to name the group itself: egress to 0.0.0.0/0 is not enough.
        return [
            rule(
                f"{self._name}-efa-{direction}",
                security_group_id=group.id,
                referenced_security_group_id=group.id,
                ip_protocol="-1",
                description="EFA between the GPU nodes",
                opts=ResourceOptions(parent=self),
            )
            for direction, rule in (
                ("in", vpc.SecurityGroupIngressRule),
                ("out", vpc.SecurityGroupEgressRule),
            )
        ]

    def _launch_template(self, placement: ec2.PlacementGroup) -> ec2.LaunchTemplate:
        # EKS adds its own security group only to templates that name none: it is listed here.
        groups = [self.security_group_id, self._args.eks.cluster.security_group_id]
        return ec2.LaunchTemplate(
            f"{self._name}-template",
            user_data=base64.b64encode(user_data().encode()).decode(),
            metadata_options=METADATA_OPTIONS,
            block_device_mappings=[root_disk(DISK_GIB)],
            network_interfaces=[
                ec2.LaunchTemplateNetworkInterfaceArgs(
                    network_card_index=interface.card,
                    device_index=interface.device,
                    interface_type=interface.kind,
                    associate_public_ip_address="false",
                    delete_on_termination="true",
                    security_groups=groups,
                )
                for interface in network_interfaces(self._args.plan.instance)
            ],
            placement={"group_name": placement.name},
            tag_specifications=tag_specifications(self._args.plan.settings.name, "gpu"),
            opts=ResourceOptions(parent=self),
        )

    def _node_group(self, template: ec2.LaunchTemplate, fabric_rules: list[Resource]) -> eks.NodeGroup:
        settings = self._args.plan.settings.gpu_nodes
        return eks.NodeGroup(
            f"{self._name}-group",
            cluster_name=self._args.eks.cluster.cluster.name,
            node_group_name=f"{self._args.plan.settings.name}-gpu",
            node_role_arn=self._args.eks.cluster.node_role_arn,
            subnet_ids=[self._args.eks.network.gpu_subnet_id],
            capacity_type="ON_DEMAND",
            instance_types=[self._args.plan.instance.name],
            ami_type="AL2023_x86_64_NVIDIA",
            version=self._args.eks.platform.kubernetes_version,
            release_version=settings.ami_release,
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            labels={ROLE_LABEL: "gpu", "nvidia.com/gpu.present": "true"},
            taints=[{"key": GPU_TAINT, "value": TAINT_VALUE, "effect": "NO_SCHEDULE"}],
            scaling_config={
                "min_size": settings.count,
                "desired_size": settings.count,
                "max_size": max(settings.count, 1),
            },
            # The default strategy launches further nodes first, which fixed capacity cannot give.
            update_config={"max_unavailable": 1, "update_strategy": "MINIMAL"},
            node_repair_config={"enabled": True},
            opts=ResourceOptions(
                parent=self,
                depends_on=[
                    self._args.eks.network,
                    *self._args.eks.cluster.before_nodes,
                    *fabric_rules,
                    *self._args.after,
                ],
                delete_before_replace=True,
                custom_timeouts=CustomTimeouts(create="60m", update="60m", delete="60m"),
            ),
        )
