"""Whether a model fits: GiB per GPU for every pipeline stage, and the KV tokens that stay free.

The overhead is one sum of named terms for every model. Its constants were read off published start-up logs of
vLLM and measurements on one H200 (vLLM 0.24.0): each says what it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.models import BF16_BYTES, GIB, Model
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

    @classmethod
    def of(cls, serving: Serving) -> Load:
        """The load that a stack file's `serving` section describes."""
        return cls(
            gpu_memory_utilization=serving.gpu_memory_utilization,
            max_model_len=serving.max_model_len,
            max_num_seqs=serving.max_num_seqs,
            max_num_batched_tokens=serving.max_num_batched_tokens,
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
    kv_bytes_per_token: float

    @property
    def overhead_gib(self) -> float:
        """Sum of all overhead terms."""
        return sum(term.gib for term in self.overhead)

    @property
    def kv_tokens(self) -> int:
        """Tokens whose KV this stage can hold."""
        return max(0, int(self.kv_gib * GIB / self.kv_bytes_per_token))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A model on GPUs of `usable_gib` each, of which vLLM takes `budget_gib`."""

    tensor_parallel: int
    pipeline_parallel: int
    usable_gib: float
    budget_gib: float
    stages: tuple[StageFit, ...]
    max_model_len: int

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
        return self.loads and self.kv_tokens >= self.max_model_len

    @property
    def concurrent_requests(self) -> float:
        """Requests of full length that fit at once."""
        return self.kv_tokens / self.max_model_len


def fit(model: Model, usable_gib: float, tensor_parallel: int, pipeline_parallel: int, load: Load) -> Fit:
    """Compute the fit on GPUs that offer `usable_gib` each."""
    budget = usable_gib * load.gpu_memory_utilization
    counts = layers_per_stage(model.architecture.layers, pipeline_parallel)
    weights = stage_bytes(model, tensor_parallel, pipeline_parallel)
    kv_values = model.architecture.attention.kv_values_per_token(tensor_parallel)
    stages = []
    for stage, (layers, weight_bytes) in enumerate(zip(counts, weights, strict=True)):
        terms = _overhead(model, stage, layers, tensor_parallel, pipeline_parallel, load)
        weights_gib = weight_bytes / GIB
        stages.append(
            StageFit(
                stage=stage,
                layers=layers,
                weights_gib=weights_gib,
                overhead=terms,
                kv_gib=budget - weights_gib - sum(term.gib for term in terms),
                kv_bytes_per_token=layers * kv_values * BF16_BYTES,
            )
        )
    return Fit(
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        usable_gib=usable_gib,
        budget_gib=budget,
        stages=tuple(stages),
        max_model_len=load.max_model_len,
    )


def captured_batch_sizes(max_num_seqs: int) -> int:
    """How many batch sizes vLLM captures as CUDA graphs: 1, 2, 4, then by 8 to 256 and by 16 to 512."""
    largest = min(2 * max_num_seqs, 512)
    sizes = [1, 2, 4, *range(8, 256, 8), *range(256, 513, 16)]
    return sum(1 for size in sizes if size <= largest)


def _overhead(
    model: Model, stage: int, layers: int, tensor_parallel: int, pipeline_parallel: int, load: Load
) -> tuple[OverheadTerm, ...]:
    """The terms of one stage; those that are zero are left out."""
    sizes = captured_batch_sizes(load.max_num_seqs)
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
