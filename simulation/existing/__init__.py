"""A Kubernetes cluster that somebody else has set up: no AWS, GPU nodes on InfiniBand, a kubeconfig.

The same local control plane as behind the simulated EKS (`simulation.control_plane` says what it proves), in a home of
its own. It has no add-ons and no load balancer, and its plugins may be there already, as with the GPU operator.
"""

from simulation.existing.cluster import ensure, enter_home, left, report, start, stop
from simulation.existing.nodes import Shape

__all__ = ["Shape", "ensure", "enter_home", "left", "report", "start", "stop"]
