"""The Helm charts that the stack installs, pinned, and the one way in which they become releases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulumi import ResourceOptions
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from planner.settings import Chart

TIMEOUT_SECONDS = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedChart:
    """A chart at the version that its values were read from; `image_key` is the path of its image repository."""

    name: str
    version: str
    namespace: str
    image_key: tuple[str, ...]
    repository: str | None = None
    reference: str | None = None


NVIDIA_DEVICE_PLUGIN = PinnedChart(
    name="nvidia-device-plugin",
    version="0.20.0",
    namespace="kube-system",
    repository="https://nvidia.github.io/k8s-device-plugin",
    image_key=("image", "repository"),
)
EFA_DEVICE_PLUGIN = PinnedChart(
    name="aws-efa-k8s-device-plugin",
    version="v0.5.30",
    namespace="kube-system",
    repository="https://aws.github.io/eks-charts",
    image_key=("image", "repository"),
)
LEADER_WORKER_SET = PinnedChart(
    name="lws",
    version="0.10.0",
    namespace="lws-system",
    reference="oci://registry.k8s.io/lws/charts/lws",
    image_key=("image", "manager", "repository"),
)


def release(name: str, pinned: PinnedChart, chosen: Chart, values: dict[str, Any], opts: ResourceOptions) -> Release:
    """A Helm release of `pinned`, or of what the stack file puts in its place (a folder, a mirror, an image)."""
    chart = chosen.chart or pinned.reference or pinned.name
    is_folder = Path(chart).is_dir()
    repository = chosen.repository or (pinned.repository if chosen.chart is None else None)
    return Release(
        name,
        name=pinned.name,
        chart=chart,
        version=None if is_folder else chosen.version or pinned.version,
        namespace=pinned.namespace,
        create_namespace=pinned.namespace != "kube-system",
        repository_opts=RepositoryOptsArgs(repo=repository) if repository else None,
        values=with_image(values, pinned.image_key, chosen.image),
        timeout=TIMEOUT_SECONDS,
        opts=opts,
    )


def with_image(values: dict[str, Any], key: tuple[str, ...], image: str | None) -> dict[str, Any]:
    """`values` with the image repository at the path `key` set to `image`, where one is given."""
    if image is None:
        return values
    head, *rest = key
    inner = with_image(values.get(head, {}), tuple(rest), image) if rest else image
    return {**values, head: inner}
