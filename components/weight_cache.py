"""Where the weights lie: an FSx for Lustre file system, mounted by staging (read-write) and serving (read-only).

Owns the file system, its security group and the static volume and claim that pods name. It does not fill the cache:
`weight_staging.py` does.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, CustomTimeouts, Input, Output, Resource, ResourceOptions
from pulumi_aws import ec2, fsx, vpc
from pulumi_kubernetes.core.v1 import PersistentVolume, PersistentVolumeClaim

from components.cluster import Cluster
from components.network import Network
from planner.plan import Plan

LUSTRE_PORTS = ((988, 988), (1018, 1023))
"""TCP ports of Lustre's network (FSx for Lustre user guide, "File system access control with Amazon VPC")."""

NOMINAL_CAPACITY = "1200Gi"
"""What volume and claim say, whatever the file system holds: Kubernetes lets no static claim grow, FSx does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightCacheArgs:
    """`cluster`: every node is in its security group. `csi_driver` must be there before a volume is."""

    plan: Plan
    namespace: Input[str]
    network: Network
    cluster: Cluster
    csi_driver: Resource


class WeightCache(ComponentResource):
    """FSx for Lustre with its static PersistentVolume and claim."""

    namespace: Output[str]
    claim_name: Output[str]

    def __init__(self, name: str, args: WeightCacheArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:WeightCache", name, None, opts)
        self._name, self._args = name, args
        file_system = self._file_system()
        self.namespace = Output.from_input(args.namespace)
        self.claim_name = self._claim(file_system).metadata.name
        self.register_outputs({"fileSystemId": file_system.id, "claimName": self.claim_name})

    def _file_system(self) -> fsx.LustreFileSystem:
        settings = self._args.plan.settings.weights
        group = ec2.SecurityGroup(
            f"{self._name}-lustre",
            description="Lustre between the file system and the nodes that mount it",
            vpc_id=self._args.network.vpc_id,
            tags={"Name": f"{self._args.plan.settings.name}-lustre"},
            opts=ResourceOptions(parent=self),
        )
        return fsx.LustreFileSystem(
            f"{self._name}-lustre",
            deployment_type="PERSISTENT_2",
            storage_type="SSD",
            # AL2023's client cannot mount 2.10, the driver's default (kubernetes-sigs/aws-fsx-csi-driver#437).
            file_system_type_version="2.15",
            storage_capacity=settings.capacity_gib,
            per_unit_storage_throughput=settings.throughput_per_tib,
            subnet_ids=self._args.network.gpu_subnet_id,
            security_group_ids=[group.id],
            automatic_backup_retention_days=0,
            skip_final_backup=True,
            tags={"Name": f"{self._args.plan.settings.name}-weights"},
            # FSx looks at the rules while it creates the file system, and refuses if port 988 is closed.
            opts=ResourceOptions(
                parent=self,
                depends_on=self._rules(group),
                custom_timeouts=CustomTimeouts(create="45m", delete="45m"),
            ),
        )

    def _rules(self, group: ec2.SecurityGroup) -> list[Resource]:
        nodes = self._args.cluster.security_group_id
        peers: dict[str, Input[str]] = {"self": group.id, "nodes": nodes}
        directions = (("in", vpc.SecurityGroupIngressRule), ("out", vpc.SecurityGroupEgressRule))
        # The servers call their clients back, for example after a failover.
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
        return [
            *back,
            *(
                rule(
                    f"{self._name}-lustre-{direction}-{peer}-{first}",
                    security_group_id=group.id,
                    referenced_security_group_id=peer_id,
                    ip_protocol="tcp",
                    from_port=first,
                    to_port=last,
                    description=f"Lustre, {peer}",
                    opts=ResourceOptions(parent=self),
                )
                for direction, rule in directions
                for peer, peer_id in peers.items()
                for first, last in LUSTRE_PORTS
            ),
        ]

    def _claim(self, file_system: fsx.LustreFileSystem) -> PersistentVolumeClaim:
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
            opts=ResourceOptions(parent=self, depends_on=[self._args.csi_driver]),
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
