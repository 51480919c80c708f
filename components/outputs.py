"""What the stack tells its user: the account it stands in, how to reach the model, what it costs, how it fits."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pulumi
from pulumi import Output

from components.gpu_nodes import GpuNodes
from components.serving import Serving
from components.site import Site
from planner.plan import Plan
from planner.platform_settings import ExistingPlatform
from planner.report import summary
from planner.settings import Deployment

PAUSED = "paused: gpuNodes.count is 0; `pulumi config set --path deployment.gpuNodes.count 2 && pulumi up` resumes it"

STOP = (
    "`pulumi config set --path deployment.gpuNodes.count 0 && pulumi up` stops them and keeps the weights; "
    "`pulumi destroy` removes everything"
)


def export(plan: Plan, site: Site, serving: Serving | None, fabric: Output[dict[str, Any]] | None) -> None:
    """Export the stack's outputs. Nothing secret is among them."""
    pulumi.export("fabric", fabric or {"verdict": "not tested"})
    if site.eks is not None:
        pulumi.export("account", site.eks.cluster.account_identity)
        pulumi.export("kubeconfig", site.kubeconfig)
    for key, value in summary(plan).items():
        pulumi.export(key, value)
    if serving is None:
        pulumi.export("endpoint", PAUSED)
        return
    namespace = plan.settings.namespace
    pulumi.export("endpoint", f"http://{serving.service}.{namespace}.svc:{serving.port}/v1")
    pulumi.export("connect", connect_command(plan.settings, serving))
    pulumi.export("curl", curl_command(plan.model.repository, serving.port))


def announce(plan: Plan, gpu_nodes: GpuNodes) -> None:
    """Once GPU nodes run they cost: say so, and what stops them, however the rest of this `up` ends."""
    part = plan.price.part("gpuNodes")
    if part is None or pulumi.runtime.is_dry_run():
        return
    usd = "at an unknown price" if part.per_hour is None else f"{part.per_hour:.2f} USD per hour"
    hardware = f"{plan.settings.gpu_nodes.count} x {plan.instance.name}"
    gpu_nodes.identity.apply(lambda _: pulumi.log.warn(f"{hardware} are running: {usd}. {STOP}", gpu_nodes))


def connect_command(settings: Deployment, serving: Serving) -> str:
    """Makes the model's API answer on this machine, through the Kubernetes API."""
    platform, where = settings.platform, "--kubeconfig <(pulumi stack output kubeconfig)"
    if isinstance(platform, ExistingPlatform):
        file = f"--kubeconfig {_quoted(platform.kubeconfig)} " if platform.kubeconfig else ""
        where = f"{file}--context {shlex.quote(platform.context)}"
    return f"kubectl {where} --namespace {settings.namespace} port-forward service/{serving.service} {serving.port}"


def _quoted(path: str) -> str:
    """For a shell, which is to expand the home folder."""
    return f"~/{shlex.quote(path[2:])}" if path.startswith("~/") else shlex.quote(path)


def curl_command(model: str, port: int) -> str:
    """A first question, once `connect` runs in another shell; the key is read from the stack's configuration."""
    question = {"model": model, "messages": [{"role": "user", "content": "Say hello."}]}
    return (
        f"curl http://127.0.0.1:{port}/v1/chat/completions"
        ' --header "Authorization: Bearer $(pulumi config get apiKey)" --header "Content-Type: application/json"'
        f" --data '{json.dumps(question)}'"
    )
