"""DeepSeek V3, R1 and V3.2: the architecture that Kimi and GLM-5 vary, and the subject of published measurements."""

from __future__ import annotations

from dataclasses import replace

from planner.attention import MultiHeadLatentAttention
from planner.catalogue.precisions import FP8_BLOCKS
from planner.models import Architecture, Experts, Model, Source
from planner.sparse_attention import SparseIndexer

_ATTENTION = MultiHeadLatentAttention(
    heads=128, q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128
)
_V3 = Architecture(
    layers=61,
    hidden=7168,
    vocabulary=129_280,
    intermediate=18_432,
    attention=_ATTENTION,
    experts=Experts(routed=256, active=8, shared=1, intermediate=2048, dense_layers=3),
    draft_layers=1,
)

DEEPSEEK_R1 = Model(
    repository="deepseek-ai/DeepSeek-R1",
    title="DeepSeek-R1",
    family="deepseek-r1",
    weights=FP8_BLOCKS,
    architecture=_V3,
    total_parameters=671e9,
    active_parameters=37e9,
    context_tokens=163_840,
    minimum_vllm="0.12.0",
    required_flags=("--trust-remote-code",),
    reasoning_parser="deepseek_r1",
    licence="MIT (not re-verified)",
    sources=(
        Source(
            figures="parameters, context, vLLM, parser",
            where="vllm-project/recipes models/deepseek-ai/DeepSeek-R1.yaml at 8959cf64",
            date="2026-08-21",
        ),
        Source(figures="architecture", where="transformers 5.24 deepseek_v3 defaults", date="2026-11"),
    ),
)
DEEPSEEK_R1_0528 = replace(DEEPSEEK_R1, repository="deepseek-ai/DeepSeek-R1-0528", family="deepseek-r1-0528")
DEEPSEEK_V3 = replace(
    DEEPSEEK_R1,
    repository="deepseek-ai/DeepSeek-V3",
    title="DeepSeek-V3",
    family="deepseek-v3",
    reasoning_parser=None,
)
DEEPSEEK_V3_1 = replace(
    DEEPSEEK_V3, repository="deepseek-ai/DeepSeek-V3.1", title="DeepSeek-V3.1", family="deepseek-v3.1"
)
DEEPSEEK_V3_2 = replace(
    DEEPSEEK_V3,
    repository="deepseek-ai/DeepSeek-V3.2",
    title="DeepSeek-V3.2",
    family="deepseek-v3.2",
    architecture=replace(_V3, attention=replace(_ATTENTION, indexer=SparseIndexer(heads=64, head_dim=128))),
    minimum_vllm="0.18.0",
    tool_call_parser="deepseek_v32",
    reasoning_parser="deepseek_v3",
    required_flags=("--trust-remote-code", "--tokenizer-mode", "deepseek_v32"),
    sources=(
        Source(
            figures="parameters, context, vLLM, parsers",
            where="vllm-project/recipes models/deepseek-ai/DeepSeek-V3.2.yaml at 8959cf64",
            date="2026-08-21",
        ),
        Source(figures="architecture", where="transformers 5.24 deepseek_v32 defaults", date="2026-11"),
    ),
)

MODELS = (DEEPSEEK_R1, DEEPSEEK_R1_0528, DEEPSEEK_V3, DEEPSEEK_V3_1, DEEPSEEK_V3_2)
