"""The catalogue of models: what a checkpoint is made of, and what vLLM must be told to serve it.

Weights are computed from the architecture and held against the published size of the checkpoint, so that the
share of one tensor-parallel rank can be computed too. One model is one entry; nothing else in the planner
names a model.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1024**3
BF16_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiHeadLatentAttention:
    """MLA (DeepSeek-V3): one compressed KV vector per token and layer, whole on every rank."""

    heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int

    def replicated_parameters(self, hidden: int) -> int:
        """The down projections of query and KV: vLLM keeps them whole on every rank."""
        return hidden * (self.q_lora_rank + self.kv_lora_rank + self.qk_rope_head_dim)

    def sharded_parameters(self, hidden: int) -> int:
        """The projections that are split by head."""
        query = self.q_lora_rank * self.heads * (self.qk_nope_head_dim + self.qk_rope_head_dim)
        return query + self._kv_up() + self.heads * self.v_head_dim * hidden

    def runtime_copies(self) -> int:
        """Parameters that vLLM stores a second time: the KV up projection, transposed for decoding."""
        return self._kv_up()

    def kv_values_per_token(self, tensor_parallel: int) -> int:  # noqa: ARG002 (same on every rank)
        """KV values of one token in one layer on one rank."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    def prefill_workspace_values(self, tokens: int, tensor_parallel: int) -> int:
        """Values that vLLM expands from the compressed cache while it prefills over a long context.

        The up projection's output (keys and values), and the keys once more with their rotary part joined on.
        """
        per_head = 2 * self.qk_nope_head_dim + self.v_head_dim + self.qk_rope_head_dim
        return tokens * (self.heads // tensor_parallel) * per_head

    def _kv_up(self) -> int:
        return self.kv_lora_rank * self.heads * (self.qk_nope_head_dim + self.v_head_dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedQueryAttention:
    """GQA: KV heads are split over the ranks, and repeated once there are more ranks than KV heads."""

    heads: int
    kv_heads: int
    head_dim: int

    def replicated_parameters(self, hidden: int) -> int:  # noqa: ARG002 (nothing is replicated)
        """GQA has no projection that every rank keeps whole."""
        return 0

    def sharded_parameters(self, hidden: int) -> int:
        """Query, key, value and output projections, split by head."""
        return hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)

    def runtime_copies(self) -> int:
        """GQA stores nothing twice."""
        return 0

    def kv_values_per_token(self, tensor_parallel: int) -> int:
        """KV values of one token in one layer on one rank."""
        return 2 * max(1, self.kv_heads // tensor_parallel) * self.head_dim

    def prefill_workspace_values(self, tokens: int, tensor_parallel: int) -> int:  # noqa: ARG002 (reads in place)
        """GQA prefills straight from the cache."""
        return 0


Attention = MultiHeadLatentAttention | GroupedQueryAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Routed and shared experts of a mixture-of-experts layer; the first `dense_layers` layers have none."""

    routed: int
    active: int
    shared: int
    intermediate: int
    dense_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionTower:
    """The image encoder and its projector, kept in bf16 on the first pipeline stage."""

    layers: int
    hidden: int
    intermediate: int
    patch: int
    position_table: int
    merged_patches: int

    def parameters(self, text_hidden: int) -> int:
        """Encoder layers, patch embedding, position table, and the two-layer projector to the text width."""
        layer = 4 * self.hidden**2 + 2 * self.hidden * self.intermediate
        embedding = 3 * self.patch**2 * self.hidden + self.position_table * self.hidden
        merged = self.merged_patches * self.hidden
        return self.layers * layer + embedding + merged * (merged + text_hidden)


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What in a checkpoint's config.json decides memory. `intermediate` is that of a dense layer."""

    layers: int
    hidden: int
    vocabulary: int
    intermediate: int
    attention: Attention
    experts: Experts | None = None
    vision: VisionTower | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One checkpoint. `checkpoint_bytes` is the published size that the computed one is held against.

    Bytes per parameter: `expert_bytes` of the routed experts (4-bit values with a bf16 scale per group of 32
    make 0.5625), `linear_bytes` of attention, dense layers and shared experts; all else is bf16.
    """

    name: str
    repository: str
    title: str
    precision: str
    architecture: Architecture
    expert_bytes: float
    linear_bytes: float
    checkpoint_bytes: int
    total_parameters: float
    active_parameters: float
    context_tokens: int
    minimum_vllm: str
    flags: tuple[str, ...]
    licence: str
    gated: bool
    source: str


# No --quantization: the checkpoint's own compressed-tensors configuration says it, and vLLM refuses any
# other.
_KIMI_K2_5_FLAGS = (
    "--trust-remote-code",
    "--mm-encoder-tp-mode", "data",
    "--enable-auto-tool-choice",
    "--tool-call-parser", "kimi_k2",
    "--reasoning-parser", "kimi_k2",
)  # fmt: skip

KIMI_K2_5 = Model(
    name="kimi-k2.5",
    repository="moonshotai/Kimi-K2.5",
    title="Kimi-K2.5",
    precision="int4",
    architecture=Architecture(
        layers=61,
        hidden=7168,
        vocabulary=163_840,
        intermediate=18_432,
        attention=MultiHeadLatentAttention(
            heads=64,
            q_lora_rank=1536,
            kv_lora_rank=512,
            qk_nope_head_dim=128,
            qk_rope_head_dim=64,
            v_head_dim=128,
        ),
        experts=Experts(routed=384, active=8, shared=1, intermediate=2048, dense_layers=1),
        vision=VisionTower(
            layers=27, hidden=1152, intermediate=4304, patch=14, position_table=64 * 64, merged_patches=4
        ),
    ),
    expert_bytes=0.5 + BF16_BYTES / 32,
    linear_bytes=BF16_BYTES,
    checkpoint_bytes=595_150_000_000,
    total_parameters=1.0e12,
    active_parameters=32e9,
    context_tokens=262_144,
    minimum_vllm="0.19.1",
    flags=_KIMI_K2_5_FLAGS,
    licence="kimi-k2.5-license (modified MIT; secondary source)",
    gated=False,
    source="vllm-project/recipes Kimi-K2.5.yaml at 8959cf64 (2026-08-21); config.json fixtures",
)

CATALOGUE: dict[str, Model] = {model.name: model for model in (KIMI_K2_5,)}
