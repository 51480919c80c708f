"""Versions that AWS would choose: placeholders of the right form, read 2026-07 to 2026-08, not promises."""

from __future__ import annotations

DEFAULT_KUBERNETES = "1.35"

ADDON_VERSION = {
    "vpc-cni": "v1.23.0-eksbuild.1",
    "kube-proxy": "v1.35.0-eksbuild.2",
    "coredns": "v1.13.1-eksbuild.1",
    "eks-pod-identity-agent": "v1.3.10-eksbuild.2",
    "aws-fsx-csi-driver": "v1.9.0-eksbuild.1",
    "metrics-server": "v0.8.0-eksbuild.6",
    "eks-node-monitoring-agent": "v1.7.0-eksbuild.1",
}


def ami_release(kubernetes_version: str) -> str:
    """The release of the EKS optimized AMI for a Kubernetes minor version (amazon-eks-ami v20260724)."""
    return f"{kubernetes_version}.0-20260724"
