"""Turns a checkpoint's own config.json into a catalogue entry.

It reads what decides memory. Parsers, flags and licences stand in no config.json: whoever adds an entry gives them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.attention import (
    Attention,
    GatedDeltaNet,
    GroupedQueryAttention,
    MultiHeadLatentAttention,
)
from planner.catalogue.precisions import SMALLEST_GPTQ_GROUP
from planner.models import BF16_BYTES, Architecture, Experts, Precision, VisionTower
from planner.sparse_attention import SparseIndexer

_DENSE = ("llama", "mistral", "qwen2", "qwen3")
_MIXTURE = ("qwen3_moe", "glm4_moe", "minimax_m2", "mixtral")
_LATENT = ("deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa")
_HYBRID = ("qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text")
KNOWN = (*_DENSE, *_MIXTURE, *_LATENT, *_HYBRID)

# What is read of a config.json, so that an entry need not hold the rest of it.
# fmt: off
KEYS = frozenset((
    "model_type", "text_config", "vision_config", "quantization_config", "num_hidden_layers", "hidden_size",
    "vocab_size", "intermediate_size", "full_attention_interval", "num_nextn_predict_layers",
    "mtp_num_hidden_layers", "tie_word_embeddings", "max_position_embeddings", "num_attention_heads",
    "num_key_value_heads", "head_dim", "index_head_dim", "index_n_heads", "index_topk", "q_lora_rank", "kv_lora_rank",
    "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "moe_intermediate_size", "n_shared_experts",
    "shared_expert_intermediate_size", "n_routed_experts", "num_experts", "num_local_experts",
    "num_experts_per_tok", "first_k_dense_replace", "linear_num_key_heads", "linear_num_value_heads",
    "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim",
))
# fmt: on


LARGEST = 100_000_000
MOST_LAYERS = 1_000
"""Far above any checkpoint; what lies beyond is a mistake, and would keep the planner counting."""

# Tokens of the largest image, which config.json does not say: 16,777,216 pixels by Qwen3-VL's image processor.
LARGEST_IMAGE = {"qwen3_5_moe": 16_384}

# The kinds whose config gives the experts' size as `intermediate_size`; they have no dense layer beside them.
_EXPERTS_ONLY = ("mixtral", "minimax_m2")


class ConfigError(ValueError):
    """A config.json that cannot be read: what is missing, or what is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What config.json says: architecture, precision and context."""

    architecture: Architecture
    precision: Precision
    context_tokens: int


def read(config: Mapping[str, Any]) -> Checkpoint:
    """Read the content of a config.json. Raises ConfigError."""
    fields = _Fields(config)
    kind = fields.kind
    if kind not in KNOWN:
        raise ConfigError(f"unknown architecture: model_type is {kind!r}; known are {', '.join(KNOWN)}")
    experts = None if kind in _DENSE else _experts(fields)
    architecture = Architecture(
        layers=fields.integer("num_hidden_layers", most=MOST_LAYERS),
        hidden=fields.integer("hidden_size"),
        vocabulary=fields.integer("vocab_size"),
        intermediate=fields.integer("intermediate_size", default=_without_dense_layers(experts)),
        attention=_attention(fields),
        experts=experts,
        vision=_vision(config),
        linear_attention=_linear(fields) if kind in _HYBRID else None,
        full_attention_every=fields.integer("full_attention_interval", default=4) if kind in _HYBRID else 1,
        draft_layers=fields.integer("num_nextn_predict_layers", "mtp_num_hidden_layers", default=0),
        tied_embeddings=bool(fields.get("tie_word_embeddings", default=False)),
    )
    quantization = config.get("quantization_config") or fields.get("quantization_config", default=None)
    return Checkpoint(
        architecture=architecture,
        precision=_precision(quantization, dense=experts is None),
        context_tokens=fields.integer("max_position_embeddings"),
    )


class _Fields:
    """The text part of a config, which multimodal checkpoints keep below `text_config`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        if not isinstance(config, Mapping):
            raise ConfigError("a config.json is one JSON object")
        text = config.get("text_config")
        self._values: Mapping[str, Any] = text if isinstance(text, Mapping) else config
        self.kind = str(self._values.get("model_type") or config.get("model_type"))

    def get(self, *names: str, default: Any = ...) -> Any:  # noqa: ANN401 (JSON)
        """The first of `names` that is there. Raises ConfigError if none is and there is no default."""
        for name in names:
            if self._values.get(name) is not None:
                return self._values[name]
        if default is ...:
            raise ConfigError(f"config.json has no {' or '.join(names)}, which a {self.kind} checkpoint needs")
        return default

    def integer(self, *names: str, default: int | None = None, most: int = LARGEST) -> int:
        """A count of at least 1, or 0 where that is its default."""
        value = self.get(*names, default=... if default is None else default)
        least = 0 if default == 0 else 1
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ConfigError(f"{names[0]} in config.json must be a whole number from {least} to {most}, not {value!r}")
        return value


