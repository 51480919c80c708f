"""How clients reach the API server: the endpoint as the EKS API describes it, and kubeconfig files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from simulation import paths
from simulation.control_plane import certificates as authority
from simulation.control_plane.errors import ControlPlaneError
from simulation.control_plane.state import State, certificates, load

KUBECONFIG_OWNERS = ("admin", "kube-controller-manager", "kube-scheduler", "lws-manager", "kwok")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """What `eks describe-cluster` answers about reaching the API server."""

    endpoint: str
    """https://127.0.0.1:PORT"""
    certificate_authority: str
    """Base64 of the certificate authority's PEM."""


def access_to(state: State) -> ClusterAccess:
    """The access to a recorded control plane."""
    return ClusterAccess(endpoint=state.endpoint, certificate_authority=authority.authority(certificates()))


def kubeconfig() -> Path:
    """The administrator's kubeconfig. Raises ControlPlaneError if no control plane was started."""
    if load() is None:
        raise ControlPlaneError(f"No local control plane was started for {paths.home()}. `make up` starts it.")
    return kubeconfig_of("admin")


def kubeconfig_of(identity: str) -> Path:
    """Where the kubeconfig of one of KUBECONFIG_OWNERS lies."""
    return certificates() / f"{identity}.kubeconfig"


def write_kubeconfigs(state: State) -> None:
    """Writes the kubeconfig of every owner; JSON is YAML."""
    for identity in KUBECONFIG_OWNERS:
        cluster = {"server": state.endpoint, "certificate-authority": str(certificates() / "ca.crt")}
        stem = certificates() / identity
        user = {"client-certificate": f"{stem}.crt", "client-key": f"{stem}.key"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": state.cluster, "cluster": cluster}],
            "users": [{"name": identity, "user": user}],
            "contexts": [{"name": state.cluster, "context": {"cluster": state.cluster, "user": identity}}],
            "current-context": state.cluster,
        }
        kubeconfig_of(identity).write_text(json.dumps(config, indent=2))
