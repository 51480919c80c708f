"""The default stack's graph, recorded once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.components.graph import Graph, record


@pytest.fixture(scope="session", autouse=True)
def _no_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The program looks for its context: not in the kubeconfig of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KUBECONFIG", str(tmp_path_factory.mktemp("kubeconfig") / "none"))
        yield


@pytest.fixture(scope="session")
def graph() -> Graph:
    """`Pulumi.dev.yaml` as it is committed, with an API key."""
    return record()
