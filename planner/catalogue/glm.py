"""Z.ai's GLM: GLM-5 (MLA with sparse attention) and the older GLM-4.6 and 4.7 (grouped query attention)."""

from __future__ import annotations

from dataclasses import replace

from planner.attention import GroupedQueryAttention, MultiHeadLatentAttention
from planner.catalogue.precisions import BF16, FP8_BLOCKS, FP8_CHANNELS, NVFP4
from planner.models import Architecture, Experts, Model, Source
from planner.sparse_attention import SparseIndexer

GLM_5 = Model(
    repository="zai-org/GLM-5",
    title="GLM-5",
    family="glm-5",
    weights=BF16,
    architecture=Architecture(
        layers=78,
        hidden=6144,
        vocabulary=154_880,
        intermediate=12_288,
        attention=MultiHeadLatentAttention(
            heads=64,
            q_lora_rank=2048,
            kv_lora_rank=512,
            qk_nope_head_dim=192,
            qk_rope_head_dim=64,
            v_head_dim=256,
            indexer=SparseIndexer(heads=32, head_dim=128),
        ),
        experts=Experts(routed=256, active=8, shared=1, intermediate=2048, dense_layers=3),
        draft_layers=1,
    ),
    total_parameters=744e9,
    active_parameters=40e9,
    context_tokens=202_752,
    # The recipe says 0.16.0; its guide was verified with 0.19.0.
    minimum_vllm="0.19.0",
    required_flags=("--trust-remote-code", "--chat-template-content-format", "string"),
    tool_call_parser="glm47",
    reasoning_parser="glm45",
    licence="MIT (secondary source)",
    sources=(
        Source(
            figures="parameters, context, vLLM, flags, parsers",
            where="vllm-project/recipes models/zai-org/GLM-5.yaml at 8959cf64",
            date="2026-08-21",
        ),
        Source(figures="architecture", where="transformers 5.24 glm_moe_dsa defaults", date="2026-11"),
    ),
    corrections=(
        "not dense: a mixture of experts, 744B parameters of which 40B are active",
        "754B counts the draft layer (multi-token prediction), which vLLM does not load",
        "does not run on 8 H100 in any precision that H100 has kernels for: FP8 alone is 744 GB",
    ),
)
GLM_5_FP8 = replace(GLM_5, repository="zai-org/GLM-5-FP8", title="GLM-5 FP8", weights=FP8_BLOCKS)
GLM_5_NVFP4 = replace(GLM_5, repository="nvidia/GLM-5-NVFP4", title="GLM-5 NVFP4", weights=NVFP4, corrections=())
_GLM_5_1_SOURCES = (
    Source(
        figures="context, vLLM, flags, parsers; the architecture is GLM-5's",
        where="vllm-project/recipes models/zai-org/GLM-5.1.yaml at 8959cf64",
        date="2026-08-21",
    ),
)
GLM_5_1 = replace(
    GLM_5,
    repository="zai-org/GLM-5.1",
    title="GLM-5.1",
    family="glm-5.1",
    minimum_vllm="0.19.1",
    sources=_GLM_5_1_SOURCES,
    corrections=(),
)
GLM_5_1_FP8 = replace(GLM_5_1, repository="zai-org/GLM-5.1-FP8", title="GLM-5.1 FP8", weights=FP8_BLOCKS)
# vLLM 0.28.0 logged 94.46 GiB per GPU on 8 GPUs, of which 5.8 are what sparse attention keeps for an FP8 cache of this
# length. 57 of the 78 layers share an indexer with another (ROCm/ATOM#1260), which is not computed: 0.5 GiB of weights
# and, with an FP8 cache, 12 % of its bytes too many.
GLM_5_3 = replace(
    GLM_5,
    repository="zai-org/GLM-5.3",
    title="GLM-5.3 FP8",
    family="glm-5.3",
    weights=FP8_BLOCKS,
    context_tokens=1_048_576,
    minimum_vllm="0.28.1",
    licence="not confirmed",
    sources=(
        Source(
            figures="context, FP8 checkpoint; that all of it is FP8 is inferred from a logged size",
            where="vllm-project/recipes#893; ai-dynamo/aiconfigurator#1557 (same shape as GLM-5.2)",
            date="2026-09",
        ),
    ),
    corrections=(),
)

GLM_4_6 = Model(
    repository="zai-org/GLM-4.6",
    title="GLM-4.6",
    family="glm-4.6",
    weights=BF16,
    architecture=Architecture(
        layers=92,
        hidden=5120,
        vocabulary=151_552,
        intermediate=12_288,
        attention=GroupedQueryAttention(heads=96, kv_heads=8, head_dim=128),
        experts=Experts(routed=160, active=8, shared=1, intermediate=1536, dense_layers=3),
        draft_layers=1,
    ),
    total_parameters=355e9,
    active_parameters=32e9,
    context_tokens=202_752,
    minimum_vllm="0.11.0",
    required_flags=("--trust-remote-code",),
    tool_call_parser="glm45",
    reasoning_parser="glm45",
    licence="MIT (not re-verified)",
    sources=(
        Source(
            figures="parameters, context, vLLM, parsers",
            where="vllm-project/recipes models/zai-org/GLM-4.6.yaml at 8959cf64",
            date="2026-08-21",
        ),
        Source(figures="architecture", where="slime scripts/models/glm4.5-355B-A32B.sh", date="2026-12"),
    ),
)
GLM_4_6_FP8 = replace(GLM_4_6, repository="zai-org/GLM-4.6-FP8", title="GLM-4.6 FP8", weights=FP8_CHANNELS)
GLM_4_7 = replace(GLM_4_6, repository="zai-org/GLM-4.7", title="GLM-4.7", family="glm-4.7", tool_call_parser="glm47")
GLM_4_7_FP8 = replace(GLM_4_7, repository="zai-org/GLM-4.7-FP8", title="GLM-4.7 FP8", weights=FP8_CHANNELS)

MODELS = (
    GLM_5,
    GLM_5_FP8,
    GLM_5_NVFP4,
    GLM_5_1,
    GLM_5_1_FP8,
    GLM_5_3,
    GLM_4_6,
    GLM_4_6_FP8,
    GLM_4_7,
    GLM_4_7_FP8,
)
