"""Releases that belong together: what a stack file gets where it is silent, and what refusals propose."""

from __future__ import annotations

KUBERNETES = "1.35"
AMI_RELEASE = "1.35.6-20260818"
VLLM = "0.27.1"
IMAGE = f"public.ecr.aws/deep-learning-containers/vllm:{VLLM}-gpu-py312-cu130-ubuntu22.04-ec2"
"""AWS's image: the stock one with EFA's user space (aws/deep-learning-containers, 2026-08)."""
STOCK_IMAGE = f"vllm/vllm-openai:v{VLLM}"
"""vLLM's own image: InfiniBand's user space, none of EFA's."""