def _attention(fields: _Fields) -> Attention:
    heads = fields.integer("num_attention_heads", most=LARGEST // 1000)
    if fields.kind not in _LATENT:
        head_dim = fields.integer("head_dim", default=fields.integer("hidden_size") // heads)
        kv_heads = fields.integer("num_key_value_heads", default=heads)
        if heads % kv_heads:
            raise ConfigError(f"num_key_value_heads in config.json is {kv_heads}, which does not divide {heads} heads")
        gate = fields.kind in _HYBRID
        return GroupedQueryAttention(heads=heads, kv_heads=kv_heads, head_dim=head_dim, output_gate=gate)
    indexer = None
    if fields.get("index_head_dim", default=None) is not None:
        indexer = SparseIndexer(
            heads=fields.integer("index_n_heads"),
            head_dim=fields.integer("index_head_dim"),
            chosen=fields.integer("index_topk", default=2048),
        )
    return MultiHeadLatentAttention(
        heads=heads,
        q_lora_rank=fields.integer("q_lora_rank"),
        kv_lora_rank=fields.integer("kv_lora_rank"),
        qk_nope_head_dim=fields.integer("qk_nope_head_dim"),
        qk_rope_head_dim=fields.integer("qk_rope_head_dim"),
        v_head_dim=fields.integer("v_head_dim"),
        indexer=indexer,
    )


def _experts(fields: _Fields) -> Experts:
    for name, ordinary in (("mlp_only_layers", []), ("decoder_sparse_step", 1), ("moe_layer_freq", 1)):
        if fields.get(name, default=ordinary) != ordinary:
            raise ConfigError(f"{name} in config.json is not {ordinary}: the planner knows no such mixture")
    staged = fields.kind in _LATENT or fields.kind == "glm4_moe"
    intermediate = fields.integer("intermediate_size" if fields.kind in _EXPERTS_ONLY else "moe_intermediate_size")
    shared = fields.integer("n_shared_experts", default=None if staged else 0)
    width = fields.integer("shared_expert_intermediate_size", default=0)
    experts = Experts(
        routed=fields.integer("n_routed_experts", "num_experts", "num_local_experts"),
        active=fields.integer("num_experts_per_tok"),
        shared=shared or width // intermediate,
        intermediate=intermediate,
        dense_layers=int(fields.get("first_k_dense_replace", default=... if staged else 0)),
    )
    if experts.active > experts.routed:
        raise ConfigError(f"num_experts_per_tok in config.json is {experts.active}, of {experts.routed} experts")
    if not 0 <= experts.dense_layers <= fields.integer("num_hidden_layers", most=MOST_LAYERS):
        raise ConfigError(f"first_k_dense_replace in config.json is {experts.dense_layers}: no such number of layers")
    return experts


def _without_dense_layers(experts: Experts | None) -> int | None:
    """The width of a dense layer where there is none to be read: any would do. None where one is needed."""
    return None if experts is None or experts.dense_layers else experts.intermediate


def _linear(fields: _Fields) -> GatedDeltaNet:
    return GatedDeltaNet(
        key_heads=fields.integer("linear_num_key_heads"),
        value_heads=fields.integer("linear_num_value_heads"),
        key_dim=fields.integer("linear_key_head_dim"),
        value_dim=fields.integer("linear_value_head_dim"),
        kernel=fields.integer("linear_conv_kernel_dim"),
    )


def _vision(config: Mapping[str, Any]) -> VisionTower | None:
    vision = config.get("vision_config")
    if not isinstance(vision, Mapping):
        return None
    fields = _Fields({"model_type": "vision", **vision})
    merge = fields.get("spatial_merge_size", "merge_kernel_size", default=2)
    side = fields.integer("init_pos_emb_height", default=0)
    return VisionTower(
        layers=fields.integer("depth", "num_hidden_layers", "vt_num_hidden_layers"),
        hidden=fields.integer("hidden_size", "vt_hidden_size"),
        intermediate=fields.integer("intermediate_size", "vt_intermediate_size"),
        patch=fields.integer("patch_size"),
        position_table=fields.integer("num_position_embeddings", default=side * side),
        merged_patches=merge[0] * merge[1] if isinstance(merge, list) else int(merge) ** 2,
        frames=fields.integer("temporal_patch_size", default=1),
        image_tokens=LARGEST_IMAGE.get(str(config.get("model_type")), 0),
    )


def _precision(quantization: object, *, dense: bool) -> Precision:
    """How the weights are stored. Formats of 4 bits leave all but the routed experts of a mixture in bf16."""
    if quantization is None:
        return Precision(name="bf16", title="bf16", expert_bytes=BF16_BYTES, linear_bytes=BF16_BYTES)
    if not isinstance(quantization, Mapping):
        raise ConfigError("quantization_config in config.json is no object")
    method = str(quantization.get("quant_method"))
    if method == "fp8":
        block = quantization.get("weight_block_size") or [1, 1]
        if not isinstance(block, list) or len(block) != 2 or block[0] != block[1] or not _positive(block[0]):
            raise ConfigError(f"weight_block_size in config.json is {block!r}; two equal positive numbers are known")
        unit = block[0]
        scaled = 1 + (4 / unit**2 if unit > 1 else 0)
        return Precision(name="fp8", title=f"FP8, unit {unit}", expert_bytes=scaled, linear_bytes=scaled, unit=unit)
    bits, group = _bits_and_group(method, quantization)
    if bits not in (4, 8) or group < 1:
        raise ConfigError(f"quantization_config in config.json: {bits} bits in groups of {group} are not known")
    if bits == 8:
        return Precision(name="fp8", title="8 bits by channel", expert_bytes=1.0, linear_bytes=1.0)
    name = "nvfp4" if method == "modelopt" else "int4"
    size = bits / 8 + (1 / group if name == "nvfp4" else BF16_BYTES / group)
    linear = size if dense else BF16_BYTES
    unit = min(group, SMALLEST_GPTQ_GROUP) if method in ("gptq", "awq") and not dense else group
    return Precision(name=name, title=f"{name} in groups of {group}", expert_bytes=size, linear_bytes=linear, unit=unit)


def _positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _bits_and_group(method: str, quantization: Mapping[str, Any]) -> tuple[int, int]:
    if method in ("gptq", "awq"):
        return int(quantization.get("bits", 4)), int(quantization.get("group_size", 128))
    if method == "modelopt":
        return 4, int(quantization.get("group_size", 16))
    groups = quantization.get("config_groups")
    if method == "compressed-tensors" and isinstance(groups, Mapping) and groups:
        weights = next(iter(groups.values())).get("weights") or {}
        return int(weights.get("num_bits", 8)), int(weights.get("group_size") or 32)
    raise ConfigError(
        f"unknown quantization: quant_method is {method!r}; known are fp8, compressed-tensors, gptq, awq, modelopt"
    )
