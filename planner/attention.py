"""The kinds of attention: parameters of one layer, and what it keeps of each token or of each sequence.

All figures are of one rank of `tensor_parallel`. Heads are split over the ranks; what cannot be split is whole on
every rank. What ends in `_formula` is the same figure with its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.sparse_attention import SparseIndexer

_BF16 = 2
_FP32 = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiHeadLatentAttention:
    """MLA (DeepSeek-V3): one compressed KV vector per token and layer, whole on every rank."""

    heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    indexer: SparseIndexer | None = None

    @property
    def value_width(self) -> int:
        """Values that decoding adds up for each head: the compressed vector itself."""
        return self.kv_lora_rank

    @property
    def split_widths(self) -> tuple[tuple[int, str], ...]:
        """The widths of projections that are split by head, and what has them."""
        keys, rotary, values = self.qk_nope_head_dim, self.qk_rope_head_dim, self.v_head_dim
        queries = (self.heads * (keys + rotary), "query projection")
        return queries, (self.heads * (keys + values), "KV up projection"), (self.heads * values, "attention output")

    def parameters(self, hidden: int, tensor_parallel: int) -> float:
        """Down projections are whole on every rank, the others are split by head."""
        whole = hidden * (self.q_lora_rank + self.kv_lora_rank + self.qk_rope_head_dim)
        if self.indexer is not None:
            whole += self.indexer.parameters(hidden, self.q_lora_rank)
        query = self.q_lora_rank * self.heads * (self.qk_nope_head_dim + self.qk_rope_head_dim)
        split = query + self._kv_up() + self.heads * self.v_head_dim * hidden
        return whole + split / tensor_parallel

    def parameters_formula(self, hidden: int, tensor_parallel: int) -> str:
        """The same with its numbers: what is whole, and what is split."""
        keys, rotary, values = self.qk_nope_head_dim, self.qk_rope_head_dim, self.v_head_dim
        sparse = "" if self.indexer is None else f"{self.indexer.parameters_formula(hidden, self.q_lora_rank)} + "
        return (
            f"{hidden} x ({self.q_lora_rank} + {self.kv_lora_rank} + {rotary}) + {sparse}"
            f"{self.heads} / {tensor_parallel} x ({self.q_lora_rank} x ({keys} + {rotary}) + "
            f"{self.kv_lora_rank} x ({keys} + {values}) + {values} x {hidden})"
        )

    def activation_values(self, tensor_parallel: int) -> float:
        """Values of one token that outlive attention: its query and output."""
        return self.heads / tensor_parallel * (self.qk_nope_head_dim + self.qk_rope_head_dim + self.v_head_dim)

    def runtime_copies(self, tensor_parallel: int) -> float:
        """Parameters that vLLM stores a second time, in bf16: the KV up projection, transposed for decoding."""
        return self._kv_up() / tensor_parallel

    def runtime_copies_formula(self, tensor_parallel: int) -> str:
        """The same with its numbers."""
        per_head = f"({self.qk_nope_head_dim} + {self.v_head_dim})"
        return f"{self.kv_lora_rank} x {self.heads} / {tensor_parallel} x {per_head}"

    def kv_bytes_per_token(self, tensor_parallel: int, value_bytes: int) -> int:  # noqa: ARG002 (same on every rank)
        """KV bytes of one token in one layer, at `value_bytes` a value (2: bf16, 1: fp8).

        Sparse attention's fp8 layout keeps the rotary part in bf16, and one fp32 scale per 128 values.
        """
        if self.indexer is None:
            return (self.kv_lora_rank + self.qk_rope_head_dim) * value_bytes
        if value_bytes == 1:
            scales = self.kv_lora_rank // 128 * _FP32
            return self.kv_lora_rank + scales + self.qk_rope_head_dim * _BF16 + self.indexer.kv_bytes_per_token
        return (self.kv_lora_rank + self.qk_rope_head_dim) * value_bytes + self.indexer.kv_bytes_per_token

    def kv_formula(self, tensor_parallel: int, value_bytes: int) -> str:  # noqa: ARG002 (same on every rank)
        """The same with its numbers."""
        latent, rotary = self.kv_lora_rank, self.qk_rope_head_dim
        if self.indexer is None:
            return f"({latent} + {rotary}) values x {value_bytes} bytes"
        index = f"({self.indexer.head_dim} x 1 + {_FP32}) bytes of index"
        if value_bytes == 1:
            return f"({latent} + {latent // 128} scales x {_FP32} + {rotary} x {_BF16} bytes + {index})"
        return f"(({latent} + {rotary}) values x {value_bytes} bytes + {index})"

    def prefill_workspace_values(self, tokens: int, tensor_parallel: int) -> int:
        """Values that vLLM expands from the compressed cache while it prefills over a long context: keys and values.

        Profiling allocates them for sparse attention too, which never expands (vLLM 0.24.0, mla_attention.py).
        """
        return tokens * (self.heads // tensor_parallel) * (self.qk_nope_head_dim + self.v_head_dim)

    def prefill_workspace_formula(self, tokens: int, tensor_parallel: int) -> str:
        """The same with its numbers."""
        per_head = f"({self.qk_nope_head_dim} + {self.v_head_dim}) values"
        return f"{tokens} expanded tokens x {self.heads // tensor_parallel} heads x {per_head}"

    def sparse_buffers(self, batch: int, length: int, tensor_parallel: int, value_bytes: int) -> tuple[float, str]:
        """Bytes that sparse attention keeps beside the cache, and how they are made up."""
        if self.indexer is None:
            return 0.0, "0"
        latent = self.kv_lora_rank + self.qk_rope_head_dim
        query = self.heads / tensor_parallel * latent
        return (
            self.indexer.buffer_bytes(batch, length, query, latent, value_bytes),
            self.indexer.buffer_formula(batch, length, query, latent, value_bytes),
        )

    def _kv_up(self) -> int:
        return self.kv_lora_rank * self.heads * (self.qk_nope_head_dim + self.v_head_dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedQueryAttention:
    """GQA: KV heads are split over the ranks, and repeated once there are more ranks than KV heads.

    `output_gate`: the query projection is twice as wide, its second half gates the output (Qwen3.5).
    """

    heads: int
    kv_heads: int
    head_dim: int
    output_gate: bool = False

    @property
    def value_width(self) -> int:
        """Values that decoding adds up for each head."""
        return self.head_dim

    @property
    def split_widths(self) -> tuple[tuple[int, str], ...]:
        """The width of the projection that is split by head and not merged with others, and what has it."""
        return ((self.heads * self.head_dim, "attention output"),)

    def parameters(self, hidden: int, tensor_parallel: int) -> float:
        """Query, key, value and output projections, split by head."""
        query_and_output = (3 if self.output_gate else 2) * self.heads / tensor_parallel
        return hidden * self.head_dim * (query_and_output + 2 * self._kv_heads(tensor_parallel))

    def parameters_formula(self, hidden: int, tensor_parallel: int) -> str:
        """The same with its numbers."""
        query_and_output = f"{3 if self.output_gate else 2} x {self.heads} / {tensor_parallel}"
        return f"{hidden} x {self.head_dim} x ({query_and_output} + 2 x {self._kv_heads(tensor_parallel)})"

    def activation_values(self, tensor_parallel: int) -> float:
        """Values of one token that outlive attention: its query, key, value and output.

        With a gate they are there twice, as the projection wrote them and apart, the gate among them.
        """
        of_query, of_key = (5, 3) if self.output_gate else (2, 2)
        return self.head_dim * (of_query * self.heads / tensor_parallel + of_key * self._kv_heads(tensor_parallel))

    def runtime_copies(self, tensor_parallel: int) -> float:  # noqa: ARG002 (none)
        """GQA stores nothing twice."""
        return 0.0

    def runtime_copies_formula(self, tensor_parallel: int) -> str:  # noqa: ARG002 (none)
        """The same with its numbers."""
        return "0"

    def kv_bytes_per_token(self, tensor_parallel: int, value_bytes: int) -> int:
        """KV bytes of one token in one layer, at `value_bytes` a value (2: bf16, 1: fp8)."""
        return 2 * self._kv_heads(tensor_parallel) * self.head_dim * value_bytes

    def kv_formula(self, tensor_parallel: int, value_bytes: int) -> str:
        """The same with its numbers: keys and values."""
        return f"2 x {self._kv_heads(tensor_parallel)} heads x {self.head_dim} values x {value_bytes} bytes"

    def _kv_heads(self, tensor_parallel: int) -> int:
        return max(1, self.kv_heads // tensor_parallel)


Attention = MultiHeadLatentAttention | GroupedQueryAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDeltaNet:
    """Linear attention (gated delta rule): a state of constant size for each sequence, whatever its length."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int

    def parameters(self, hidden: int, tensor_parallel: int) -> float:
        """Query, key, value, gate and output projections, two gates a head, and the short convolution."""
        keys, values = self.key_heads * self.key_dim, self.value_heads * self.value_dim
        projections = hidden * (2 * keys + 3 * values + 2 * self.value_heads)
        return (projections + self.kernel * (2 * keys + values)) / tensor_parallel

    def parameters_formula(self, hidden: int, tensor_parallel: int) -> str:
        """The same with its numbers."""
        keys, values = f"{self.key_heads} x {self.key_dim}", f"{self.value_heads} x {self.value_dim}"
        projections = f"{hidden} x (2 x {keys} + 3 x {values} + 2 x {self.value_heads})"
        return f"({projections} + {self.kernel} x (2 x {keys} + {values})) / {tensor_parallel}"

    def activation_values(self, tensor_parallel: int) -> float:
        """Values of one token that outlive the layer: query, key, value and gate as projected, and the output."""
        return (2 * self.key_heads * self.key_dim + 3 * self.value_heads * self.value_dim) / tensor_parallel

    def state_bytes(self, tensor_parallel: int) -> int:
        """One sequence's state in one layer: the recurrent matrix in fp32, the convolution's window in bf16."""
        recurrent = self.value_heads * self.key_dim * self.value_dim * _FP32
        window = (2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim) * (self.kernel - 1) * _BF16
        return (recurrent + window) // tensor_parallel

    def state_formula(self, tensor_parallel: int) -> str:
        """The same with its numbers."""
        keys, values = f"{self.key_heads} x {self.key_dim}", f"{self.value_heads} x {self.value_dim}"
        window = f"(2 x {keys} + {values}) x {self.kernel - 1} x {_BF16} bytes"
        return f"({values} x {self.key_dim} x {_FP32} bytes + {window}) / {tensor_parallel}"
