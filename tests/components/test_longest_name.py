"""The longest name of a stack: everything that is made of it still fits what Kubernetes allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from planner.checks import LONGEST_NAME
from tests.components.graph import Graph, record

LIMIT = 63
REVISION_HASH = 10
"""Digits of a StatefulSet's revision (kubernetes: pkg/controller/history, HashControllerRevision)."""

REVISION = "4d01dfe0332d63057c186e0b262165819efb6611"


@pytest.fixture(scope="module", params=["fsx", "nvme"])
def longest(request: pytest.FixtureRequest) -> Graph:
    def change(deployment: dict[str, Any]) -> None:
        deployment["name"] = "k" * LONGEST_NAME
        deployment["gpuNodes"]["count"] = 16
        deployment["weights"] = {"kind": request.param, "revision": REVISION, "capacityGib": 9600}
        if request.param == "nvme":
            del deployment["weights"]["capacityGib"]

    return record(change)


def labels(value: object) -> Iterator[str]:
    """The values of all labels and selectors at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("labels", "matchLabels", "selector", "nodeSelector") and isinstance(inner, dict):
                yield from (text for text in inner.values() if isinstance(text, str))
            yield from labels(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from labels(inner)


def test_labels_and_names_that_become_labels_fit(longest: Graph) -> None:
    for resource in longest.resources:
        if resource.type.startswith("kubernetes:"):
            for text in labels(dict(resource.inputs)):
                assert len(text) <= LIMIT, resource.name
    for kind in ("Service", "Namespace", "Job"):
        for resource in longest.all(kind):
            if "metadata" in resource.inputs:
                assert len(resource.inputs["metadata"]["name"]) <= LIMIT, resource.name


def test_pods_of_an_indexed_job_have_a_host_name(longest: Graph) -> None:
    job = longest.one("fabric-gate-test", "Job").inputs
    assert len(f"{job['metadata']['name']}-{int(job['spec']['completions']) - 1}") <= LIMIT


def test_the_gangs_workers_can_be_labelled_with_their_revision(longest: Graph) -> None:
    gang = longest.one("serving-gang", "LeaderWorkerSet").inputs["metadata"]["name"]
    assert len(f"{gang}-0-{'9' * REVISION_HASH}") <= LIMIT
