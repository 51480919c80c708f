"""The rules about where the stack runs and over which fabric: that the hardware, the image and the platform agree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner import defaults
from planner.fabric import default_thresholds, fabric_plan
from planner.hardware import GPU_TYPES
from planner.platform_settings import (
    EfaFabric,
    EksPlatform,
    ExistingPlatform,
    InfinibandFabric,
    NodeShape,
    NoFabric,
)
from planner.problems import Mend, Path, Problem
from planner.rules import Facts, Rule, path, rule

FABRIC = path("fabric.kind")
INSTANCE = path("gpuNodes.instanceType")
RESOURCE = path("fabric.resource")
WARN, FAIL = path("fabric.warnBelow"), path("fabric.failBelow")


def image_holds_efa(facts: Facts) -> Iterator[Problem]:
    """The stock image has no EFA user space: NCCL would fail to start (vllm-project/vllm#55635)."""
    image = facts.settings.image
    if facts.settings.fabric.kind == "efa" and re.search(r"(^|/)vllm/vllm-openai(?=[:@])", image):
        place = path("serving.image")
        allowed = "with fabric efa, an image that holds the EFA user space, as AWS's vLLM container does"
        yield Problem(path=place, given=image, allowed=allowed, mends=(Mend(place, defaults.IMAGE),))


def instance_has_efa(facts: Facts) -> Iterator[Problem]:
    """Without an EFA interface there is nothing for `fabric: efa` to run on."""
    if not isinstance(facts.settings.fabric, EfaFabric) or facts.instance.efa:
        return
    names = ", ".join(name for name, kind in GPU_TYPES.items() if kind.efa)
    alone = (Mend(FABRIC, "none"),) if facts.settings.gpu_nodes.count <= 1 else ()
    if isinstance(facts.settings.gpu_nodes.instance_type, NodeShape):
        place: Path = path("gpuNodes.instanceType.efa")
        allowed = (
            f"with fabric efa, how many EFA devices (vpc.amazonaws.com/efa) a node offers; or an instance type that "
            f"has them: {names}; or another fabric: infiniband, or none for one node"
        )
        mends = alone or (Mend(FABRIC, "infiniband"),)
        yield Problem(path=place, given=0, allowed=allowed, mends=mends)
    else:
        allowed = f"with fabric efa, a type with EFA: {names}; or fabric.kind none for one node"
        mends = (Mend(INSTANCE, "p5.48xlarge"), *alone)
        yield Problem(path=INSTANCE, given=facts.instance.name, allowed=allowed, mends=mends)


def fabric_joins_nodes(facts: Facts) -> Iterator[Problem]:
    """Over TCP two nodes serve at a fraction of their speed, which is what this program exists to prevent."""
    count = facts.settings.gpu_nodes.count
    if isinstance(facts.settings.fabric, NoFabric) and count > 1:
        other = "efa" if facts.instance.efa else "infiniband"
        allowed = f"efa or infiniband for {count} nodes; none is for one node"
        mends = (Mend(FABRIC, other), Mend(path("gpuNodes.count"), 1))
        yield Problem(path=FABRIC, given="none", allowed=allowed, mends=mends)


def fabric_is_of_platform(facts: Facts) -> Iterator[Problem]:
    """EC2 has EFA and no InfiniBand."""
    if isinstance(facts.settings.fabric, InfinibandFabric) and isinstance(facts.settings.platform, EksPlatform):
        mends = (Mend(path("fabric"), None),)
        yield Problem(path=FABRIC, given="infiniband", allowed="efa or none: EC2 has no InfiniBand", mends=mends)


def nodes_are_of_platform(facts: Facts) -> Iterator[Problem]:
    """EKS starts instance types; a mapping describes nodes that are there."""
    if isinstance(facts.settings.gpu_nodes.instance_type, NodeShape) and isinstance(
        facts.settings.platform, EksPlatform
    ):
        allowed = f"an instance type that EKS can start: {', '.join(GPU_TYPES)}"
        mends = (Mend(INSTANCE, None), Mend(INSTANCE, "p5.48xlarge"))
        yield Problem(path=INSTANCE, given="a mapping", allowed=allowed, mends=mends)


def installed_plugin_offers_resource(facts: Facts) -> Iterator[Problem]:
    """The RDMA shared device plugin takes no hyphen in a name, and offers names under `rdma/` by default."""
    fabric = facts.settings.fabric
    if (
        isinstance(fabric, InfinibandFabric)
        and fabric.install
        and not re.fullmatch(r"[a-z0-9.-]+/\w+", fabric.resource)
    ):
        prefix, _, name = fabric.resource.partition("/")
        mended = f"{prefix}/{re.sub(r'[^A-Za-z0-9_]', '_', name)}"
        yield Problem(
            path=RESOURCE,
            given=fabric.resource,
            allowed="letters, digits and _ after the /: the RDMA shared device plugin takes nothing else. A resource "
            "that another plugin of the cluster offers: fabric.install false",
            mends=(Mend(RESOURCE, mended), Mend(path("fabric.install"), False)),
        )


def thresholds_in_order(facts: Facts) -> Iterator[Problem]:
    """What fails is worse than what is warned of."""
    fabric = facts.settings.fabric
    planned = fabric_plan(facts.settings, facts.instance)
    if planned.warn_below < planned.fail_below:
        place = WARN if fabric.warn_below is not None else FAIL
        warn, fail = default_thresholds(fabric, facts.instance, facts.settings.gpu_nodes.count)
        written = tuple(
            where for where, value in ((WARN, fabric.warn_below), (FAIL, fabric.fail_below)) if value is not None
        )
        yield Problem(
            path=place,
            given=f"warnBelow {planned.warn_below:g}, failBelow {planned.fail_below:g}",
            allowed=f"warnBelow at least failBelow, in GB/s of bus bandwidth; by default here {warn:g} and {fail:g}",
            mends=tuple(Mend(where, None) for where in written),
        )


def tolerations_are_kubernetes_own(facts: Facts) -> Iterator[Problem]:
    """The API refuses a value where only the key's existence is asked for, when GPUs are paid for already."""
    platform = facts.settings.platform
    if not isinstance(platform, ExistingPlatform):
        return
    for index, item in enumerate(platform.gpu_node_tolerations):
        if item.operator == "Exists" and item.value:
            place: Path = ("platform", "gpuNodeTolerations", index)
            yield Problem(
                path=(*place, "operator"),
                given="Exists, and a value",
                allowed="Equal with a value, Exists without; left out it follows from the value",
                mends=(Mend((*place, "operator"), None),),
            )


PLATFORM_RULES: tuple[Rule, ...] = (
    rule(image_holds_efa, "serving.image", "fabric"),
    rule(instance_has_efa, "gpuNodes", "fabric"),
    rule(fabric_joins_nodes, "gpuNodes.count", "fabric"),
    rule(fabric_is_of_platform, "platform.kind", "fabric"),
    rule(nodes_are_of_platform, "platform.kind", "gpuNodes.instanceType"),
    rule(tolerations_are_kubernetes_own, "platform"),
    rule(installed_plugin_offers_resource, "fabric"),
    rule(thresholds_in_order, "fabric", "gpuNodes"),
)
