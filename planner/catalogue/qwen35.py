"""Alibaba's Qwen3.5: mixtures of experts that see, with linear attention in three of four layers."""

from __future__ import annotations

from dataclasses import replace

from planner.attention import GatedDeltaNet, GroupedQueryAttention
from planner.catalogue.precisions import BF16, FP8_BLOCKS, GPTQ_INT4, NVFP4
from planner.models import Architecture, Experts, Model, Source, VisionTower

# 16,777,216 pixels at most, by Qwen3-VL's image processor.
_VISION = VisionTower(
    layers=27,
    hidden=1152,
    intermediate=4304,
    patch=16,
    position_table=48 * 48,
    merged_patches=4,
    frames=2,
    image_tokens=16_384,
)
# From the recipes: DeepGEMM's warm-up costs start-up time, and its kernels are not used here.
_ENVIRONMENT = (("VLLM_USE_DEEP_GEMM", "0"),)
_CONFIG = Source(figures="architecture", where="transformers 5.24 qwen3_5_moe; Megatron MIMO config", date="2026-11")

QWEN35_35B = Model(
    repository="Qwen/Qwen3.5-35B-A3B",
    title="Qwen3.5-35B-A3B",
    family="qwen3.5-35b-a3b",
    weights=BF16,
    architecture=Architecture(
        layers=40,
        hidden=2048,
        vocabulary=248_320,
        intermediate=512,
        attention=GroupedQueryAttention(heads=16, kv_heads=2, head_dim=256, output_gate=True),
        linear_attention=GatedDeltaNet(key_heads=16, value_heads=32, key_dim=128, value_dim=128, kernel=4),
        full_attention_every=4,
        experts=Experts(routed=256, active=8, shared=1, intermediate=512),
        vision=_VISION,
        draft_layers=1,
    ),
    total_parameters=35e9,
    active_parameters=3e9,
    context_tokens=262_144,
    minimum_vllm="0.17.0",
    required_flags=("--trust-remote-code",),
    tool_call_parser="qwen3_coder",
    reasoning_parser="qwen3",
    licence="Apache-2.0 (secondary source)",
    sources=(
        Source(
            figures="parameters, context, vLLM, flags, parsers",
            where="vllm-project/recipes models/Qwen/Qwen3.5-35B-A3B.yaml at 8959cf64",
            date="2026-08-21",
        ),
        _CONFIG,
    ),
    corrections=(
        "does not fit one A100 40 GB in bf16 (70 GB); INT4 does",
        "36B counts the draft layer (multi-token prediction), which vLLM does not load",
    ),
)
QWEN35_397B = Model(
    repository="Qwen/Qwen3.5-397B-A17B",
    title="Qwen3.5-397B-A17B",
    family="qwen3.5-397b-a17b",
    weights=BF16,
    architecture=Architecture(
        layers=60,
        hidden=4096,
        vocabulary=248_320,
        intermediate=1024,
        attention=GroupedQueryAttention(heads=32, kv_heads=2, head_dim=256, output_gate=True),
        linear_attention=GatedDeltaNet(key_heads=16, value_heads=64, key_dim=128, value_dim=128, kernel=4),
        full_attention_every=4,
        experts=Experts(routed=512, active=10, shared=1, intermediate=1024),
        vision=_VISION,
        draft_layers=1,
    ),
    total_parameters=397e9,
    active_parameters=17e9,
    context_tokens=262_144,
    minimum_vllm="0.17.0",
    required_flags=("--trust-remote-code",),
    environment=_ENVIRONMENT,
    tool_call_parser="qwen3_coder",
    reasoning_parser="qwen3",
    licence="Apache-2.0 (secondary source)",
    sources=(
        Source(
            figures="parameters, context, vLLM, flags, environment, parsers",
            where="vllm-project/recipes models/Qwen/Qwen3.5-397B-A17B.yaml at 8959cf64",
            date="2026-08-21",
        ),
        _CONFIG,
    ),
    corrections=(
        "403B counts the draft layer (multi-token prediction), which vLLM does not load",
        "8 A100 80 GB hold it in INT4 or, without FP8 arithmetic, in FP8; bf16 is 794 GB",
    ),
)


def _precisions(model: Model) -> tuple[Model, ...]:
    """The bf16 checkpoint, and Qwen's own FP8 and INT4 ones."""
    fp8, int4 = (
        replace(model, repository=model.repository + suffix, title=f"{model.title} {title}", weights=weights)
        for suffix, title, weights in (("-FP8", "FP8", FP8_BLOCKS), ("-GPTQ-Int4", "INT4", GPTQ_INT4))
    )
    return model, fp8, int4


_NVFP4 = replace(
    QWEN35_397B,
    repository="nvidia/Qwen3.5-397B-A17B-NVFP4",
    title="Qwen3.5-397B-A17B NVFP4",
    weights=NVFP4,
    corrections=(),
)
QWEN36_35B = replace(
    QWEN35_35B,
    repository="Qwen/Qwen3.6-35B-A3B",
    title="Qwen3.6-35B-A3B",
    family="qwen3.6-35b-a3b",
    sources=(
        Source(
            figures="parameters, context, vLLM, flags, parsers; the architecture is Qwen3.5's",
            where="vllm-project/recipes models/Qwen/Qwen3.6-35B-A3B.yaml at 8959cf64",
            date="2026-08-21",
        ),
    ),
    corrections=(),
)
_QWEN36_FP8 = replace(
    QWEN36_35B, repository="Qwen/Qwen3.6-35B-A3B-FP8", title="Qwen3.6-35B-A3B FP8", weights=FP8_BLOCKS
)

MODELS = (*_precisions(QWEN35_35B), *_precisions(QWEN35_397B), _NVFP4, QWEN36_35B, _QWEN36_FP8)
