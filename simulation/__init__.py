"""The laptop-size stand-in: the same program on simulated AWS and a real, local Kubernetes control plane.

It proves what the Pulumi engine, the Kubernetes API, the scheduler and the LeaderWorkerSet controller do with the
stack. It does not prove that AWS grants the requests, that containers start or that a GPU computes anything.
"""
