"""What the stack tells its user: the account it stands in, how to reach the model, what it costs, how it fits."""

from __future__ import annotations

import json

import pulumi
from planner.report import summary
from pulumi import Output

from components.cluster import Cluster
from components.serving import Serving
from planner.plan import Plan

PAUSED = "paused: gpuNodes.count is 0; `pulumi config set --path deployment.gpuNodes.count 2 && pulumi up` resumes it"


def export(plan: Plan, cluster: Cluster, serving: Serving | None) -> None:
    """Export the stack's outputs. Nothing secret is among them."""
    pulumi.export("account", cluster.account_identity)
    pulumi.export("kubeconfig", cluster.kubeconfig)
    pulumi.export("model", plan.model.repository)
    for key, value in summary(plan).items():
        pulumi.export(key, value)
    if serving is None:
        pulumi.export("endpoint", PAUSED)
        return
    pulumi.export(
        "endpoint", Output.format("http://{0}.{1}.svc:{2}/v1", serving.service, serving.namespace, serving.port)
    )
    pulumi.export("connect", forward_command(serving))
    pulumi.export("curl", curl_command(plan.model.repository, serving.port))


def forward_command(serving: Serving) -> Output[str]:
    """Makes the model's API answer on this machine, through the Kubernetes API."""
    return Output.format(
        "kubectl --kubeconfig <(pulumi stack output kubeconfig) --namespace {0} port-forward service/{1} {2}",
        serving.namespace,
        serving.service,
        serving.port,
    )


def curl_command(model: str, port: int) -> str:
    """A first question, once `connect` runs in another shell; the key is read from the stack's configuration."""
    question = {"model": model, "messages": [{"role": "user", "content": "Say hello."}]}
    return (
        f"curl http://127.0.0.1:{port}/v1/chat/completions"
        ' --header "Authorization: Bearer $(pulumi config get apiKey)" --header "Content-Type: application/json"'
        f" --data '{json.dumps(question)}'"
    )
