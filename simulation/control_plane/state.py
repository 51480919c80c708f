"""The record of one local control plane: which cluster it is, on which ports, as which processes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from simulation import paths
from simulation.control_plane.api import Api
from simulation.control_plane.errors import ControlPlaneError
from simulation.control_plane.processes import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What has to be known to find, stop and resume the control plane."""

    cluster: str
    kubernetes_version: str
    """Minor version as EKS names it, for example "1.35"."""
    ports: dict[str, int]
    processes: dict[str, Identity]
    """By program name, in the order in which they were started."""

    @property
    def endpoint(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"


def certificates() -> Path:
    """The folder of keys and certificates."""
    return paths.control_plane() / "certificates"


def log(program: str) -> Path:
    """The log of one program."""
    return paths.control_plane() / "logs" / f"{program}.log"


def load() -> State | None:
    """The recorded control plane, running or not; None if there is none."""
    try:
        kept = json.loads(_file().read_text())
    except FileNotFoundError:
        return None
    processes = {name: Identity(**identity) for name, identity in kept.pop("processes").items()}
    return State(**kept, processes=processes)


def save(state: State) -> None:
    """Writes the record, whole or not at all."""
    fresh = _file().with_suffix(".new")
    fresh.write_text(json.dumps(asdict(state), indent=2))
    fresh.replace(_file())


def connect(identity: str = "admin") -> Api:
    """A client of the running control plane. Raises ControlPlaneError if there is none."""
    state = load()
    if state is None or not state.processes or not all(one.is_alive for one in state.processes.values()):
        raise ControlPlaneError(
            f"No local control plane runs for {paths.home()}. "
            "`make up` starts it, or resumes it after a restart of the machine."
        )
    return Api(state.ports["kube-apiserver"], certificates(), identity)


def _file() -> Path:
    return paths.control_plane() / "state.json"
