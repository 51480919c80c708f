"""Moonshot AI's Kimi K2 family: DeepSeek-V3's architecture with 384 experts, a vision tower from K2.5 on."""

from __future__ import annotations

from dataclasses import replace

from planner.attention import MultiHeadLatentAttention
from planner.catalogue.precisions import FP8_BLOCKS, INT4_GROUPS_OF_32, NVFP4
from planner.models import Architecture, Experts, Model, Source, VisionTower

_TEXT = Architecture(
    layers=61,
    hidden=7168,
    vocabulary=163_840,
    intermediate=18_432,
    attention=MultiHeadLatentAttention(
        heads=64, q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128
    ),
    experts=Experts(routed=384, active=8, shared=1, intermediate=2048, dense_layers=1),
)
_MULTIMODAL = replace(
    _TEXT,
    vision=VisionTower(layers=27, hidden=1152, intermediate=4304, patch=14, position_table=64 * 64, merged_patches=4),
)

KIMI_K2_5 = Model(
    repository="moonshotai/Kimi-K2.5",
    title="Kimi-K2.5",
    family="kimi-k2.5",
    weights=INT4_GROUPS_OF_32,
    architecture=_MULTIMODAL,
    checkpoint_bytes=595_150_000_000,
    total_parameters=1.0e12,
    active_parameters=32e9,
    context_tokens=262_144,
    minimum_vllm="0.19.1",
    required_flags=("--trust-remote-code", "--mm-encoder-tp-mode", "data"),
    tool_call_parser="kimi_k2",
    reasoning_parser="kimi_k2",
    licence="kimi-k2.5-license (modified MIT; secondary source)",
    sources=(
        Source(
            figures="context, vLLM, flags, parsers, about 595 GB on disk, 1T/32B parameters",
            where="vllm-project/recipes models/moonshotai/Kimi-K2.5.yaml at 8959cf64",
            date="2026-08-21",
        ),
        Source(figures="architecture", where="transformers 5.24 kimi_k25 defaults; config fixtures", date="2026-11"),
    ),
    corrections=(
        "not FP8 and not 1.1 TB: the checkpoint is INT4 (compressed-tensors), 595 GB",
        "16 H100 are not the only hardware: one node of 8 H200 is the verified one",
    ),
)
KIMI_K2_5_NVFP4 = replace(
    KIMI_K2_5,
    repository="nvidia/Kimi-K2.5-NVFP4",
    title="Kimi-K2.5 NVFP4",
    weights=NVFP4,
    checkpoint_bytes=None,
    licence="not confirmed (NVIDIA's, on top of the model's own)",
    corrections=(),
)
_K2_6_SOURCES = (
    Source(
        figures="context, vLLM, flags, parsers; the architecture is K2.5's",
        where="vllm-project/recipes models/moonshotai/Kimi-K2.6.yaml at 8959cf64; Kimi-K2.6 docs/deploy_guidance.md",
        date="2026-08-21",
    ),
)
# The recipe asks for 0.25.0, Moonshot's own guide for 0.19.1, with which public runs served it.
KIMI_K2_6 = replace(
    KIMI_K2_5,
    repository="moonshotai/Kimi-K2.6",
    title="Kimi-K2.6",
    family="kimi-k2.6",
    checkpoint_bytes=None,
    licence="not confirmed",
    sources=_K2_6_SOURCES,
    corrections=(),
)
KIMI_K2_THINKING = replace(
    KIMI_K2_5,
    repository="moonshotai/Kimi-K2-Thinking",
    title="Kimi-K2-Thinking",
    family="kimi-k2-thinking",
    architecture=_TEXT,
    checkpoint_bytes=None,
    minimum_vllm="0.12.0",
    required_flags=("--trust-remote-code",),
    licence="not confirmed",
    sources=(
        Source(
            figures="context, vLLM, flags, parsers",
            where="vllm-project/recipes models/moonshotai/Kimi-K2-Thinking.yaml at 8959cf64",
            date="2026-08-21",
        ),
    ),
    corrections=(),
)
KIMI_K2_INSTRUCT = replace(
    KIMI_K2_THINKING,
    repository="moonshotai/Kimi-K2-Instruct",
    title="Kimi-K2-Instruct",
    family="kimi-k2-instruct",
    weights=FP8_BLOCKS,
    context_tokens=131_072,
    reasoning_parser=None,
    sources=(
        Source(
            figures="native FP8 checkpoint, parsers",
            where="vllm-project/recipes moonshotai/Kimi-K2.md at 8959cf64",
            date="2026-08-21",
        ),
    ),
)

MODELS = (KIMI_K2_5, KIMI_K2_5_NVFP4, KIMI_K2_6, KIMI_K2_THINKING, KIMI_K2_INSTRUCT)
