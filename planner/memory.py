"""Whether a model fits: GiB per GPU for every pipeline stage, and the KV tokens that stay free.

The overhead is one sum of named terms for every model. Its constants were read off published start-up logs of
vLLM and measurements on one H200 (vLLM 0.24.0): each says what it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.hardware import Gpu
from planner.kv_cache import CacheLayout, layout
from planner.models import BF16_BYTES, GIB, Model
from planner.parallelism import Parallelism
from planner.settings import Serving
from planner.weights import layers_per_stage, stage_bytes

# CUDA context, cuBLAS and kernel modules: what a single-GPU process holds outside of torch.
FRAMEWORK_GIB = 0.6
# NCCL channels and custom all-reduce buffers of one communicator. Together with the context they make the
# 2.53 GiB "non-torch" that vLLM logged for DeepSeek-R1 at TP8 x PP2 (vllm-project/vllm#13074).
TENSOR_PARALLEL_BUFFERS_GIB = 1.0
PIPELINE_BUFFERS_GIB = 0.9
# Full-vocabulary fp32 rows that the profiling run's sampler holds per sequence (logits, sorted values and
# 8-byte indices, probabilities, cumulated sum): Kimi-K2 on 8x H200 left 7.8 GiB at 1024 sequences and 3.2 GiB
# at 1.
SAMPLER_COPIES = 7
# Hidden-size rows that live at once per batched token (residual, norm, attention output, shared expert,
# all-reduce).
HIDDEN_COPIES = 5
# vLLM caps the context that MLA expands at once during a long prefill.
MLA_WORKSPACE_TOKENS = 65_536
# GiB per layer and captured batch size; estimates in logs: 0.13 GiB (Kimi-K2.6, 1 sequence), 1.76
# (Qwen3-235B, 128).
GRAPH_GIB_PER_LAYER_AND_SIZE = 0.0005


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
class StageFit:
    """One pipeline stage: GiB on each of its GPUs. `kv_gib` is negative when the rest is too much."""

    stage: int
    layers: int
    weights_gib: float
    overhead: tuple[OverheadTerm, ...]
    kv_gib: float
    cache: CacheLayout
    max_model_len: int

    @property
    def overhead_gib(self) -> float:
        """Sum of all overhead terms."""
        return sum(term.gib for term in self.overhead)

    @property
    def kv_tokens(self) -> int:
        """Tokens that this stage can hold of requests of full length."""
        return self.cache.tokens(self.kv_gib * GIB, self.max_model_len)

    @property
    def requests(self) -> float:
        """Requests of full length that this stage can hold."""
        return self.cache.requests(self.kv_gib * GIB, self.max_model_len)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A model on GPUs of `usable_gib` each, of which vLLM takes `budget_gib`. Tokens are those of one replica."""

    shape: Parallelism
    usable_gib: float
    budget_gib: float
    stages: tuple[StageFit, ...]
    max_model_len: int

    @property
    def tensor_parallel(self) -> int:
        """Ranks that share each layer."""
        return self.shape.tensor

    @property
    def pipeline_parallel(self) -> int:
        """Stages that share the layers."""
        return self.shape.pipeline

    @property
    def kv_tokens(self) -> int:
        """Tokens of KV cache: every token needs room on every stage, so the tightest stage decides."""
        return min(stage.kv_tokens for stage in self.stages)

    @property
    def loads(self) -> bool:
        """Whether weights and overhead leave anything for the KV cache at all."""
        return all(stage.kv_gib > 0 for stage in self.stages)

    @property
    def fits(self) -> bool:
        """Whether one request of full length fits; vLLM refuses to start otherwise."""
        return self.loads and self.concurrent_requests >= 1

    @property
    def concurrent_requests(self) -> float:
        """Requests of full length that fit at once."""
        return min(stage.requests for stage in self.stages)


