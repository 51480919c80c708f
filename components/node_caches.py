"""The disks of the GPU nodes as a weight cache: a DaemonSet that fills each node's own, a replaced node's too.

Owns the DaemonSet, its service account with access to the bucket, and the secrets of a source that is no bucket
of the stack's own. It asks for no GPU, so that it runs beside the gang. The program is `payloads/stage_weights.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from pulumi import ComponentResource, CustomTimeouts, Output, Resource, ResourceOptions
from pulumi_kubernetes.apps.v1 import DaemonSet, DaemonSetSpecArgsDict, DaemonSetUpdateStrategyArgsDict
from pulumi_kubernetes.core.v1 import ContainerArgsDict, PodSpecArgsDict, PodTemplateSpecArgsDict, ServiceAccount

from components import payloads, staging_pod
from components.bucket_access import Grant, grant
from components.gang import cpu_left
from components.site import Site
from components.staging_pod import Move, Secrets
from components.weight_cache import WeightCache
from planner.plan import Plan
from planner.weight_settings import HubSource, S3Source

MEMORY = "12Gi"
"""Beside the gang, as is half of the CPU that it leaves."""

IDLE = {"cpu": "10m", "memory": "32Mi"}
TIMEOUT = "4h"
WAIT_SECONDS = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCachesArgs:
    """`after`: the GPU nodes, and what fills the bucket."""

    plan: Plan
    site: Site
    cache: WeightCache
    secrets: Secrets
    after: Sequence[Resource]


class NodeCaches(ComponentResource):
    """One pod a GPU node that copies the model onto its disks and then stays, so that a new node gets it as well."""

    daemon_set: DaemonSet

    def __init__(self, name: str, args: NodeCachesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:NodeCaches", name, None, opts)
        self._name, self._args = name, args
        self._prefix = f"{args.plan.settings.name}-node-cache"
        self._move = move(args.plan, args.cache)
        account = ServiceAccount(
            f"{name}-account",
            metadata={"name": self._prefix, "namespace": args.cache.namespace},
            automount_service_account_token=False,
            opts=ResourceOptions(parent=self),
        )
        access = self._access(account)
        self.daemon_set = DaemonSet(
            f"{name}-fill",
            metadata={"name": self._prefix, "namespace": args.cache.namespace},
            spec=self._spec(account),
            opts=ResourceOptions(
                parent=self,
                depends_on=[*args.after, *access],
                custom_timeouts=CustomTimeouts(create=TIMEOUT, update=TIMEOUT),
            ),
        )
        self.register_outputs({"daemonSet": self.daemon_set.metadata.name})

    def _access(self, account: ServiceAccount) -> list[Resource]:
        eks, cache, source = self._args.site.eks, self._args.cache, self._args.plan.settings.weights.source
        given = isinstance(source, S3Source) and source.endpoint is not None
        if eks is None or cache.bucket_url is None or given:
            return []
        wanted = Grant(
            cluster=eks.cluster.cluster.name,
            namespace=cache.namespace,
            account=account.metadata.name.apply(lambda made: made or ""),
            bucket=source.bucket if isinstance(source, S3Source) else _bucket_name(cache),
            prefix=source.prefix if isinstance(source, S3Source) else "",
            write=False,
        )
        return [grant(f"{self._name}-access", wanted, self)]

    def _spec(self, account: ServiceAccount) -> DaemonSetSpecArgsDict:
        labels = {"app.kubernetes.io/name": self._prefix}
        template: PodTemplateSpecArgsDict = {
            "metadata": {
                "labels": labels,
                "annotations": {payloads.DIGEST_ANNOTATION: payloads.digest(self._move.files)},
            },
            "spec": self._pod(account),
        }
        # Nothing is served by these pods: with another revision all nodes fill their disks at once, not one by one.
        at_once: DaemonSetUpdateStrategyArgsDict = {
            "type": "RollingUpdate",
            "rolling_update": {"max_unavailable": "100%"},
        }
        return {"selector": {"match_labels": labels}, "update_strategy": at_once, "template": template}

    def _pod(self, account: ServiceAccount) -> PodSpecArgsDict:
        plan, cache = self._args.plan, self._args.cache
        script = payloads.config_map(
            f"{self._name}-payload", self._move.files, f"{self._prefix}-payload", cache.namespace, self
        )
        asked = self._args.secrets.of(hub=self._move.hub, s3=self._move.s3 and cache.bucket is None)
        secrets = staging_pod.secret_variables(
            f"{self._name}-secrets", asked, f"{self._prefix}-secrets", cache.namespace, self
        )
        asked_of_node = {"cpu": str(cpu_left(plan.instance.vcpus) // 2), "memory": MEMORY}
        patience = staging_pod.variables({"STAGE_WAIT_SECONDS": str(WAIT_SECONDS)})
        idle: ContainerArgsDict = {
            "name": "stay",
            "image": plan.settings.staging.image,
            "command": ["sleep", "infinity"],
            "resources": {"requests": dict(IDLE), "limits": dict(IDLE)},
            "security_context": {"allow_privilege_escalation": False, "capabilities": {"drop": ["ALL"]}},
        }
        return {
            "service_account_name": account.metadata.name,
            "automount_service_account_token": False,
            "enable_service_links": False,
            "node_selector": dict(plan.placement.gpu_labels),
            "tolerations": cast("Any", list(plan.placement.gpu_tolerations)),
            "termination_grace_period_seconds": 5,
            "security_context": {"seccomp_profile": {"type": "RuntimeDefault"}},
            "init_containers": [staging_pod.container(plan, self._move, [*secrets, *patience], asked_of_node)],
            "containers": [idle],
            "volumes": [cast("Any", {"name": "weights", **cache.weights}), *staging_pod.volumes(script)],
        }


def move(plan: Plan, cache: WeightCache) -> Move:
    """From the bucket, or where there is none straight from the Hub, onto the disk."""
    hub = cache.bucket_url is None and isinstance(plan.settings.weights.source, HubSource)
    return Move(source=cache.bucket_url or "hub", target=None, hub=hub, s3=not hub)


def _bucket_name(cache: WeightCache) -> Output[str]:
    if cache.bucket is None:
        raise ValueError("neither a bucket of the stack's own nor one of the source's")
    return cache.bucket.bucket
