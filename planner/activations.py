"""What one forward pass of a full batch holds at its peak, as vLLM's profiling run sees it.

Taken apart with torch's allocation history on one H200 (vLLM 0.24.0, 2026-12-01): from one attention operation to the
next live attention's values, the MLP's or the experts' workspace, which vLLM keeps from layer to layer, and either the
rows that the MLP needs or what is allocated for long contexts while attention runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.attention import MultiHeadLatentAttention
from planner.models import BF16_BYTES, Model
from planner.parallelism import Parallelism
from planner.sparse_attention import LOGITS_BYTES

# Rows of hidden size that one layer holds for each token while the MLP runs: residual, norms, what is summed up.
# Kimi-K2 takes 5.3 and Qwen3.5 4 to 5 of them; Qwen3-235B 210.8 KiB a token, of which 128 are the experts' and 34
# those of attention.
HIDDEN_COPIES = 5.3
# More such rows with tensor parallel: what is summed over the ranks has a buffer of its own. Off the logs of 4 and 8
# GPUs (Kimi-K2.6 and Qwen3-235B with 32,768 batched tokens).
REDUCED_COPIES = 4.7
# vLLM caps the context that MLA expands at once during a long prefill.
MLA_WORKSPACE_TOKENS = 65_536


def forward(model: Model, shape: Parallelism, batch: int, length: int, value_bytes: int) -> tuple[float, str]:
    """Bytes at the peak, and how they are made up; `batch` tokens a step, requests of at most `length`."""
    attention, linear = model.architecture.attention, model.architecture.linear_attention
    values = attention.activation_values(shape.tensor)
    if linear is not None:
        values += linear.activation_values(shape.tensor)
    workspace, written = _workspace(model, shape, batch, length, value_bytes)
    size, formula, meaning = max(_phases(model, shape, batch, length))
    return (
        BF16_BYTES * batch * values + workspace + size,
        f"{batch} batched tokens x {values:g} values x 2 bytes + {written} + {formula}; attention and MLP of one "
        f"layer, {meaning}",
    )


def _workspace(model: Model, shape: Parallelism, batch: int, length: int, value_bytes: int) -> tuple[float, str]:
    """Bytes of the workspace that MLP or experts write to, and that sparse attention gathers keys in."""
    attention = model.architecture.attention
    values, written = max(_mlps(model, shape))
    size, formula = BF16_BYTES * batch * values, f"{batch} batched tokens x {written} values x 2 bytes"
    if not isinstance(attention, MultiHeadLatentAttention) or attention.indexer is None:
        return size, formula
    if attention.indexer.gathered_bytes(length) > size:
        size, formula = attention.indexer.gathered_bytes(length), attention.indexer.gathered_formula(length)
    # What sparse attention keeps anyway is the workspace of all where it is large enough.
    kept, _ = attention.sparse_buffers(batch, length, shape.tensor, value_bytes)
    return (0.0, "0") if size <= kept else (size, formula)


def _phases(model: Model, shape: Parallelism, batch: int, length: int) -> Iterator[tuple[float, str, str]]:
    """Bytes of what comes one after the other, their formulas, and what they are."""
    hidden, attention = model.architecture.hidden, model.architecture.attention
    copies = HIDDEN_COPIES + REDUCED_COPIES * (shape.tensor > 1)
    summed = f" and {REDUCED_COPIES} more, as ranks sum them up" if shape.tensor > 1 else ""
    rows = f"{batch} batched tokens x {hidden} values x 2 bytes"
    yield (
        BF16_BYTES * batch * copies * hidden,
        f"{batch} batched tokens x {copies:g} x {hidden} values x 2 bytes",
        f"{HIDDEN_COPIES} rows of the hidden size{summed}",
    )
    if not isinstance(attention, MultiHeadLatentAttention):
        return
    context = min(MLA_WORKSPACE_TOKENS, 8 * length)
    expanded = attention.prefill_workspace_values(context, shape.tensor)
    yield (
        BF16_BYTES * (batch * hidden + expanded),
        f"{rows} + {attention.prefill_workspace_formula(context, shape.tensor)} x 2 bytes",
        "one row of the hidden size, and cache that MLA expands for a long prefill",
    )
    if attention.indexer is not None:
        meaning = "one row of the hidden size, and the indexer's logits"
        yield BF16_BYTES * batch * hidden + LOGITS_BYTES, f"{rows} + {LOGITS_BYTES} bytes", meaning


def _mlps(model: Model, shape: Parallelism) -> Iterator[tuple[float, str]]:
    """Values of one token in a dense layer, and in a layer of experts."""
    architecture, experts, hidden = model.architecture, model.architecture.experts, model.architecture.hidden
    yield 2 * architecture.intermediate / shape.tensor, f"2 x {architecture.intermediate} / {shape.tensor}"
    if experts is None:
        return
    # Two workspaces with one row for each expert of the token: what is wider, the expert or the hidden size. INT4
    # kernels had one narrow row less before vLLM 0.23.0.
    width = experts.intermediate / (1 if shape.expert else shape.tensor)
    first, second = max(width, hidden), max(2 * width, hidden)
    yield experts.active * (first + second), f"{experts.active} experts x ({first:g} + {second:g})"