def fit(model: Model, gpu: Gpu, shape: Parallelism, load: Load) -> Fit:
    """Compute the fit on GPUs of one kind."""
    budget = gpu.usable_gib * load.gpu_memory_utilization
    counts = layers_per_stage(model.architecture.layers, shape.pipeline)
    weights = stage_bytes(model, shape, gpu)
    stages = []
    first = 0
    for stage, (count, weight_bytes) in enumerate(zip(counts, weights, strict=True)):
        terms = _overhead(model, stage, count, shape, load)
        weights_gib = weight_bytes / GIB
        stages.append(
            StageFit(
                stage=stage,
                layers=count,
                weights_gib=weights_gib,
                overhead=terms,
                kv_gib=budget - weights_gib - sum(term.gib for term in terms),
                cache=layout(model.architecture, range(first, first + count), shape, load.kv_value_bytes),
                max_model_len=load.max_model_len,
            )
        )
        first += count
    return Fit(
        shape=shape,
        usable_gib=gpu.usable_gib,
        budget_gib=budget,
        stages=tuple(stages),
        max_model_len=load.max_model_len,
    )


def captured_batch_sizes(max_num_seqs: int) -> int:
    """How many batch sizes vLLM captures as CUDA graphs: 1, 2, 4, then by 8 to 256 and by 16 to 512."""
    largest = min(2 * max_num_seqs, 512)
    sizes = [1, 2, 4, *range(8, 256, 8), *range(256, 513, 16)]
    return sum(1 for size in sizes if size <= largest)


def _overhead(model: Model, stage: int, layers: int, shape: Parallelism, load: Load) -> tuple[OverheadTerm, ...]:
    """The terms of one stage; those that are zero are left out."""
    sizes = captured_batch_sizes(load.max_num_seqs)
    tensor_parallel, pipeline_parallel = shape.tensor, shape.pipeline
    last = stage == pipeline_parallel - 1
    workspace = model.architecture.attention.prefill_workspace_values(
        min(MLA_WORKSPACE_TOKENS, 8 * load.max_model_len), tensor_parallel
    )
    sampler = load.max_num_seqs * model.architecture.vocabulary * 4 * SAMPLER_COPIES / GIB if last else 0.0
    collectives = TENSOR_PARALLEL_BUFFERS_GIB * (tensor_parallel > 1) + PIPELINE_BUFFERS_GIB * (pipeline_parallel > 1)
    terms = (
        OverheadTerm(name="framework", gib=FRAMEWORK_GIB, why="CUDA context and kernel libraries"),
        OverheadTerm(name="NCCL", gib=collectives, why="buffers of the tensor and pipeline communicators"),
        OverheadTerm(
            name="activations",
            gib=_activation_bytes(model, tensor_parallel, load.max_num_batched_tokens) / GIB,
            why=f"{load.max_num_batched_tokens} batched tokens through one layer",
        ),
        OverheadTerm(
            name="vision",
            gib=_vision_activation_bytes(model, load.max_num_batched_tokens) / GIB if stage == 0 else 0.0,
            why="the image encoder's activations for as many image tokens as one batch holds",
        ),
        OverheadTerm(
            name="context prefill",
            gib=workspace * BF16_BYTES / GIB,
            why="keys and values expanded from the MLA cache",
        ),
        OverheadTerm(name="sampler", gib=sampler, why=f"{load.max_num_seqs} sequences x vocabulary in fp32"),
        OverheadTerm(
            name="CUDA graphs",
            gib=layers * sizes * GRAPH_GIB_PER_LAYER_AND_SIZE,
            why=f"{sizes} batch sizes captured over {layers} layers",
        ),
    )
    return tuple(term for term in terms if term.gib)


def _activation_bytes(model: Model, tensor_parallel: int, tokens: int) -> float:
    """Peak of one layer's forward pass: hidden rows, and the wider of MLP and expert buffers."""
    architecture = model.architecture
    values = HIDDEN_COPIES * architecture.hidden
    mlp = 2 * architecture.intermediate / tensor_parallel
    if architecture.experts is not None:
        # The fused MoE kernel keeps one output row of hidden size and one of expert size for each active
        # expert.
        experts = architecture.experts
        mlp = max(mlp, experts.active * (architecture.hidden + experts.intermediate / tensor_parallel))
    return tokens * (values + mlp) * BF16_BYTES


def _vision_activation_bytes(model: Model, tokens: int) -> float:
    """Peak of one encoder layer: hidden rows and the MLP, for every patch of `tokens` image tokens."""
    vision = model.architecture.vision
    if vision is None:
        return 0.0
    patches = tokens * vision.merged_patches
    return patches * (4 * vision.hidden + vision.intermediate) * BF16_BYTES
