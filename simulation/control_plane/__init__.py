"""A real Kubernetes control plane on 127.0.0.1 with fake nodes.

It is etcd, API server, controller manager, scheduler, the LeaderWorkerSet controller with its webhooks, kwok,
and `node_agent` for devices and the ends of Jobs.

It proves: admission, schema validation, RBAC, quota; scheduling by resources, taints, labels and affinity;
what the Job, Deployment, DaemonSet, StatefulSet and LeaderWorkerSet controllers make of the objects; deletion
with finalizers and owners. It does not prove: that a container starts, an image exists, a probe answers, a
volume mounts, a name resolves, packets flow or are filtered, or that a GPU computes. There is no kubelet:
`kubectl logs`, `exec` and `port-forward` fail.
"""

from simulation.control_plane import jobs
from simulation.control_plane.access import ClusterAccess, kubeconfig
from simulation.control_plane.addons import install_addon, remove_addon
from simulation.control_plane.errors import ControlPlaneError
from simulation.control_plane.leftovers import leftovers
from simulation.control_plane.lifecycle import resume, start, stop
from simulation.control_plane.nodes import NodeGroupSpec, remove_nodes, scale_nodes

__all__ = [
    "ClusterAccess",
    "ControlPlaneError",
    "NodeGroupSpec",
    "install_addon",
    "jobs",
    "kubeconfig",
    "leftovers",
    "remove_addon",
    "remove_nodes",
    "resume",
    "scale_nodes",
    "start",
    "stop",
]
