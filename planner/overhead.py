"""What of a GPU is neither weights nor KV cache: one sum of named terms for every model.

Each constant says what it stands for and where it was read: on one H200 with dummy weights (vLLM 0.24.0, 2026-12,
bench/memory_cases.yaml) or off published start-up logs. bench/memory_accuracy.py holds the sum against all of them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from planner.activations import forward
from planner.attention import MultiHeadLatentAttention
from planner.models import BF16_BYTES, GIB, Model, VisionTower
from planner.parallelism import Parallelism
from planner.settings import Serving


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How the model is to be run: the settings that decide memory. Lengths are in tokens."""

    gpu_memory_utilization: float
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_cache_dtype: str = "auto"

    @property
    def kv_value_bytes(self) -> int:
        """Bytes of a cached value: bf16 unless told otherwise."""
        return 1 if self.kv_cache_dtype.startswith("fp8") else 2

    @classmethod
    def of(cls, serving: Serving) -> Load:
        """The load that a stack file's `serving` section describes."""
        return cls(
            gpu_memory_utilization=serving.gpu_memory_utilization,
            max_model_len=serving.max_model_len,
            max_num_seqs=serving.max_num_seqs,
            max_num_batched_tokens=serving.max_num_batched_tokens,
            kv_cache_dtype=serving.kv_cache_dtype,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadTerm:
    """One part of the memory that is neither weights nor KV cache, in GiB per GPU.

    `why`: the same as a formula with its numbers, and behind a semicolon what they are.
    """

    name: str
    gib: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Which pipeline stage is looked at: its number from 0, and how many layers it has."""

    number: int
    layers: int
    shape: Parallelism

    @property
    def last(self) -> bool:
        """Whether logits are computed and sampled here."""
        return self.number == self.shape.pipeline - 1


# cuBLAS and kernel modules outside of torch: 0.22 to 0.23 GiB for every architecture measured. (The CUDA context,
# 0.51 GiB, was there before and is not counted by vLLM.)
FRAMEWORK_GIB = 0.23
# NCCL channels and custom all-reduce buffers of a communicator; the two make most of the 2.53 GiB outside of torch
# that were logged for TP8 x PP2 (vllm-project/vllm#13074, an older release).
TENSOR_PARALLEL_BUFFERS_GIB = 0.8
PIPELINE_BUFFERS_GIB = 0.6
# Full-vocabulary fp32 rows of the profiling run's sampler for each sequence (logits in bf16 and fp32, sorted values,
# 8-byte indices, probabilities): 1024 sequences of Qwen3-235B took 3.08 GiB, which is 5.3 rows each.
SAMPLER_COPIES = 5.3
# Rows of the image encoder's width while it attends: three as projected, four rotated, five of input and output.
# Qwen3.5 took them and its pixels for each patch of its largest image.
ENCODER_ROWS = 12
# Decode attention splits a sequence 32 ways and joins fp32 partial results. Graphs keep them for the largest batch:
# 8.1 MiB a sequence for Kimi-K2 (64 heads of 512), of which one copy is 4.
SPLITS = 32
SPLIT_COPIES = 2
LARGEST_GRAPH = 512
# Part of what vLLM logs as "Model loading took".
SPARSE_ATTENTION = "sparse attention"
# GiB per layer and captured batch size, from logged estimates: 0.21 (40 layers, 32 sequences) to 1.76 (94 layers,
# 128).
GRAPH_GIB_PER_LAYER_AND_SIZE = 0.0003


@functools.cache
def captured_batch_sizes(max_num_seqs: int) -> int:
    """How many batch sizes vLLM captures: 1, 2, 4, by 8 to 256, by 16 to 512; prefill up to twice the sequences."""
    sizes = (1, 2, 4, *range(8, 256, 8), *range(256, LARGEST_GRAPH + 1, 16))
    return sum((size <= 2 * max_num_seqs) + (size <= max_num_seqs) for size in sizes)


def overhead(model: Model, stage: Stage, load: Load) -> tuple[OverheadTerm, ...]:
    """The terms of one stage; those that are zero are left out."""
    terms = (
        OverheadTerm(
            name="framework",
            gib=FRAMEWORK_GIB,
            why="measured on one H200 with vLLM 0.24.0: cuBLAS and kernel modules, outside of torch",
        ),
        _communicators(stage.shape),
        _peak(model, stage, load),
        _graphs(stage, load),
        _decoding(model, stage.shape, load),
        _sparse_attention(model, stage.shape, load),
    )
    return tuple(term for term in terms if term.gib)


def _communicators(shape: Parallelism) -> OverheadTerm:
    each = (("tensor", TENSOR_PARALLEL_BUFFERS_GIB, shape.tensor), ("pipeline", PIPELINE_BUFFERS_GIB, shape.pipeline))
    there = tuple((name, gib) for name, gib, ranks in each if ranks > 1)
    buffers = " + ".join(f"{gib} GiB for {name} parallel" for name, gib in there)
    why = f"{buffers}; NCCL's channels and custom all-reduce, from the log of vllm-project/vllm#13074"
    return OverheadTerm(name="NCCL", gib=sum(gib for _, gib in there), why=why)


def _graphs(stage: Stage, load: Load) -> OverheadTerm:
    sizes = captured_batch_sizes(load.max_num_seqs)
    return OverheadTerm(
        name="CUDA graphs",
        gib=stage.layers * sizes * GRAPH_GIB_PER_LAYER_AND_SIZE,
        why=f"{stage.layers} layers x {sizes} captures x {GRAPH_GIB_PER_LAYER_AND_SIZE} GiB; from logged estimates; "
        f"vLLM captures batches of 1, 2, 4, by 8 to 256, by 16 to {LARGEST_GRAPH}: for decoding up to "
        f"{load.max_num_seqs} sequences, for prefill up to twice as many",
    )


def _decoding(model: Model, shape: Parallelism, load: Load) -> OverheadTerm:
    attention, sequences = model.architecture.attention, min(load.max_num_seqs, LARGEST_GRAPH)
    if isinstance(attention, MultiHeadLatentAttention) and attention.indexer is not None:
        size = 4.0 * sequences * load.max_model_len
        why = f"{sequences} sequences x {load.max_model_len} tokens x 4 bytes; the indexer's logits, which graphs keep"
    else:
        size = 4 * SPLIT_COPIES * SPLITS * sequences * attention.heads / shape.tensor * attention.value_width
        why = (
            f"{SPLIT_COPIES} copies x {SPLITS} splits x {sequences} sequences x {attention.heads} / {shape.tensor} "
            f"heads x {attention.value_width} values x 4 bytes; partial results that graphs keep"
        )
    return OverheadTerm(name="decode attention", gib=size / GIB, why=why)


def _sparse_attention(model: Model, shape: Parallelism, load: Load) -> OverheadTerm:
    attention, size, written = model.architecture.attention, 0.0, "0"
    if isinstance(attention, MultiHeadLatentAttention):
        batch, length = load.max_num_batched_tokens, load.max_model_len
        size, written = attention.sparse_buffers(batch, length, shape.tensor, load.kv_value_bytes)
    why = f"{written}; chosen tokens, joined queries, an FP8 cache in bf16: vLLM logs them as weights"
    return OverheadTerm(name=SPARSE_ATTENTION, gib=size / GIB, why=why)


def _peak(model: Model, stage: Stage, load: Load) -> OverheadTerm:
    """The largest of what the profiling run holds one after the other: image encoder, forward pass, sampler."""
    phases = [_forward(model, stage.shape, load)]
    if stage.last:
        phases.append(_sampler(model, load))
    if stage.number == 0 and model.architecture.vision is not None:
        phases.append(_image_encoder(model.architecture.vision, load))
    return max(phases, key=lambda phase: phase.gib)


def _forward(model: Model, shape: Parallelism, load: Load) -> OverheadTerm:
    size, why = forward(model, shape, load.max_num_batched_tokens, load.max_model_len, load.kv_value_bytes)
    return OverheadTerm(name="activations", gib=size / GIB, why=why)


def _sampler(model: Model, load: Load) -> OverheadTerm:
    tokens, hidden, words = load.max_num_batched_tokens, model.architecture.hidden, model.architecture.vocabulary
    size = BF16_BYTES * tokens * hidden + 4 * SAMPLER_COPIES * load.max_num_seqs * words
    return OverheadTerm(
        name="sampler",
        gib=size / GIB,
        why=f"{tokens} batched tokens x {hidden} values x 2 bytes + {load.max_num_seqs} sequences x {words} words x "
        f"{SAMPLER_COPIES} copies x 4 bytes; hidden states, and logits while they are sampled",
    )


def _image_encoder(vision: VisionTower, load: Load) -> OverheadTerm:
    tokens = max(load.max_num_batched_tokens, vision.image_tokens)
    size = BF16_BYTES * tokens * vision.merged_patches * (ENCODER_ROWS * vision.hidden + vision.pixels)
    return OverheadTerm(
        name="vision",
        gib=size / GIB,
        why=f"{tokens} tokens of images x {vision.merged_patches} patches x ({ENCODER_ROWS} x {vision.hidden} + "
        f"{vision.pixels}) values x 2 bytes; one layer of the image encoder, and pixels",
    )
