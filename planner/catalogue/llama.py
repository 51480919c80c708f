"""Meta's Llama 3.1 8B: the dense, small end of the catalogue. Its repositories are gated."""

from __future__ import annotations

from dataclasses import replace

from planner.attention import GroupedQueryAttention
from planner.catalogue.precisions import BF16
from planner.models import Architecture, Model, Source

LLAMA_3_1_8B_INSTRUCT = Model(
    repository="meta-llama/Llama-3.1-8B-Instruct",
    title="Llama 3.1 8B Instruct",
    family="llama-3.1-8b-instruct",
    weights=BF16,
    architecture=Architecture(
        layers=32,
        hidden=4096,
        vocabulary=128_256,
        intermediate=14_336,
        attention=GroupedQueryAttention(heads=32, kv_heads=8, head_dim=128),
    ),
    total_parameters=8.03e9,
    active_parameters=8.03e9,
    context_tokens=131_072,
    minimum_vllm="0.6.0",
    tool_call_parser="llama3_json",
    licence="Llama 3.1 Community (not re-verified)",
    gated=True,
    sources=(
        Source(
            figures="context, vLLM",
            where="vllm-project/recipes models/meta-llama/Llama-3.1-8B-Instruct.yaml at 8959cf64",
            date="2026-08-21",
        ),
        Source(figures="architecture, gated", where="mirrors of config.json (not re-verified)", date="2026-11"),
    ),
)
LLAMA_3_1_8B = replace(
    LLAMA_3_1_8B_INSTRUCT,
    repository="meta-llama/Llama-3.1-8B",
    title="Llama 3.1 8B",
    family="llama-3.1-8b",
    tool_call_parser=None,
)

MODELS = (LLAMA_3_1_8B_INSTRUCT, LLAMA_3_1_8B)
