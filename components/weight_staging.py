"""The Job that fills the weight cache, or the bucket that nodes fill their disks from, before a GPU is paid for.

Owns the Job, the program it runs, the service account that may patch one named ConfigMap with the progress, its access
to buckets, and the secrets of the source, which no other pod sees. The program is `payloads/stage_weights.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from pulumi import ComponentResource, CustomTimeouts, Input, Output, Resource, ResourceOptions
from pulumi_kubernetes.batch.v1 import Job, JobSpecArgsDict, PodFailurePolicyRuleArgsDict
from pulumi_kubernetes.core.v1 import ConfigMap, PodSpecArgsDict, PodTemplateSpecArgsDict, ServiceAccount
from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict
from pulumi_kubernetes.rbac.v1 import Role, RoleBinding

from components import payloads, staging_pod
from components.bucket_access import Grant, grant
from components.site import Site
from components.staging_pod import Move, Secrets
from components.weight_cache import WeightCache
from planner.plan import Plan
from planner.weight_settings import HubSource, S3Source

RESOURCES = {"cpu": "8", "memory": "16Gi"}
"""hf-xet was seen to use 7 cores and 6.6 GB on a 61 GB repository (unslothai/unsloth-zoo#972)."""

SCRATCH = "120Gi"
"""Of the root disk, on the way to a bucket: the program keeps 100 GB in flight."""

TIMEOUT_HOURS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightStagingArgs:
    """`site`: where the Job runs, and once what is ready."""

    plan: Plan
    site: Site
    cache: WeightCache
    secrets: Secrets


class WeightStaging(ComponentResource):
    """One writer that downloads, verifies and publishes one pinned revision."""

    job: Job
    progress: Output[str]
    """Name of the ConfigMap that shows the progress while the Job runs."""

    def __init__(self, name: str, args: WeightStagingArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:WeightStaging", name, None, opts)
        self._name, self._args = name, args
        self._prefix = f"{args.plan.settings.name}-staging"
        self._move = move(args.plan, args.cache)
        self.progress = self._config_map("progress", {}).metadata.name.apply(lambda made: made or "")
        script = self._config_map("payload", self._move.files)
        account = self._service_account()
        self.job = self._job(account, script, self._access(account))
        self.register_outputs({"job": self.job.metadata.name, "progress": self.progress})

    def _config_map(self, role: str, data: dict[str, str]) -> ConfigMap:
        named = f"{self._prefix}-{role}"
        return payloads.config_map(f"{self._name}-{role}", data, named, self._args.cache.namespace, self)

    def _access(self, account: ServiceAccount) -> list[Resource]:
        """Pod Identity for the buckets of this account, on EKS alone: elsewhere keys come from the stack's secrets."""
        eks, cache, source = self._args.site.eks, self._args.cache, self._args.plan.settings.weights.source
        if eks is None:
            return []
        if cache.bucket is not None:
            bucket, prefix, write = cache.bucket.bucket, "", True
        elif isinstance(source, S3Source) and source.endpoint is None:
            bucket, prefix, write = Output.from_input(source.bucket), source.prefix, False
        else:
            return []
        wanted = Grant(
            cluster=eks.cluster.cluster.name,
            namespace=cache.namespace,
            account=account.metadata.name.apply(lambda made: made or ""),
            bucket=bucket,
            prefix=prefix,
            write=write,
        )
        return [grant(f"{self._name}-access", wanted, self)]

    def _service_account(self) -> ServiceAccount:
        metadata: ObjectMetaArgsDict = {"name": self._prefix, "namespace": self._args.cache.namespace}
        account = ServiceAccount(f"{self._name}-account", metadata=metadata, opts=ResourceOptions(parent=self))
        role = Role(
            f"{self._name}-role",
            metadata=metadata,
            rules=[
                {
                    "api_groups": [""],
                    "resources": ["configmaps"],
                    "resource_names": [self.progress],
                    "verbs": ["get", "patch"],
                }
            ],
            opts=ResourceOptions(parent=self),
        )
        RoleBinding(
            f"{self._name}-role",
            metadata=metadata,
            role_ref={"api_group": "rbac.authorization.k8s.io", "kind": "Role", "name": role.metadata.name},
            subjects=[
                {"kind": "ServiceAccount", "name": account.metadata.name, "namespace": self._args.cache.namespace}
            ],
            opts=ResourceOptions(parent=self),
        )
        return account

    def _job(self, account: ServiceAccount, script: ConfigMap, access: list[Resource]) -> Job:
        return Job(
            f"{self._name}-job",
            metadata={
                "name": self._prefix,
                "namespace": self._args.cache.namespace,
                # A failed Job is made anew by the next `pulumi up` instead of being waited for once more.
                "annotations": {"pulumi.com/replaceUnready": "true"},
            },
            spec=self._spec(account, script),
            opts=ResourceOptions(
                parent=self,
                depends_on=[*self._args.site.ready, *access],
                # Two Jobs at once would be two writers.
                delete_before_replace=True,
                custom_timeouts=CustomTimeouts(create=f"{TIMEOUT_HOURS}h"),
            ),
        )

    def _spec(self, account: ServiceAccount, script: ConfigMap) -> JobSpecArgsDict:
        # Typed piece by piece: mypy takes minutes over one nested literal.
        drained: PodFailurePolicyRuleArgsDict = {
            "action": "Ignore",
            "on_pod_conditions": [{"type": "DisruptionTarget", "status": "True"}],
        }
        template: PodTemplateSpecArgsDict = {
            "metadata": {"annotations": {payloads.DIGEST_ANNOTATION: payloads.digest(self._move.files)}},
            "spec": self._pod(account, script),
        }
        return {
            # The script itself tries again what may pass; a pod that failed shows its reason at once.
            "backoff_limit": 0,
            "active_deadline_seconds": TIMEOUT_HOURS * 3600 - 300,
            "pod_failure_policy": {"rules": [drained]},
            "template": template,
        }

    def _pod(self, account: ServiceAccount, script: ConfigMap) -> PodSpecArgsDict:
        plan, cache = self._args.plan, self._args.cache
        scratch = {"emptyDir": {"sizeLimit": SCRATCH}}
        progress = staging_pod.variables(
            {"STAGE_PROGRESS_CONFIGMAP": self.progress, "STAGE_PROGRESS_NAMESPACE": cache.namespace}
        )
        asked = self._args.secrets.of(hub=self._move.hub, s3=self._move.s3 and cache.bucket is None)
        secrets = staging_pod.secret_variables(
            f"{self._name}-secrets", asked, f"{self._prefix}-secrets", cache.namespace, self
        )
        volume = cast("Any", {"name": "weights", **(cache.weights if self._move.target is None else scratch)})
        return {
            "restart_policy": "Never",
            "service_account_name": account.metadata.name,
            "enable_service_links": False,
            "node_selector": dict(plan.placement.cpu_labels),
            "security_context": {"seccomp_profile": {"type": "RuntimeDefault"}},
            "containers": [staging_pod.container(plan, self._move, [*progress, *secrets], RESOURCES)],
            "volumes": [volume, *staging_pod.volumes(script)],
        }


def move(plan: Plan, cache: WeightCache) -> Move:
    """From the source straight into the cache, or into the stack's own bucket."""
    source = plan.settings.weights.source
    hub = isinstance(source, HubSource)
    through = cache.bucket_url if cache.bucket is not None else None
    origin: Input[str] = "hub" if isinstance(source, HubSource) else source.url
    return Move(source=origin, target=through, hub=hub, s3=through is not None or not hub)
