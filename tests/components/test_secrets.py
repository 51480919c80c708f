"""Secrets stay in Secrets."""

from __future__ import annotations

import pulumi
import pytest

from tests.components.graph import Graph, record

PLANTED = {
    "apiKey": "planted-api-key-4711",
    "huggingFaceToken": "hf_planted4712",
    "s3AccessKeyId": "AKIAPLANTED4713",
    "s3SecretAccessKey": "planted-secret-4714",
}


def test_planted_secrets_are_in_secret_objects_alone() -> None:
    graph = record(secrets=PLANTED)
    for resource in graph.resources:
        for value in PLANTED.values():
            if value in str(resource.inputs):
                assert resource.type.endswith(":Secret"), resource.name


def test_planted_secrets_reach_their_secret_objects() -> None:
    graph = record(secrets=PLANTED)
    found = {secret.name: str(secret.inputs["stringData"]) for secret in graph.all("Secret")}
    assert PLANTED["apiKey"] in found["serving-api-key"]
    assert PLANTED["huggingFaceToken"] in found["staging-secrets"]


@pytest.mark.parametrize("blank", ["", "   "])
def test_a_blank_api_key_is_a_missing_one(blank: str) -> None:
    with pytest.raises(pulumi.RunError, match="apiKey"):
        record(secrets={"apiKey": blank})


def test_outputs_hold_no_secret() -> None:
    graph = record(secrets=PLANTED)
    assert not [value for value in PLANTED.values() if value in str(graph.outputs)]


def test_secrets_are_registered_as_secrets(graph: Graph) -> None:
    assert graph.one("serving-api-key").secret_inputs == frozenset({"stringData"})
