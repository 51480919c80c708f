"""A simulated account in a folder of its own, and a cluster that writes down what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from simulation import paths
from simulation.aws.account import Account
from simulation.aws.safety import mark_backend
from simulation.aws.store import Store
from simulation.control_plane import ClusterAccess, NodeGroupSpec


@dataclass
class RecordedCluster:
    """A Kubernetes side that remembers calls; `left` are objects that nobody has deleted."""

    calls: list[tuple[object, ...]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def start(self, cluster: str, kubernetes_version: str) -> ClusterAccess:
        self.calls.append(("start", cluster, kubernetes_version))
        return ClusterAccess(endpoint="https://127.0.0.1:6443", certificate_authority="Q0E=")

    def leftovers(self) -> list[str]:
        return self.left

    def stop(self) -> None:
        self.calls.append(("stop",))

    def install_addon(self, name: str) -> None:
        self.calls.append(("install_addon", name))

    def remove_addon(self, name: str) -> None:
        self.calls.append(("remove_addon", name))

    def scale_nodes(self, spec: NodeGroupSpec) -> None:
        self.calls.append(("scale_nodes", spec))

    def remove_nodes(self, name: str) -> None:
        self.calls.append(("remove_nodes", name))


@pytest.fixture(autouse=True)
def simulation_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A marked backend that holds the stack `demo/dev`, as Pulumi's environment names it."""
    monkeypatch.setenv("SIMULATION_HOME", str(tmp_path))
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{paths.backend()}")
    for name in ("SIMULATE_FAULTS", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    mark_backend(paths.backend())
    stacks = paths.backend() / ".pulumi" / "stacks" / "demo"
    stacks.mkdir(parents=True)
    (stacks / "dev.json").write_text("{}")
    return tmp_path


@pytest.fixture
def cluster() -> RecordedCluster:
    return RecordedCluster()


@pytest.fixture
def account(cluster: RecordedCluster) -> Account:
    return Account(store=Store(paths.aws_store()), cluster=cluster)
