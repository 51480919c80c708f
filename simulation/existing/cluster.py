"""Starting and ending the existing cluster, and what a stack has left in it."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from simulation import control_plane, paths
from simulation.control_plane import state
from simulation.control_plane.access import access_to
from simulation.control_plane.errors import ControlPlaneError
from simulation.existing import nodes, plugins
from simulation.existing.nodes import Shape

CONTEXT = "existing"
"""The name of the cluster, and of its context in the kubeconfig."""

KUBERNETES = "1.35"


def enter_home() -> None:
    """Has this process work on the existing cluster's home, a folder of the simulation's own."""
    home = paths.home()
    os.environ["SIMULATION_HOME"] = str(home if home.name == CONTEXT else home / CONTEXT)


def start(shape: Shape | None = None) -> None:
    """Starts a fresh cluster of that shape. Raises ControlPlaneError if one is there; nothing is left if it fails."""
    if state.load() is not None:
        raise ControlPlaneError(
            "The existing cluster is there already. End it first: python -m simulation.existing stop"
        )
    shape = shape or Shape()
    unknown = [name for name in shape.plugins if name not in plugins.CONTAINERS]
    if unknown:
        raise ControlPlaneError(f"There is no plugin {unknown[0]!r}; there are {', '.join(plugins.CONTAINERS)}.")
    try:
        control_plane.start(CONTEXT, KUBERNETES)
        api = state.connect()
        nodes.make(api, shape)
        plugins.install(api, shape.plugins)
        _write_kubeconfig()
    except BaseException:
        stop()
        raise


def ensure() -> bool:
    """Resumes the cluster, or starts one of the usual shape; True if it has made it."""
    if control_plane.resume():
        return False
    start()
    return True


def left() -> list[str]:
    """What the cluster holds that it did not hold at first, as "Kind namespace/name"; Helm's objects too."""
    return control_plane.leftovers(cluster_stays=True)


def report() -> str:
    """What the stack has left in the cluster, in words."""
    try:
        found = left()
    except ControlPlaneError:
        return "The existing cluster does not run; what the stack left in it is not known."
    if not found:
        return "The stack has left nothing in the existing cluster."
    return "\n".join(["The stack has left in the existing cluster:", *(f"  {one}" for one in found)])


def stop() -> None:
    """Ends the cluster and forgets it."""
    control_plane.stop()
    paths.existing_kubeconfig().unlink(missing_ok=True)


def _write_kubeconfig() -> None:
    """One file that holds all, as cluster owners hand them out."""
    kept = state.load()
    if kept is None:
        raise ControlPlaneError("The control plane of the existing cluster has gone.")
    access = access_to(kept)
    stem = state.certificates() / "admin"
    user = {"client-certificate-data": _base64(stem, ".crt"), "client-key-data": _base64(stem, ".key")}
    cluster = {"server": access.endpoint, "certificate-authority-data": access.certificate_authority}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": "owner", "user": user}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": "owner"}}],
        "current-context": CONTEXT,
    }
    file = paths.existing_kubeconfig()
    file.touch(mode=0o600)
    file.write_text(json.dumps(config, indent=2))


def _base64(stem: Path, ending: str) -> str:
    return base64.b64encode(stem.with_suffix(ending).read_bytes()).decode()
