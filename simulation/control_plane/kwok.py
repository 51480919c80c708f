"""kwok: keeps the fake nodes Ready and brings scheduled pods to Running and Ready by its own stages.

It stands in for the kubelet's side of the API only. No container runs, no image is pulled, no probe is made,
no log exists; deletion does not wait for a grace period. How Jobs end is `node_agent`'s.
"""

from __future__ import annotations

from simulation import tools
from simulation.control_plane.access import kubeconfig_of
from simulation.control_plane.state import State

STAGES = (
    "node/fast/node-initialize",
    "node/heartbeat-with-lease/node-heartbeat-with-lease",
    "pod/fast/pod-ready",
    "pod/fast/pod-delete",
)
"""Without stage files kwok exits: it has none built in."""

NODE_ANNOTATION = ("kwok.x-k8s.io/node", "fake")
"""What marks a node as kwok's."""

POD_ADDRESSES = "10.0.128.1/17"


def flags(state: State) -> list[str]:
    """The flags of kwok."""
    stages = [f"--config={tools.resource(f'kwok/kustomize/stage/{stage}.yaml')}" for stage in STAGES]
    return [
        *stages,
        f"--kubeconfig={kubeconfig_of('kwok')}",
        f"--manage-nodes-with-annotation-selector={'='.join(NODE_ANNOTATION)}",
        f"--cidr={POD_ADDRESSES}",
        f"--server-address=127.0.0.1:{state.ports['kwok']}",
        "--node-lease-duration-seconds=40",
    ]
