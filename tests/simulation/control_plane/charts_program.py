"""A Pulumi program that installs the charts of `releases.json` beside it. The engine runs it."""

from __future__ import annotations

import json
from pathlib import Path

from pulumi import ResourceOptions
from pulumi_kubernetes import Provider
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs

provider = Provider("cluster", kubeconfig=Path("kubeconfig").read_text())
for release in json.loads(Path("releases.json").read_text()):
    arguments = ReleaseArgs(
        chart=release["chart"], namespace=release["namespace"], values=release["values"], timeout=30
    )
    Release(release["name"], arguments, opts=ResourceOptions(provider=provider))
