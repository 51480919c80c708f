"""What the stack tells its user agrees with what it made."""

from __future__ import annotations

import shlex

from tests.components.graph import ACCOUNT, Graph


def test_the_commands_name_the_service_that_exists(graph: Graph) -> None:
    service = graph.one("serving-api").inputs
    (port,) = service["spec"]["ports"]
    words = shlex.split(graph.outputs["connect"].replace("<(pulumi stack output kubeconfig)", "KUBECONFIG"))
    assert words[words.index("--namespace") + 1] == service["metadata"]["namespace"] == "kimi-k25"
    assert words[-2:] == [f"service/{service['metadata']['name']}", f"{port['port']:.0f}"]
    endpoint = f"http://{service['metadata']['name']}.kimi-k25.svc:{port['port']:.0f}/v1"
    assert graph.outputs["endpoint"] == endpoint


def test_the_first_question_names_the_served_model_and_carries_the_key(graph: Graph) -> None:
    curl = graph.outputs["curl"]
    assert '"model": "moonshotai/Kimi-K2.5"' in curl
    assert "Authorization: Bearer $(pulumi config get apiKey)" in curl
    assert "http://127.0.0.1:8000/v1/chat/completions" in curl


def test_the_account_in_which_it_all_stands_is_named(graph: Graph) -> None:
    assert graph.outputs["account"] == ACCOUNT
