"""vLLM over all GPU nodes as one LeaderWorkerSet, and the Service that clients reach it by.

Owns the API key's Secret, the LeaderWorkerSet, the client Service and the NetworkPolicy that keeps others away from the
gang's ports, which are neither encrypted nor authenticated. The manifest of the gang itself is in `gang.py`, its
operator in `gang_operator.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, CustomTimeouts, Output, Resource, ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import Secret, Service
from pulumi_kubernetes.meta.v1 import LabelSelectorArgsDict
from pulumi_kubernetes.networking.v1 import NetworkPolicy

from components import payloads
from components.gang import INDEX_LABEL, NAME_LABEL, WEIGHTS_CHECK, Mounts, leader_worker_set_spec
from components.weight_cache import WeightCache
from planner.plan import Plan

READY_TIMEOUT = "150m"
"""The startup probe's two hours, and what pulling a 20 GB image and joining take before it starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingArgs:
    """`api_key` is None where the stack file allows anonymous use; `after` must be there before the first pod."""

    plan: Plan
    cache: WeightCache
    api_key: Output[str] | None
    after: Sequence[Resource]


class Serving(ComponentResource):
    """The LeaderWorkerSet with its secret, Service and NetworkPolicy."""

    service: str
    port: int

    def __init__(self, name: str, args: ServingArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:Serving", name, None, opts)
        if args.plan.serving is None:
            raise ValueError("a paused stack serves nothing: gpuNodes.count is 0")
        self._name, self._args, self._serving = name, args, args.plan.serving
        self._gang_name = args.plan.settings.name
        # The operator makes a headless Service of the gang's own name; clients need another one.
        self.service, self.port = f"{self._gang_name}-api", self._serving.port
        policy = self._network_policy()
        self._gang([*args.after, policy])
        self._service()
        self.register_outputs({"service": self.service})

    def _secret(self) -> Output[str] | None:
        if self._args.api_key is None:
            return None
        secret = Secret(
            f"{self._name}-api-key",
            metadata={"name": f"{self._gang_name}-api-key", "namespace": self._args.cache.namespace},
            string_data={"api-key": self._args.api_key},
            opts=ResourceOptions(parent=self),
        )
        return secret.metadata.name.apply(lambda name: name or "")

    def _payload(self) -> Output[str]:
        files, named = payloads.sources(WEIGHTS_CHECK), f"{self._gang_name}-weights-check"
        made = payloads.config_map(f"{self._name}-payload", files, named, self._args.cache.namespace, self)
        return made.metadata.name.apply(lambda name: name or "")

    def _gang(self, requires: Sequence[Resource]) -> CustomResource:
        mounts = Mounts(cache=self._args.cache, payload=self._payload(), api_key_secret=self._secret())
        return CustomResource(
            f"{self._name}-gang",
            api_version="leaderworkerset.x-k8s.io/v1",
            kind="LeaderWorkerSet",
            metadata={
                "name": self._gang_name,
                "namespace": self._args.cache.namespace,
                "annotations": {
                    **self._serving.restart.annotations,
                    "pulumi.com/waitFor": "condition=Available",
                    # Destroy goes on to the nodes only when the pods are gone.
                    "pulumi.com/deletionPropagationPolicy": "foreground",
                },
            },
            spec=leader_worker_set_spec(self._args.plan, self._serving, mounts),
            opts=ResourceOptions(
                parent=self,
                depends_on=list(requires),
                # After an update in place the old gang's Available would still stand, and `up` would end before the
                # new one has loaded. Nothing is lost: one group on fixed nodes cannot roll without a gap.
                replace_on_changes=["spec"],
                delete_before_replace=True,
                custom_timeouts=CustomTimeouts(create=READY_TIMEOUT, update=READY_TIMEOUT, delete="20m"),
            ),
        )

    def _service(self) -> Service:
        return Service(
            f"{self._name}-api",
            metadata={
                "name": self.service,
                "namespace": self._args.cache.namespace,
                # Ready when the leader is: the gang is waited for by itself.
                "annotations": {"pulumi.com/skipAwait": "true"},
            },
            spec={
                "type": "ClusterIP",
                "selector": {NAME_LABEL: self._gang_name, INDEX_LABEL: "0"},
                "ports": [{"name": "http", "port": self.port, "target_port": "http"}],
            },
            opts=ResourceOptions(parent=self),
        )

    def _network_policy(self) -> NetworkPolicy:
        gang: LabelSelectorArgsDict = {"match_labels": {NAME_LABEL: self._gang_name}}
        return NetworkPolicy(
            f"{self._name}-gang",
            metadata={"name": f"{self._gang_name}-gang", "namespace": self._args.cache.namespace},
            spec={
                "pod_selector": gang,
                "policy_types": ["Ingress"],
                "ingress": [
                    {"from_": [{"pod_selector": gang}]},
                    {"ports": [{"port": self.port, "protocol": "TCP"}]},
                ],
            },
            opts=ResourceOptions(parent=self),
        )
