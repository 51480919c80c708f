"""Which nodes the stack's pods go to: labels and tolerations, in the spelling of a pod's specification."""

from __future__ import annotations

from dataclasses import dataclass

from planner.hardware import InstanceType
from planner.platform_settings import ExistingPlatform, Toleration
from planner.settings import Deployment

ROLE_LABEL = "vllm-multinode/role"
GPU_TAINT = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """`gpu_labels`, `cpu_labels`: node selectors. `gpu_tolerations`: what lets a pod onto the GPU nodes."""

    gpu_labels: dict[str, str]
    gpu_tolerations: tuple[dict[str, str], ...]
    cpu_labels: dict[str, str]


def placement(settings: Deployment, instance: InstanceType) -> Placement:
    """Labels of the stack's own node groups, or those that the stack file names."""
    platform = settings.platform
    if isinstance(platform, ExistingPlatform):
        return Placement(
            gpu_labels=dict(platform.gpu_node_labels),
            gpu_tolerations=tuple(map(_toleration, platform.gpu_node_tolerations)),
            cpu_labels=dict(platform.cpu_node_labels or {}),
        )
    return Placement(
        gpu_labels={"node.kubernetes.io/instance-type": instance.name},
        gpu_tolerations=({"key": GPU_TAINT, "operator": "Exists", "effect": "NoSchedule"},),
        cpu_labels={ROLE_LABEL: "system"},
    )


def _toleration(written: Toleration) -> dict[str, str]:
    operator = written.operator or ("Exists" if written.value is None else "Equal")
    return {**written.model_dump(exclude_none=True), "operator": operator}
