"""The ways in which the catalogue's checkpoints store their weights, scales included."""

from __future__ import annotations

from planner.models import BF16_BYTES, Precision

BF16 = Precision(name="bf16", title="bf16", expert_bytes=BF16_BYTES, linear_bytes=BF16_BYTES)

# One fp32 scale per block of 128 x 128.
_FP8_BLOCK_BYTES = 1 + 4 / 128**2
FP8_BLOCKS = Precision(
    name="fp8",
    title="FP8 in blocks of 128 x 128",
    expert_bytes=_FP8_BLOCK_BYTES,
    linear_bytes=_FP8_BLOCK_BYTES,
    unit=128,
)
# Scales per output channel are too few to count, and leave every width divisible.
FP8_CHANNELS = Precision(name="fp8", title="FP8 by channel", expert_bytes=1.0, linear_bytes=1.0)

# Routed experts alone, with a bf16 scale per group; attention and shared experts stay bf16.
INT4_GROUPS_OF_32 = Precision(
    name="int4",
    title="INT4 experts in groups of 32 (compressed-tensors)",
    expert_bytes=0.5 + BF16_BYTES / 32,
    linear_bytes=BF16_BYTES,
    unit=32,
)
# vLLM splits a group that lies across ranks into smaller ones, down to 32 (quantization/moe_wna16.py of 0.27.1).
SMALLEST_GPTQ_GROUP = 32
GPTQ_INT4 = Precision(
    name="int4",
    title="INT4 experts in groups of 128 (GPTQ)",
    expert_bytes=0.5 + BF16_BYTES / 128,
    linear_bytes=BF16_BYTES,
    unit=SMALLEST_GPTQ_GROUP,
)
# One fp8 scale per 16 values. NVIDIA's checkpoints of mixture-of-experts models quantise the routed experts.
NVFP4 = Precision(name="nvfp4", title="NVFP4 experts", expert_bytes=0.5 + 1 / 16, linear_bytes=BF16_BYTES, unit=16)
