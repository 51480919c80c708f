"""The containers of a gang as the program emits them, with what Kubernetes and the operator put into them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pulumi import Output

from components.gang import Manifest, Mounts, container
from components.weight_cache import WeightCache
from planner.plan import Plan

LEADER_ADDRESS = "kimi-k25-0.kimi-k25.kimi-k25"


def containers(plan: Plan) -> list[Manifest]:
    """The container of each pod, the leader's first."""
    assert plan.serving is not None
    cache = WeightCache(
        namespace=Output.from_input("n"), weights={}, compiled={}, bucket=None, bucket_url=None, parts=()
    )
    mounts = Mounts(cache=cache, payload="payload", api_key_secret="key")
    return [container(plan, plan.serving, mounts, leader=index == 0) for index in range(plan.serving.nodes)]


def operator_variables(index: int, size: int, leader: str = LEADER_ADDRESS) -> dict[str, str]:
    """What the LeaderWorkerSet operator adds to a pod's environment."""
    return {"LWS_LEADER_ADDRESS": leader, "LWS_GROUP_SIZE": str(size), "LWS_WORKER_INDEX": str(index)}


def command_line(emitted: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Command and arguments with each `$(NAME)` of the environment replaced, as the kubelet does."""
    words = [*emitted["command"], *emitted["args"]]
    return [re.sub(r"\$\((\w+)\)", lambda match: environment.get(match[1], match[0]), word) for word in words]
