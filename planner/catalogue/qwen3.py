"""Alibaba's Qwen3-235B-A22B: a mixture of experts with four KV heads."""

from __future__ import annotations

from dataclasses import replace

from planner.attention import GroupedQueryAttention
from planner.catalogue.precisions import BF16, FP8_BLOCKS, NVFP4
from planner.models import Architecture, Experts, Model, Source

QWEN3_235B_INSTRUCT_2507 = Model(
    repository="Qwen/Qwen3-235B-A22B-Instruct-2507",
    title="Qwen3-235B-A22B Instruct 2507",
    family="qwen3-235b-a22b-instruct-2507",
    weights=BF16,
    architecture=Architecture(
        layers=94,
        hidden=4096,
        vocabulary=151_936,
        intermediate=12_288,
        attention=GroupedQueryAttention(heads=64, kv_heads=4, head_dim=128),
        experts=Experts(routed=128, active=8, shared=0, intermediate=1536),
    ),
    total_parameters=235e9,
    active_parameters=22e9,
    context_tokens=262_144,
    minimum_vllm="0.10.0",
    required_flags=("--trust-remote-code",),
    tool_call_parser="hermes",
    licence="Apache-2.0 (not re-verified)",
    sources=(
        Source(
            figures="parameters, context, vLLM, flags, parser; FP8 in blocks of 128 allows tensor parallel 4 at most",
            where="vllm-project/recipes models/Qwen/Qwen3-235B-A22B-Instruct-2507.yaml at 8959cf64",
            date="2026-08-21",
        ),
        Source(figures="architecture", where="scripts/models/qwen3-235B-A22B.sh of THUDM/slime", date="2026-11"),
    ),
    corrections=("4 A100 80 GB hold FP8 weights alone, which A100 has no arithmetic for; bf16 is 470 GB",),
)
QWEN3_235B_INSTRUCT_2507_FP8 = replace(
    QWEN3_235B_INSTRUCT_2507,
    repository="Qwen/Qwen3-235B-A22B-Instruct-2507-FP8",
    title="Qwen3-235B-A22B Instruct 2507 FP8",
    weights=FP8_BLOCKS,
)
QWEN3_235B_INSTRUCT_2507_NVFP4 = replace(
    QWEN3_235B_INSTRUCT_2507,
    repository="nvidia/Qwen3-235B-A22B-Instruct-2507-NVFP4",
    title="Qwen3-235B-A22B Instruct 2507 NVFP4",
    weights=NVFP4,
    corrections=(),
)
# The first release: trained for 40,960 tokens, thinking by default.
QWEN3_235B = replace(
    QWEN3_235B_INSTRUCT_2507,
    repository="Qwen/Qwen3-235B-A22B",
    title="Qwen3-235B-A22B",
    family="qwen3-235b-a22b",
    context_tokens=40_960,
    reasoning_parser="qwen3",
)
QWEN3_235B_FP8 = replace(
    QWEN3_235B, repository="Qwen/Qwen3-235B-A22B-FP8", title="Qwen3-235B-A22B FP8", weights=FP8_BLOCKS
)

MODELS = (
    QWEN3_235B,
    QWEN3_235B_FP8,
    QWEN3_235B_INSTRUCT_2507,
    QWEN3_235B_INSTRUCT_2507_FP8,
    QWEN3_235B_INSTRUCT_2507_NVFP4,
)
