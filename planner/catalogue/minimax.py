"""MiniMax M2: a mixture of experts whose checkpoints are native FP8."""

from __future__ import annotations

from dataclasses import replace

from planner.attention import GroupedQueryAttention
from planner.catalogue.precisions import FP8_BLOCKS, NVFP4
from planner.models import Architecture, Experts, Model, Source

MINIMAX_M2_5 = Model(
    repository="MiniMaxAI/MiniMax-M2.5",
    title="MiniMax M2.5",
    family="minimax-m2.5",
    weights=FP8_BLOCKS,
    architecture=Architecture(
        layers=62,
        hidden=3072,
        vocabulary=200_064,
        intermediate=1536,
        attention=GroupedQueryAttention(heads=48, kv_heads=8, head_dim=128),
        experts=Experts(routed=256, active=8, shared=0, intermediate=1536),
    ),
    total_parameters=229e9,
    active_parameters=10e9,
    context_tokens=196_608,
    minimum_vllm="0.20.2",
    required_flags=("--trust-remote-code", "--compilation-config", '{"cudagraph_mode":"PIECEWISE"}'),
    tool_call_parser="minimax_m2",
    reasoning_parser="minimax_m2",
    licence="modified MIT (not verified)",
    sources=(
        Source(
            figures="230B/10B parameters, context, vLLM, flags, parsers",
            where="vllm-project/recipes models/MiniMaxAI/MiniMax-M2.5.yaml at 8959cf64",
            date="2026-08-21",
        ),
        Source(figures="architecture", where="transformers 5.24 minimax_m2 defaults", date="2026-11"),
        Source(
            figures="no tensor parallel 8 without expert parallel; 220 GB of weights (214 GiB as computed here)",
            where="MiniMax-M2.5 docs/vllm_deploy_guide.md",
            date="2026-11",
        ),
    ),
    corrections=(
        "not dense: a mixture of experts, 229B parameters (the maker says 230B) of which 10B are active",
        "4 A100 80 GB have no FP8 arithmetic: the weights are expanded on the fly (Marlin)",
    ),
)
MINIMAX_M2_5_NVFP4 = replace(
    MINIMAX_M2_5,
    repository="nvidia/MiniMax-M2.5-NVFP4",
    title="MiniMax M2.5 NVFP4",
    weights=NVFP4,
    corrections=(),
)
MINIMAX_M2_7 = replace(
    MINIMAX_M2_5,
    repository="MiniMaxAI/MiniMax-M2.7",
    title="MiniMax M2.7",
    family="minimax-m2.7",
    minimum_vllm="0.20.0",
    licence="not confirmed",
    sources=(
        Source(
            figures="parameters, context, vLLM, parsers; the architecture is M2.5's",
            where="vllm-project/recipes models/MiniMaxAI/MiniMax-M2.7.yaml at 8959cf64",
            date="2026-08-21",
        ),
    ),
    corrections=(),
)
MINIMAX_M2 = replace(
    MINIMAX_M2_7, repository="MiniMaxAI/MiniMax-M2", title="MiniMax M2", family="minimax-m2", minimum_vllm="0.12.0"
)

MODELS = (MINIMAX_M2_5, MINIMAX_M2_5_NVFP4, MINIMAX_M2_7, MINIMAX_M2)
