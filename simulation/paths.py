"""Where the stand-in keeps what it makes. Nothing outside these folders is written."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The repository's root: the folder of Pulumi.yaml."""


def home() -> Path:
    """The state of one simulated account and cluster: `SIMULATION_HOME`, else `.simulation/` beside Pulumi.yaml."""
    return Path(os.environ.get("SIMULATION_HOME") or ROOT / ".simulation").absolute()


def backend() -> Path:
    """The Pulumi file backend, the only one that the simulated AWS provider serves."""
    return home() / "backend"


def aws_store() -> Path:
    """The SQLite file that holds the simulated AWS resources."""
    return home() / "aws.sqlite"


def control_plane() -> Path:
    """Certificates, logs, etcd data and process ids of the local control plane."""
    return home() / "control-plane"


def existing_kubeconfig() -> Path:
    """The kubeconfig of the cluster that exists already; its context is `existing`."""
    return home() / "kubeconfig"


def tools() -> Path:
    """Built tools by version, shared by every clone: `$XDG_CACHE_HOME/vllm-multinode/tools`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "vllm-multinode" / "tools"
