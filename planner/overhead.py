"""What of a GPU is neither weights nor KV cache: one sum of named terms for every model.

Each constant says what it stands for and where it was read: on one H200 with dummy weights (vLLM 0.24.0, 2026-12,
bench/memory_cases.yaml) or off published start-up logs. bench/memory_accuracy.py holds the sum against all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.hardware import Gpu
from planner.models import BF16_BYTES, GIB, Model
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
    """One part of the memory that is neither weights nor KV cache, in GiB per GPU, with its reason."""

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
# Rows of hidden size that one layer holds for each token beside attention and MLP: residual, norms, all-reduce.
# Kimi-K2 takes 217.6 KiB a token, of which the experts' workspaces are 144; Qwen3-235B 210.8, of which 128 are the
# experts' and 34 those of attention.
HIDDEN_COPIES = 5.3
# More such rows with tensor parallel: what is summed over the ranks has a buffer of its own. Off the logs of 4 and 8
# GPUs (Kimi-K2.6 and Qwen3-235B with 32,768 batched tokens).
REDUCED_COPIES = 4.7
# Full-vocabulary fp32 rows of the profiling run's sampler for each sequence (logits in bf16 and fp32, sorted values,
# 8-byte indices, probabilities): 1024 sequences of Qwen3-235B took 3.08 GiB, which is 5.3 rows each.
SAMPLER_COPIES = 5.3
# vLLM caps the context that MLA expands at once during a long prefill.
MLA_WORKSPACE_TOKENS = 65_536
# Decode attention splits a sequence 32 ways and joins fp32 partial results. Graphs keep them for the largest batch:
# 8.1 MiB a sequence for Kimi-K2 (64 heads of 512), of which one copy is 4.
SPLITS = 32
SPLIT_COPIES = 2
LARGEST_GRAPH = 512
# GiB per layer and captured batch size, from logged estimates: 0.21 (40 layers, 32 sequences) to 1.76 (94 layers,
# 128).
GRAPH_GIB_PER_LAYER_AND_SIZE = 0.0003


def captured_batch_sizes(max_num_seqs: int) -> int:
    """How many batch sizes vLLM captures: 1, 2, 4, by 8 to 256, by 16 to 512; prefill up to twice the sequences."""
    sizes = (1, 2, 4, *range(8, 256, 8), *range(256, LARGEST_GRAPH + 1, 16))
    return sum((size <= 2 * max_num_seqs) + (size <= max_num_seqs) for size in sizes)


def overhead(model: Model, gpu: Gpu, stage: Stage, load: Load) -> tuple[OverheadTerm, ...]:
    """The terms of one stage; those that are zero are left out."""
    shape, sizes = stage.shape, captured_batch_sizes(load.max_num_seqs)
    communicators = (
        ("tensor", TENSOR_PARALLEL_BUFFERS_GIB, shape.tensor > 1),
        ("pipeline", PIPELINE_BUFFERS_GIB, shape.pipeline > 1),
    )
    split = _split_bytes(model, shape, load) / GIB
    graphs = stage.layers * sizes * GRAPH_GIB_PER_LAYER_AND_SIZE
    terms = (
        OverheadTerm(name="framework", gib=FRAMEWORK_GIB, why="cuBLAS and kernel modules, outside of torch"),
        OverheadTerm(
            name="NCCL",
            gib=sum(gib for _, gib, there in communicators if there),
            why=" + ".join(f"{gib} GiB for {name} parallel" for name, gib, there in communicators if there),
        ),
        _peak(model, gpu, stage, load),
        OverheadTerm(
            name="CUDA graphs",
            gib=graphs + split,
            why=f"{stage.layers} layers x {sizes} captures x {GRAPH_GIB_PER_LAYER_AND_SIZE} GiB = {graphs:.2f}; "
            f"decode attention's {SPLITS} splits of {min(load.max_num_seqs, LARGEST_GRAPH)} sequences {split:.2f}",
        ),
    )
    return tuple(term for term in terms if term.gib)


def _peak(model: Model, gpu: Gpu, stage: Stage, load: Load) -> OverheadTerm:
    """The largest of what the profiling run holds one after the other: image encoder, forward pass, sampler."""
    tensor, tokens = stage.shape.tensor, load.max_num_batched_tokens
    context = min(MLA_WORKSPACE_TOKENS, 8 * load.max_model_len)
    attention = model.architecture.attention
    expanded = BF16_BYTES * attention.prefill_workspace_values(context, tensor) / GIB
    row = _row_bytes(model, gpu, stage.shape)
    forward = tokens * row / GIB + expanded
    phases = [
        OverheadTerm(
            name="activations",
            gib=forward,
            why=f"{tokens} batched tokens x {row / 1024:.1f} KiB through one layer"
            + (f", and {expanded:.2f} GiB of MLA cache expanded for a long prefill" if expanded else ""),
        )
    ]
    if stage.last:
        hidden = BF16_BYTES * tokens * model.architecture.hidden
        sampled = 4 * SAMPLER_COPIES * load.max_num_seqs * model.architecture.vocabulary
        why = f"{load.max_num_seqs} sequences x {model.architecture.vocabulary} words x 4 bytes x {SAMPLER_COPIES}"
        phases.append(OverheadTerm(name="sampler", gib=(hidden + sampled) / GIB, why=why))
    if stage.number == 0 and model.architecture.vision is not None:
        vision = model.architecture.vision
        patches = tokens * vision.merged_patches
        encoder = BF16_BYTES * patches * (4 * vision.hidden + vision.intermediate)
        why = f"{patches} patches through one layer of the image encoder"
        phases.append(OverheadTerm(name="vision", gib=encoder / GIB, why=why))
    return max(phases, key=lambda phase: phase.gib)


def _row_bytes(model: Model, gpu: Gpu, shape: Parallelism) -> float:
    """Bytes that one token takes in one layer's forward pass."""
    architecture, experts = model.architecture, model.architecture.experts
    hidden = architecture.hidden
    mlp = 2 * architecture.intermediate / shape.tensor
    if experts is not None:
        # One row for each expert of the token: in and out of it. Marlin kernels (4-bit, or FP8 without FP8
        # arithmetic) write the narrow side once, the others keep two workspaces of the wider side.
        width = experts.intermediate / (1 if shape.expert else shape.tensor)
        narrow = model.precision == "int4" or (model.precision == "fp8" and not gpu.has_fp8)
        workspaces = hidden + width if narrow else max(width, hidden) + max(2 * width, hidden)
        mlp = max(mlp, experts.active * workspaces)
    copies = HIDDEN_COPIES + REDUCED_COPIES * (shape.tensor > 1)
    return BF16_BYTES * (copies * hidden + architecture.attention.activation_values(shape.tensor) + mlp)


def _split_bytes(model: Model, shape: Parallelism, load: Load) -> float:
    attention = model.architecture.attention
    sequences = min(load.max_num_seqs, LARGEST_GRAPH)
    return 4 * SPLIT_COPIES * SPLITS * sequences * attention.heads / shape.tensor * attention.value_width
