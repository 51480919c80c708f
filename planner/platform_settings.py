"""What a user writes under `platform`, `gpuNodes` and `fabric`: where the stack runs, and on what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, Tag

from planner import checks, defaults, kubernetes_spelling
from planner.sections import (
    ClosedCidr,
    GigabytesPerSecond,
    LabelKey,
    Labels,
    LabelValue,
    PinnedImage,
    PrincipalArn,
    Section,
    kind_or,
)


class NewNetwork(Section):
    """A VPC of the stack's own. `cidr` must hold 4 x /20 and one /22: a /16 does."""

    kind: Literal["new"] = "new"
    cidr: Annotated[str, AfterValidator(checks.vpc_cidr)] = "10.42.0.0/16"


class ExistingNetwork(Section):
    """A VPC that is there already. Its subnets need a route to the internet (NAT) or endpoints of AWS."""

    kind: Literal["existing"]
    vpc_id: Annotated[str, StringConstraints(pattern=r"^vpc-[0-9a-f]{8,17}$")]
    control_plane_subnet_ids: Annotated[tuple[str, ...], Field(min_length=2)]
    gpu_subnet_id: Annotated[str, StringConstraints(pattern=r"^subnet-[0-9a-f]{8,17}$")]


class SystemNodes(Section):
    """CPU nodes for DNS, operators and weight staging (8 CPU, 16 GiB), in the GPU nodes' zone."""

    instance_type: Annotated[str, AfterValidator(checks.system_instance_type)] = "c6in.4xlarge"
    count: Annotated[int, Field(ge=1, le=10)] = 2
    ami_release: Annotated[str, AfterValidator(checks.ami_release)] = defaults.AMI_RELEASE


class EksPlatform(Section):
    """Amazon EKS, created by the stack."""

    kind: Literal["eks"] = "eks"
    region: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]
    availability_zone: str
    kubernetes_version: Annotated[str, AfterValidator(checks.kubernetes_version)] = defaults.KUBERNETES
    public_access_cidrs: Annotated[tuple[ClosedCidr, ...], Field(min_length=1)]
    admins: tuple[PrincipalArn, ...] = ()
    network: Annotated[NewNetwork | ExistingNetwork, Field(discriminator="kind")] = NewNetwork()
    system_nodes: SystemNodes = SystemNodes()


class Toleration(Section):
    """A taint of the GPU nodes that pods tolerate. `operator` left out is `Equal` where a value is given."""

    key: LabelKey
    operator: Literal["Exists", "Equal"] | None = None
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = "NoSchedule"


class ExistingPlatform(Section):
    """A cluster that is there already, with its nodes: the stack makes nothing outside of it.

    `kubeconfig`: a file, unset the one that kubectl uses. Labels tell which nodes are meant; without `cpu_node_labels`
    staging runs on any node whose taints let it.
    """

    kind: Literal["existing"]
    context: Annotated[str, Field(min_length=1)]
    kubeconfig: str | None = None
    gpu_node_labels: Labels
    gpu_node_tolerations: tuple[Toleration, ...] = (Toleration(key="nvidia.com/gpu"),)
    cpu_node_labels: Labels | None = None


Platform = Annotated[Annotated[EksPlatform, Tag("eks")] | Annotated[ExistingPlatform, Tag("existing")], kind_or("eks")]


class NodeShape(Section):
    """A GPU node that no instance type names. `efa`: how many EFA devices it has; `nvme_gb`: GB of local disk."""

    gpu: Annotated[str, AfterValidator(checks.gpu)]
    gpus: Annotated[int, Field(ge=1, le=16)]
    vcpus: Annotated[int, Field(ge=8, le=4096)]
    memory_gib: Annotated[int, Field(ge=32, le=65_536)]
    network_gbps: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)] = 100.0
    nvme_gb: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    efa: Annotated[int, Field(ge=0, le=64)] = 0


def _named_or_described(value: object) -> str:
    return "described" if isinstance(value, Mapping | NodeShape) else "named"


GpuNode = Annotated[
    Annotated[str, AfterValidator(checks.gpu_instance_type), Tag("named")] | Annotated[NodeShape, Tag("described")],
    Discriminator(_named_or_described),
]


class GpuNodes(Section):
    """The GPU nodes. `count: 0` is a paused stack: cluster and weights stay, nothing is served.

    `instance_type` is one of the hardware table; on a cluster of one's own it may be a mapping that describes a node.
    """

    instance_type: GpuNode
    count: Annotated[int, Field(ge=0, le=16, strict=True)]
    ami_release: Annotated[str, AfterValidator(checks.ami_release)] = defaults.AMI_RELEASE


class Fabric(Section):
    """What all fabrics have: the test that must pass before anything is served.

    `warn_below` and `fail_below` are bus bandwidths of an all-reduce over all GPUs, in GB/s.
    """

    gate: Literal["skip", "warn", "require"] = "require"
    warn_below: GigabytesPerSecond | None = None
    fail_below: GigabytesPerSecond | None = None


class EfaFabric(Fabric):
    """Elastic Fabric Adapter: AWS's RDMA between nodes of one availability zone."""

    kind: Literal["efa"] = "efa"


class InfinibandFabric(Fabric):
    """InfiniBand. `resource` x `quantity` is what a pod asks for to get all of a node's adapters.

    `adapters`: how many a node has, of `adapter_gbps` Gb/s each (NDR: 400). With `install` the stack brings the RDMA
    shared device plugin, which offers `resource`; without, the cluster has a plugin that does. `hcas` is NCCL_IB_HCA,
    for nodes where not every adapter is fabric.
    """

    kind: Literal["infiniband"]
    resource: Annotated[str, AfterValidator(kubernetes_spelling.resource_name)] = "rdma/hca_shared_devices_a"
    quantity: Annotated[int, Field(ge=1, le=64)] = 1
    adapters: Annotated[int, Field(ge=1, le=64)] = 8
    adapter_gbps: Annotated[float, Field(gt=0, le=3200, allow_inf_nan=False)] = 400.0
    install: bool = True
    plugin_image: PinnedImage = "ghcr.io/mellanox/k8s-rdma-shared-dev-plugin:v1.5.3"
    hcas: Annotated[str, Field(pattern=r"^[=^]?[a-zA-Z0-9_:]+(,[a-zA-Z0-9_:]+)*$")] | None = None


class NoFabric(Fabric):
    """No fabric: one node, whose GPUs are joined by NVLink or PCIe alone."""

    kind: Literal["none"]


AnyFabric = Annotated[
    Annotated[EfaFabric, Tag("efa")]
    | Annotated[InfinibandFabric, Tag("infiniband")]
    | Annotated[NoFabric, Tag("none")],
    kind_or("efa"),
]


class OnDemandPurchase(Section):
    """Billed by the second at the public price, if the zone has capacity, in a cluster placement group."""

    kind: Literal["on_demand"] = "on_demand"
