"""What a checkpoint is made of, and what vLLM must be told to serve it: the shape of a catalogue entry.

Weights are computed from the architecture, so that the share of one rank can be computed too; tests hold the sum
against the published size. The entries stand in `planner/catalogue/`; nothing else in the planner names a model.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.attention import Attention, GatedDeltaNet

GIB = 1024**3
BF16_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Routed and shared experts of a mixture-of-experts layer; the first `dense_layers` layers have none."""

    routed: int
    active: int
    shared: int
    intermediate: int
    dense_layers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionTower:
    """The image encoder and its projector, kept in bf16 on the first pipeline stage.

    `image_tokens`: the largest image, in tokens of the language model, where it is more than a small batch.
    """

    layers: int
    hidden: int
    intermediate: int
    patch: int
    position_table: int
    merged_patches: int
    frames: int = 1
    image_tokens: int = 0

    @property
    def pixels(self) -> int:
        """Values of one patch as it enters: three colours, of each frame."""
        return 3 * self.frames * self.patch**2

    def parameters(self, text_hidden: int) -> int:
        """Encoder layers, patch embedding, position table, and the two-layer projector to the text width."""
        layer = 4 * self.hidden**2 + 2 * self.hidden * self.intermediate
        embedding = self.pixels * self.hidden + self.position_table * self.hidden
        merged = self.merged_patches * self.hidden
        return self.layers * layer + embedding + merged * (merged + text_hidden)

    def parameters_formula(self, text_hidden: int) -> str:
        """The same with its numbers."""
        hidden, merged = self.hidden, f"{self.merged_patches} x {self.hidden}"
        layer = f"(4 x {hidden} x {hidden} + 2 x {hidden} x {self.intermediate})"
        embedding = f"(3 x {self.frames} x {self.patch} x {self.patch} + {self.position_table}) x {hidden}"
        return f"{self.layers} x {layer} + {embedding} + {merged} x ({merged} + {text_hidden})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What in a checkpoint's config.json decides memory. `intermediate` is that of a dense layer.

    With `linear_attention`, only every `full_attention_every`-th layer has `attention` and a cache that grows.
    `draft_layers` (multi-token prediction) lie in the checkpoint; vLLM loads them for speculation alone.
    """

    layers: int
    hidden: int
    vocabulary: int
    intermediate: int
    attention: Attention
    experts: Experts | None = None
    vision: VisionTower | None = None
    linear_attention: GatedDeltaNet | None = None
    full_attention_every: int = 1
    draft_layers: int = 0
    tied_embeddings: bool = False

    def is_linear(self, layer: int) -> bool:
        """Whether layer number `layer` (from 0) keeps a state of constant size instead of a KV cache."""
        return self.linear_attention is not None and (layer + 1) % self.full_attention_every != 0

    @property
    def kind(self) -> str:
        """The class of architecture, in words."""
        mixture = "MoE" if self.experts else "dense"
        vision = " VLM" if self.vision else ""
        return f"{mixture}{vision}{', hybrid linear attention' if self.linear_attention else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How a checkpoint stores its weights, in bytes per parameter, scales included.

    `expert_bytes` are those of the routed experts, `linear_bytes` those of attention, dense layers and shared
    experts; all else is bf16. A rank's share of a width must be a multiple of `unit`, the size of one block of
    scales.
    """

    name: str
    title: str
    expert_bytes: float
    linear_bytes: float
    unit: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where figures come from, and when it was read."""

    figures: str
    where: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One checkpoint; `family` is the name of the checkpoint that other precisions are made of.

    `checkpoint_bytes` is the published size that the computed one is held against, None where nobody publishes
    one. `denied_vllm` are releases that do not serve this model, beside those that serve none. `corrections`
    say what common descriptions of the model get wrong.
    """

    repository: str
    title: str
    family: str
    weights: Precision
    architecture: Architecture
    total_parameters: float
    active_parameters: float
    context_tokens: int
    minimum_vllm: str
    licence: str
    sources: tuple[Source, ...]
    checkpoint_bytes: int | None = None
    denied_vllm: tuple[str, ...] = ()
    required_flags: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    gated: bool = False
    corrections: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the catalogue and stack files call it: the checkpoint's own name in lower case."""
        return self.repository.rpartition("/")[2].lower()

    @property
    def precision(self) -> str:
        """bf16, fp8, int4 or nvfp4."""
        return self.weights.name

    @property
    def flags(self) -> tuple[str, ...]:
        """What vLLM must be told. No --quantization: the checkpoint says it, and vLLM refuses any other."""
        tools = ("--enable-auto-tool-choice", "--tool-call-parser", self.tool_call_parser)
        reasoning = ("--reasoning-parser", self.reasoning_parser)
        parsers = (*(tools if self.tool_call_parser else ()), *(reasoning if self.reasoning_parser else ()))
        return (*self.required_flags, *(flag for flag in parsers if flag))
