"""DeepSeek sparse attention (DSA): what picks the tokens that attention reads, and the buffers that vLLM keeps for it.

Buffers as vLLM 0.24.0 makes them (v1/attention/backends/mla/flashmla_sparse.py and indexer.py,
model_executor/layers/sparse_attn_indexer.py), each seen in its log on one H200.
"""

from __future__ import annotations

from dataclasses import dataclass

_BF16 = 2
_FP32 = 4
_INT32 = 4
# An FP8 cache is turned into bf16 for prefill: so many requests of full length at once.
_PREFILLED_REQUESTS = 5
# Keys that prefill gathers for the indexer: so many requests of full length at once.
_GATHERED_REQUESTS = 40
# VLLM_SPARSE_INDEXER_MAX_LOGITS_MB, allocated once while profiling.
LOGITS_BYTES = 512 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseIndexer:
    """A small key per token picks the `chosen` tokens that attention reads. Whole on every rank."""

    heads: int
    head_dim: int
    chosen: int = 2048

    def parameters(self, hidden: int, q_lora_rank: int) -> int:
        """Query and key projection, and one weight per head."""
        return q_lora_rank * self.heads * self.head_dim + hidden * (self.head_dim + self.heads)

    def parameters_formula(self, hidden: int, q_lora_rank: int) -> str:
        """The same with its numbers."""
        return f"{q_lora_rank} x {self.heads} x {self.head_dim} + {hidden} x ({self.head_dim} + {self.heads})"

    @property
    def kv_bytes_per_token(self) -> int:
        """The key in fp8 and one fp32 scale."""
        return self.head_dim + _FP32

    def buffer_bytes(self, batch: int, length: int, query: float, latent: int, value_bytes: int) -> float:
        """Bytes kept from the start on: what was chosen, joined queries, and an FP8 cache's bf16 copy.

        For `batch` tokens a step and requests of `length`, `query` values of a token on this rank and `latent` cached
        ones. vLLM logs them as part of the weights.
        """
        copied = _PREFILLED_REQUESTS * length * latent * _BF16 * (value_bytes == 1)
        return batch * (self.chosen * _INT32 + query * _BF16) + copied

    def buffer_formula(self, batch: int, length: int, query: float, latent: int, value_bytes: int) -> str:
        """The same with its numbers."""
        copied = f" + {_PREFILLED_REQUESTS} x {length} tokens x {latent} values x {_BF16} bytes" * (value_bytes == 1)
        return f"{batch} batched tokens x ({self.chosen} x {_INT32} + {query:g} values x {_BF16} bytes){copied}"

    def gathered_bytes(self, length: int) -> int:
        """Bytes of keys that prefill gathers, in the workspace that the experts use too."""
        return _GATHERED_REQUESTS * length * self.kv_bytes_per_token

    def gathered_formula(self, length: int) -> str:
        """The same with its numbers."""
        return f"{_GATHERED_REQUESTS} x {length} tokens x ({self.head_dim} + {_FP32}) bytes"
