"""The default stack's graph, recorded once."""

from __future__ import annotations

import pytest

from tests.components.graph import Graph, record


@pytest.fixture(scope="session")
def graph() -> Graph:
    """`Pulumi.dev.yaml` as it is committed, with an API key."""
    return record()
