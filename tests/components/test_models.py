"""The whole program with each of the seven models: its files, its flags, its node group."""

from __future__ import annotations

from typing import Any

import pytest

from planner.alternatives import LIGHT, alternatives
from planner.catalogue import CATALOGUE
from tests.components.graph import record

SEVEN = (
    "llama-3.1-8b-instruct",
    "qwen3.5-35b-a3b",
    "qwen3-235b-a22b-instruct-2507",
    "minimax-m2.5",
    "qwen3.5-397b-a17b",
    "glm-5",
    "kimi-k2.5",
)


@pytest.mark.parametrize("name", SEVEN)
def test_each_model_previews_on_the_smallest_shape_it_fits(name: str) -> None:
    model = CATALOGUE[name]
    smallest = next(item for item in alternatives(model, LIGHT) if item.instance.efa)

    def change(deployment: dict[str, Any]) -> None:
        deployment["model"] = name
        deployment["gpuNodes"] = {"instanceType": smallest.instance.name, "count": smallest.nodes}
        deployment["serving"]["maxModelLen"] = LIGHT.max_model_len

    graph = record(change, {"apiKey": "a-test-key", "huggingFaceToken": "a-test-token"}, preview=True)
    leader = next(item for item in graph.resources if item.type.endswith(":LeaderWorkerSet"))
    manifest = str(leader.inputs)
    assert all(flag in manifest for flag in model.flags)
    assert model.repository in str([item.inputs for item in graph.resources if item.type.endswith(":Job")])
