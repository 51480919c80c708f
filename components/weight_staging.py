"""The Job that fills the weight cache before a GPU is paid for.

Owns the Job, the script it runs, the service account that may patch one named ConfigMap with the progress, and the
Hub token, which no other pod sees. The script itself is `payloads/stage_weights.py`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pulumi import ComponentResource, CustomTimeouts, Input, Output, Resource, ResourceOptions
from pulumi_kubernetes.batch.v1 import Job, JobSpecArgsDict, PodFailurePolicyRuleArgsDict
from pulumi_kubernetes.core.v1 import (
    ConfigMap,
    EnvVarArgsDict,
    PodSpecArgsDict,
    PodTemplateSpecArgsDict,
    Secret,
    SecretKeySelectorArgsDict,
    ServiceAccount,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict
from pulumi_kubernetes.rbac.v1 import Role, RoleBinding

from components.system_nodes import ROLE_LABEL
from components.weight_cache import WeightCache
from planner.plan import Plan
from planner.vllm import WEIGHTS_MOUNT

PAYLOADS = Path(__file__).parent.parent / "payloads"
FILES = (
    "__init__.py",
    "cache_directory.py",
    "check_cache.py",
    "download.py",
    "hub_snapshot.py",
    "model_files.py",
    "requirements-staging-s3.txt",
    "requirements-staging.txt",
    "s3_bucket.py",
    "s3_source.py",
    "s3_target.py",
    "stage_weights.py",
    "staging_progress.py",
    "staging_settings.py",
    "verification.py",
    "writer_lock.py",
)
"""What the ConfigMap holds: the programs `stage_weights` and `check_cache`, and the lock files of their wheels."""

CPU = "8"
MEMORY = "16Gi"
"""hf-xet was seen to use 7 cores and 6.6 GB on a 61 GB repository (unslothai/unsloth-zoo#972)."""

TIMEOUT_HOURS = 4

INSTALL_AND_RUN = (
    "python -m pip install --retries 10 --quiet --no-cache-dir --disable-pip-version-check --require-hashes"
    " --only-binary=:all: --target /packages -r /payload/payloads/requirements-staging.txt"
    " && exec python -m payloads.stage_weights"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightStagingArgs:
    """`hub_token` is None where the model needs none; `nodes` must be there for the Job to run at all."""

    plan: Plan
    cache: WeightCache
    hub_token: Output[str] | None
    nodes: Resource


class WeightStaging(ComponentResource):
    """One writer that downloads, verifies and publishes one pinned revision."""

    job: Job
    progress: Output[str]
    """Name of the ConfigMap that shows the progress while the Job runs."""

    def __init__(self, name: str, args: WeightStagingArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:WeightStaging", name, None, opts)
        self._name, self._args = name, args
        self._prefix = f"{args.plan.settings.name}-staging"
        self.progress = self._config_map("progress", None).metadata.name
        account = self._service_account()
        script = self._config_map("payload", {file: (PAYLOADS / file).read_text() for file in FILES})
        self.job = self._job(account, script)
        self.register_outputs({"job": self.job.metadata.name, "progress": self.progress})

    def _config_map(self, role: str, data: dict[str, str] | None) -> ConfigMap:
        return ConfigMap(
            f"{self._name}-{role}",
            metadata={"name": f"{self._prefix}-{role}", "namespace": self._args.cache.namespace},
            data=data,
            opts=ResourceOptions(parent=self),
        )

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

    def _job(self, account: ServiceAccount, script: ConfigMap) -> Job:
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
                depends_on=[self._args.nodes],
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
            "metadata": {"annotations": {"vllm-multinode/payload": payload_digest()}},
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
        resources: dict[str, Input[str]] = {"cpu": CPU, "memory": MEMORY}
        return {
            "restart_policy": "Never",
            "service_account_name": account.metadata.name,
            "enable_service_links": False,
            "node_selector": {ROLE_LABEL: "system"},
            "security_context": {"seccomp_profile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "stage",
                    "image": self._args.plan.settings.staging.image,
                    "command": ["sh", "-c", INSTALL_AND_RUN],
                    "env": self._environment(),
                    "resources": {"requests": resources, "limits": resources},
                    # Where the script could not write its verdict (pip failed, memory ran out), the log's end is shown.
                    "termination_message_policy": "FallbackToLogsOnError",
                    "security_context": {
                        "allow_privilege_escalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "volume_mounts": [
                        {"name": "weights", "mount_path": WEIGHTS_MOUNT},
                        {"name": "payload", "mount_path": "/payload/payloads", "read_only": True},
                        {"name": "packages", "mount_path": "/packages"},
                    ],
                }
            ],
            "volumes": [
                {"name": "weights", "persistent_volume_claim": {"claim_name": self._args.cache.claim_name}},
                {"name": "payload", "config_map": {"name": script.metadata.name}},
                {"name": "packages", "empty_dir": {}},
            ],
        }

    def _environment(self) -> list[EnvVarArgsDict]:
        plan = self._args.plan
        fixed: dict[str, Input[str]] = {
            "PYTHONPATH": "/payload:/packages",
            "HF_XET_HIGH_PERFORMANCE": "1",
            "STAGE_REPOSITORY": plan.model.repository,
            "STAGE_REVISION": plan.settings.weights.revision,
            "STAGE_DIRECTORY": WEIGHTS_MOUNT,
            "STAGE_PROGRESS_CONFIGMAP": self.progress,
            "STAGE_PROGRESS_NAMESPACE": self._args.cache.namespace,
        }
        if plan.settings.staging.package_index:
            fixed["PIP_INDEX_URL"] = plan.settings.staging.package_index
        if plan.settings.staging.hub_endpoint:
            fixed["HF_ENDPOINT"] = plan.settings.staging.hub_endpoint
        variables: list[EnvVarArgsDict] = [{"name": key, "value": value} for key, value in fixed.items()]
        if self._args.hub_token is not None:
            secret = self._hub_secret(self._args.hub_token)
            reference: SecretKeySelectorArgsDict = {"name": secret.metadata.name, "key": "token"}
            variables.append({"name": "HF_TOKEN", "value_from": {"secret_key_ref": reference}})
        return variables

    def _hub_secret(self, token: Output[str]) -> Secret:
        return Secret(
            f"{self._name}-hub-token",
            metadata={"name": f"{self._prefix}-hub-token", "namespace": self._args.cache.namespace},
            string_data={"token": token},
            opts=ResourceOptions(parent=self),
        )


def payload_digest() -> str:
    """Changes with the script: a pod template names its ConfigMap only, and a changed script must run again."""
    return hashlib.sha256(b"".join((PAYLOADS / file).read_bytes() for file in FILES)).hexdigest()[:12]
