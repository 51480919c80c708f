"""Writes config.json of a catalogue entry, with fewer layers if told so: all that vLLM needs to build dummy weights.

Stands in for the checkpoint's own file. It does not prove that the real file says the same, and leaves out what
memory does not depend on. Image encoders are left out too: run it as a language model only.
"""

from __future__ import annotations

from typing import Any

from planner.attention import GroupedQueryAttention, MultiHeadLatentAttention
from planner.models import Architecture, Model

_INT4 = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "quantization_status": "compressed",
    "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "input_activations": None,
            "output_activations": None,
            "weights": {
                "num_bits": 4,
                "type": "int",
                "symmetric": True,
                "group_size": 32,
                "strategy": "group",
                "dynamic": False,
                "observer": "minmax",
            },
        }
    },
}
_FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
# Routers and the output head are not quantised; MiniMax calls a layer's experts "block_sparse_moe".
_FP8_KEPT = {"modules_to_not_convert": ["lm_head", "gate", "indexer.weights_proj"]}


def config(model: Model, layers: int) -> dict[str, Any]:
    """The content of config.json for the first `layers` layers of `model`."""
    architecture = model.architecture
    written: dict[str, Any] = {
        "hidden_size": architecture.hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": architecture.attention.heads,
        "intermediate_size": architecture.intermediate,
        "vocab_size": architecture.vocabulary,
        "max_position_embeddings": model.context_tokens,
        "rope_theta": 1_000_000.0,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "tie_word_embeddings": architecture.tied_embeddings,
        "torch_dtype": "bfloat16",
        "attention_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **_attention(architecture),
        **_family(architecture, layers),
    }
    quantization = {"int4": _INT4, "fp8": {**_FP8, **_FP8_KEPT}}.get(model.precision)
    if quantization is not None:
        written["quantization_config"] = quantization
    if architecture.linear_attention is None:
        return written
    # Qwen3.5 keeps what decides memory one level down, beside its image encoder.
    return {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "model_type": "qwen3_5_moe",
        "text_config": written,
        **({} if quantization is None else {"quantization_config": quantization}),
    }


def _attention(architecture: Architecture) -> dict[str, Any]:
    attention = architecture.attention
    if isinstance(attention, GroupedQueryAttention):
        return {"num_key_value_heads": attention.kv_heads, "head_dim": attention.head_dim}
    latent = {
        "num_key_value_heads": attention.heads,
        "q_lora_rank": attention.q_lora_rank,
        "kv_lora_rank": attention.kv_lora_rank,
        "qk_nope_head_dim": attention.qk_nope_head_dim,
        "qk_rope_head_dim": attention.qk_rope_head_dim,
        "v_head_dim": attention.v_head_dim,
    }
    if attention.indexer is None:
        return latent
    indexer = attention.indexer
    return {**latent, "index_n_heads": indexer.heads, "index_head_dim": indexer.head_dim, "index_topk": indexer.chosen}


def _family(architecture: Architecture, layers: int) -> dict[str, Any]:
    """Names of the vLLM class and what only it reads."""
    experts = architecture.experts
    if experts is None:
        return {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    shared: dict[str, Any] = {"moe_intermediate_size": experts.intermediate, "num_experts_per_tok": experts.active}
    if isinstance(architecture.attention, MultiHeadLatentAttention):
        sparse = architecture.attention.indexer is not None
        name, kind = ("GlmMoeDsaForCausalLM", "glm_moe_dsa") if sparse else ("DeepseekV3ForCausalLM", "deepseek_v3")
        return {
            **shared,
            "architectures": [name],
            "model_type": kind,
            "n_routed_experts": experts.routed,
            "n_shared_experts": experts.shared,
            "first_k_dense_replace": experts.dense_layers,
            "n_group": 1,
            "topk_group": 1,
            "topk_method": "noaux_tc",
            "scoring_func": "sigmoid",
            "norm_topk_prob": True,
            "routed_scaling_factor": 2.5,
            "moe_layer_freq": 1,
            "num_nextn_predict_layers": 0,
            "ep_size": 1,
        }
    if architecture.linear_attention is not None:
        linear = architecture.linear_attention
        return {
            **shared,
            "model_type": "qwen3_5_moe_text",
            "num_experts": experts.routed,
            "shared_expert_intermediate_size": experts.intermediate,
            "full_attention_interval": architecture.full_attention_every,
            "linear_num_key_heads": linear.key_heads,
            "linear_num_value_heads": linear.value_heads,
            "linear_key_head_dim": linear.key_dim,
            "linear_value_head_dim": linear.value_dim,
            "linear_conv_kernel_dim": linear.kernel,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10_000_000.0,
                "partial_rotary_factor": 0.25,
                "mrope_section": [11, 11, 10],
                "mrope_interleaved": True,
            },
            "mamba_ssm_dtype": "float32",
        }
    if experts.intermediate == architecture.intermediate:
        return {
            **shared,
            "architectures": ["MiniMaxM2ForCausalLM"],
            "model_type": "minimax_m2",
            "num_local_experts": experts.routed,
            "rotary_dim": 64,
            "use_qk_norm": True,
            "qk_norm_type": "per_layer",
            "scoring_func": "sigmoid",
            "use_routing_bias": True,
            "attn_type_list": [1] * layers,
        }
    return {
        **shared,
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "num_experts": experts.routed,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }
