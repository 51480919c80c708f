"""The namespace that staging and serving share.

It admits IPC_LOCK, which RDMA needs for pinned memory and Pod Security's baseline forbids, hence `enforce=privileged`;
every pod keeps to far less, and `warn=restricted` says where it goes beyond.
"""

from __future__ import annotations

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_kubernetes.core.v1 import Namespace as KubernetesNamespace

from planner.settings import Deployment
from planner.weight_settings import ClaimWeights

POD_SECURITY = {
    "pod-security.kubernetes.io/enforce": "privileged",
    "pod-security.kubernetes.io/warn": "restricted",
}


def namespace_of(settings: Deployment, opts: ResourceOptions) -> Output[str]:
    """The stack's own namespace; or that of the claim it serves from, which it neither makes nor removes."""
    if isinstance(settings.weights, ClaimWeights):
        return Output.from_input(settings.weights.namespace)
    return Namespace("namespace", settings.name, opts).namespace


class Namespace(ComponentResource):
    """A namespace of the deployment's own name, gone only when everything in it is."""

    namespace: Output[str]

    def __init__(self, name: str, namespace: str, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:Namespace", name, None, opts)
        made = KubernetesNamespace(
            f"{name}-namespace",
            metadata={"name": namespace, "labels": POD_SECURITY},
            opts=ResourceOptions(parent=self),
        )
        self.namespace = made.metadata.name
        self.register_outputs({"namespace": self.namespace})
