"""Weights on FSx for Lustre: one file system, mounted by staging (read-write) and serving (read-only).

Owns the file system, its security group and the static volume and claim that pods name. With `weights.retain` file
system and group outlive `pulumi destroy`, and the next `up` adopts them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, CustomTimeouts, Input, Output, Resource, ResourceOptions
from pulumi_aws import ec2, fsx, vpc
from pulumi_kubernetes.core.v1 import PersistentVolume, PersistentVolumeClaim

from components.retained import PART_TAG, retained_id
from components.site import Eks
from planner.weight_settings import FsxWeights

LUSTRE_PORTS = ((988, 988), (1018, 1023))
"""TCP ports of Lustre's network (FSx for Lustre user guide, "File system access control with Amazon VPC")."""

NOMINAL_CAPACITY = "1200Gi"
"""What volume and claim say, whatever the file system holds: Kubernetes lets no static claim grow, FSx does."""

PART = "weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreCacheArgs:
    """`deployment`: its name. Every node of `eks` is in the cluster's security group."""

    deployment: str
    settings: FsxWeights
    namespace: Input[str]
    eks: Eks


class LustreCache(ComponentResource):
    """FSx for Lustre with its static PersistentVolume and claim."""

    claim_name: Output[str]

    def __init__(self, name: str, args: LustreCacheArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:LustreCache", name, None, opts)
        self._name, self._args = name, args
        group = self._group()
        file_system = self._file_system(group)
        claim = self._claim(file_system, self._node_rules(group))
        self.claim_name = claim.metadata.name.apply(lambda made: made or "")
        self.register_outputs({"fileSystemId": file_system.id, "claimName": self.claim_name})

    def _file_system(self, group: ec2.SecurityGroup) -> fsx.LustreFileSystem:
        settings = self._args.settings
        return fsx.LustreFileSystem(
            f"{self._name}-lustre",
            deployment_type="PERSISTENT_2",
            storage_type="SSD",
            # AL2023's client cannot mount 2.10, the driver's default (kubernetes-sigs/aws-fsx-csi-driver#437).
            file_system_type_version="2.15",
            storage_capacity=settings.capacity_gib,
            per_unit_storage_throughput=settings.throughput_per_tib,
            subnet_ids=self._args.eks.network.gpu_subnet_id,
            security_group_ids=[group.id],
            automatic_backup_retention_days=0,
            skip_final_backup=True,
            tags={"Name": f"{self._args.deployment}-weights", PART_TAG: PART},
            # FSx looks at the rules while it creates the file system, and refuses if port 988 is closed.
            opts=ResourceOptions.merge(
                self._kept("fsx:file-system"),
                ResourceOptions(
                    depends_on=self._own_rules(group),
                    custom_timeouts=CustomTimeouts(create="45m", delete="45m"),
                    # FSx does not tell them: an adopted file system would be replaced, also when it is given up later.
                    ignore_changes=["securityGroupIds"],
                ),
            ),
        )

    def _group(self) -> ec2.SecurityGroup:
        name = f"{self._args.deployment}-lustre"
        return ec2.SecurityGroup(
            f"{self._name}-lustre",
            # A name of its own choosing could not be adopted, and one that came or went with `retain` would replace it.
            name=name,
            description="Lustre between the file system and the nodes that mount it",
            vpc_id=self._args.eks.network.vpc_id,
            tags={"Name": name, PART_TAG: PART},
            opts=self._kept("ec2:security-group"),
        )

    def _kept(self, kind: str) -> ResourceOptions:
        """A child; where the cache is retained, one that outlives the stack and is adopted if it did."""
        retain = self._args.settings.retain
        return ResourceOptions(
            parent=self,
            retain_on_delete=retain,
            import_=retained_id(kind, self._args.deployment, PART, self) if retain else None,
        )

    def _own_rules(self, group: ec2.SecurityGroup) -> list[Resource]:
        """Between the file system's own servers: they name no cluster, so that both are made side by side."""
        return self._rules("self", group.id, group.id)

    def _node_rules(self, group: ec2.SecurityGroup) -> list[Resource]:
        """To the nodes and back: the servers call their clients, for example after a failover."""
        nodes = self._args.eks.cluster.security_group_id
        back = [
            vpc.SecurityGroupIngressRule(
                f"{self._name}-lustre-back-{first}",
                security_group_id=nodes,
                referenced_security_group_id=group.id,
                ip_protocol="tcp",
                from_port=first,
                to_port=last,
                description="Lustre, from the file system",
                opts=ResourceOptions(parent=self),
            )
            for first, last in LUSTRE_PORTS
        ]
        return [*back, *self._rules("nodes", group.id, nodes)]

    def _rules(self, peer: str, group: Output[str], peer_group: Output[str]) -> list[Resource]:
        directions = (("in", vpc.SecurityGroupIngressRule), ("out", vpc.SecurityGroupEgressRule))
        return [
            rule(
                f"{self._name}-lustre-{direction}-{peer}-{first}",
                security_group_id=group,
                referenced_security_group_id=peer_group,
                ip_protocol="tcp",
                from_port=first,
                to_port=last,
                description=f"Lustre, {peer}",
                opts=ResourceOptions(parent=self),
            )
            for direction, rule in directions
            for first, last in LUSTRE_PORTS
        ]

    def _claim(self, file_system: fsx.LustreFileSystem, rules: list[Resource]) -> PersistentVolumeClaim:
        # Neither has a name of its own: with a new file system come a new volume and a new claim, then pods that name
        # it, and the old ones go when nothing mounts them. Fixed names would wait on each other's finalizers.
        volume = PersistentVolume(
            f"{self._name}-volume",
            spec={
                "capacity": {"storage": NOMINAL_CAPACITY},
                "access_modes": ["ReadWriteMany"],
                "persistent_volume_reclaim_policy": "Retain",
                "storage_class_name": "",
                "mount_options": ["flock"],
                "csi": {
                    "driver": "fsx.csi.aws.com",
                    "volume_handle": file_system.id,
                    "volume_attributes": {
                        "dnsname": file_system.dns_name,
                        "mountname": file_system.mount_name,
                    },
                },
            },
            opts=ResourceOptions(parent=self, depends_on=[self._args.eks.csi_driver, *rules]),
        )
        return PersistentVolumeClaim(
            f"{self._name}-claim",
            metadata={"namespace": self._args.namespace},
            spec={
                "access_modes": ["ReadWriteMany"],
                "storage_class_name": "",
                "volume_name": volume.metadata.name,
                "resources": {"requests": {"storage": NOMINAL_CAPACITY}},
            },
            opts=ResourceOptions(parent=self),
        )
