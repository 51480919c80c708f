"""The fabric test that must pass before anything is served.

Owns two Jobs: one on a CPU node that names GPU nodes which are missing or not whole, and one pod a GPU node that joins
all GPUs in an all-reduce; the ConfigMap with the verdict, their service accounts, and the priority by which the test
takes nodes from a gang that serves. The programs are `payloads/node_check.py` and `payloads/fabric_test.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pulumi import ComponentResource, CustomTimeouts, Input, Output, Resource, ResourceOptions
from pulumi_kubernetes.batch.v1 import Job
from pulumi_kubernetes.core.v1 import ConfigMap, Service, ServiceAccount
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from pulumi_kubernetes.scheduling.v1 import PriorityClass

from components import payloads
from components.gate_pods import NODES_ANNOTATION, check_pod, gate_pod
from planner.plan import Plan

TIMEOUT = "45m"
DEADLINE_SECONDS = 2400
CHECK_TIMEOUT = "20m"
PRIORITY = 1_000_000
"""Above the gang's 0: on replaced nodes the test comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricGateArgs:
    """`nodes`: what identifies the GPU nodes; the test runs again when it changes. `after`: nodes and plugins."""

    plan: Plan
    namespace: Output[str]
    nodes: Input[str]
    after: Sequence[Resource]


class FabricGate(ComponentResource):
    """Node check and fabric test; `verdict` is what the test wrote."""

    verdict: Output[dict[str, Any]]

    def __init__(self, name: str, args: FabricGateArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:FabricGate", name, None, opts)
        self._name, self._args, self._namespace = name, args, args.namespace
        self._prefix = f"{args.plan.settings.name}-fabric"
        checked = self._check()
        board = self._config_map("verdict", {})
        tested = self._test(board, checked)
        read = ConfigMap.get(
            f"{name}-read",
            # Its name is known to a preview that has not made it yet, its id is not: nothing is read that is not there.
            board.id,
            opts=ResourceOptions(parent=self, depends_on=[tested]),
        )
        self.verdict = read.data.apply(figures)
        self.register_outputs({"verdict": self.verdict})

    def _config_map(self, role: str, data: dict[str, str]) -> ConfigMap:
        return payloads.config_map(f"{self._name}-{role}", data, f"{self._prefix}-{role}", self._namespace, self)

    def _account(self, role: str) -> ServiceAccount:
        return ServiceAccount(
            f"{self._name}-{role}",
            metadata={"name": f"{self._prefix}-{role}", "namespace": self._namespace},
            opts=ResourceOptions(parent=self),
        )

    def _check(self) -> Job:
        account, script = self._account("check"), self._config_map("check", payloads.sources("node_check"))
        # A cluster's objects of several stacks must not meet: the name holds the namespace's.
        named = Output.concat(self._namespace, "-", self._prefix, "-nodes")
        role = ClusterRole(
            f"{self._name}-nodes",
            metadata={"name": named},
            rules=[{"api_groups": [""], "resources": ["nodes"], "verbs": ["list"]}],
            opts=ResourceOptions(parent=self),
        )
        bound = ClusterRoleBinding(
            f"{self._name}-nodes",
            metadata={"name": named},
            role_ref={"api_group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role.metadata.name},
            subjects=[{"kind": "ServiceAccount", "name": account.metadata.name, "namespace": self._namespace}],
            opts=ResourceOptions(parent=self),
        )
        pod = check_pod(self._args.plan, account.metadata.name, script.metadata.name)
        return self._job("check", pod, CHECK_TIMEOUT, [bound, *self._args.after])

    def _test(self, board: ConfigMap, checked: Job) -> Job:
        account, script = self._account("test"), self._config_map("test", payloads.sources("fabric_test"))
        role = Role(
            f"{self._name}-verdict",
            metadata={"name": f"{self._prefix}-verdict", "namespace": self._namespace},
            rules=[
                {
                    "api_groups": [""],
                    "resources": ["configmaps"],
                    "resource_names": [board.metadata.name],
                    "verbs": ["get", "patch"],
                }
            ],
            opts=ResourceOptions(parent=self),
        )
        bound = RoleBinding(
            f"{self._name}-verdict",
            metadata={"name": f"{self._prefix}-verdict", "namespace": self._namespace},
            role_ref={"api_group": "rbac.authorization.k8s.io", "kind": "Role", "name": role.metadata.name},
            subjects=[{"kind": "ServiceAccount", "name": account.metadata.name, "namespace": self._namespace}],
            opts=ResourceOptions(parent=self),
        )
        priority = PriorityClass(
            f"{self._name}-first",
            metadata={"name": Output.concat(self._namespace, "-", self._prefix)},
            value=PRIORITY,
            description="The fabric test takes nodes from a gang that serves.",
            opts=ResourceOptions(parent=self),
        )
        service = self._peers()
        pod = gate_pod(
            self._args.plan,
            account=account.metadata.name,
            script=script.metadata.name,
            board=board.metadata.name,
            namespace=self._namespace,
            priority=priority.metadata.name,
            job=f"{self._prefix}-test",
        )
        return self._job("test", pod, TIMEOUT, [bound, service, checked], self._args.plan.settings.gpu_nodes.count)

    def _peers(self) -> Service:
        """Names for the pods of the test, which find each other before any is ready."""
        job = f"{self._prefix}-test"
        return Service(
            f"{self._name}-peers",
            metadata={
                "name": job,
                "namespace": self._namespace,
                "annotations": {"pulumi.com/skipAwait": "true"},
            },
            spec={
                "cluster_ip": "None",
                "publish_not_ready_addresses": True,
                "selector": {"batch.kubernetes.io/job-name": job},
            },
            opts=ResourceOptions(parent=self),
        )

    def _job(
        self, role: str, pod: dict[str, Any], timeout: str, after: Sequence[Resource], pods: int | None = None
    ) -> Job:
        indexed = {"completions": pods, "parallelism": pods, "completionMode": "Indexed"} if pods else {}
        spec = {
            # A test that failed is no bad luck: its reason is shown at once, and the next `up` runs it again.
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE_SECONDS if pods else 1000,
            **indexed,
            "template": {"metadata": {"annotations": {NODES_ANNOTATION: self._args.nodes}}, "spec": pod},
        }
        return Job(
            f"{self._name}-{role}",
            metadata={
                "name": f"{self._prefix}-{role}",
                "namespace": self._namespace,
                "annotations": {"pulumi.com/replaceUnready": "true"},
            },
            spec=cast("Any", spec),
            opts=ResourceOptions(
                parent=self,
                depends_on=list(after),
                delete_before_replace=True,
                # The fabric is a matter of the nodes: another image on the same nodes needs no new proof.
                ignore_changes=["spec.template.spec.containers[0].image"],
                custom_timeouts=CustomTimeouts(create=timeout),
            ),
        )


def figures(data: Mapping[str, str] | None) -> dict[str, Any]:
    """The stack's output: bandwidth in GB/s, transport, devices a node, verdict; or that there is none."""
    try:
        found = json.loads((data or {})["verdict"])
        return {
            "verdict": found["verdict"],
            "busbw_gb_per_s": found["busbw_gb_per_s"],
            "transport": found["transport"],
            "nics": found["nics"],
        }
    except (KeyError, ValueError, TypeError):
        return {"verdict": "none: the test left no figures"}
