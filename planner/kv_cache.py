"""How vLLM lays out the cache of one pipeline stage: blocks of tokens, and what a request takes of them.

A hybrid model's linear-attention layers keep one state per sequence. vLLM stores it in the same pool: a block is
widened until it holds a state, and each sequence takes one block for every group of linear layers.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.models import Architecture
from planner.parallelism import Parallelism

BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLayout:
    """The pool of one rank. `state_blocks` are a sequence's blocks for linear attention, whatever its length.

    `explained`: bytes of a token and of a block as formulas with their numbers.
    """

    bytes_per_token: int
    block_tokens: int
    block_bytes: int
    state_blocks: int
    context: int
    explained: tuple[str, ...]

    def blocks(self, free_bytes: float) -> int:
        """How many blocks fit into `free_bytes`."""
        return max(0, int(free_bytes // self.block_bytes))

    def requests(self, free_bytes: float, tokens: int) -> float:
        """How many requests of `tokens` fit into `free_bytes`."""
        return self.blocks(free_bytes) / self.blocks_per_request(tokens)

    def tokens(self, free_bytes: float, length: int) -> int:
        """Tokens that requests of `length` hold at once: what vLLM logs as the size of its cache."""
        if not self.state_blocks:
            return self.blocks(free_bytes) * self.block_tokens * self.context
        return int(self.requests(free_bytes, length) * length)

    def blocks_per_request(self, tokens: int) -> int:
        """Blocks of a request of `tokens`: those that grow with its length, and its states."""
        return -(-tokens // (self.block_tokens * self.context)) + self.state_blocks


def layout(architecture: Architecture, layers: range, shape: Parallelism, value_bytes: int) -> CacheLayout:
    """The cache of the stage that holds `layers`, at `value_bytes` a cached value (2: bf16, 1: fp8)."""
    per_layer = architecture.attention.kv_bytes_per_token(shape.tensor, value_bytes)
    linear = sum(1 for layer in layers if architecture.is_linear(layer))
    growing = len(layers) - linear
    tokens, depth, groups, state = BLOCK_TOKENS, growing, 0, ""
    if architecture.linear_attention is not None:
        bytes_ = architecture.linear_attention.state_bytes(shape.tensor)
        tokens = _at_least(bytes_ / per_layer)
        groups = architecture.full_attention_every - 1
        depth = max(growing, -(-linear // groups))
        written = architecture.linear_attention.state_formula(shape.tensor)
        state = f"; the fewest tokens, by {BLOCK_TOKENS}, whose cache in one layer holds a state of {written}"
    one = architecture.attention.kv_formula(shape.tensor, value_bytes)
    return CacheLayout(
        bytes_per_token=growing * per_layer,
        block_tokens=tokens,
        block_bytes=tokens * depth * per_layer,
        state_blocks=groups,
        context=shape.context,
        explained=(
            f"a token takes {growing * per_layer:,} bytes on this GPU = {growing} layers x {one}",
            f"a block takes {tokens * depth * per_layer:,} bytes = {tokens} tokens x {depth} layers x {one}{state}",
        ),
    )


def _at_least(tokens: float) -> int:
    """The smallest multiple of vLLM's block that holds `tokens`."""
    return int(-(-tokens // BLOCK_TOKENS)) * BLOCK_TOKENS
