"""The catalogue: figures that add up, the seven models' rows, and what each needs to be served."""

from __future__ import annotations

import time
from typing import Any

import pytest

from planner import ServingPlan, SettingsError, parallelism, plan, weights
from planner.alternatives import LIGHT, alternatives
from planner.cases import case
from planner.catalogue import CATALOGUE, precisions
from planner.flags import Flags
from planner.hardware import GPUS
from planner.kernels import runs
from planner.models import Model
from planner.overhead import Load

Raw = dict[str, Any]
# One, four, eight and sixteen H100 80 GB, and eight H200.
SHAPES = (("h100-80gb", 1, 1), ("h100-80gb", 4, 1), ("h100-80gb", 8, 1), ("h100-80gb", 8, 2), ("h200-141gb", 8, 1))
# The recipes' `vram_minimum_gb` (vllm-project/recipes at 8959cf64) and published runs say the same but where noted.
ROWS = {
    "llama-3.1-8b-instruct": (True, True, True, True, True),
    # The recipe asks for two H100 (84 GB = weights and a fifth); 65 GiB of weights leave room for one long request.
    "qwen3.5-35b-a3b": (True, True, True, True, True),
    "qwen3.5-35b-a3b-fp8": (True, True, True, True, True),
    "qwen3.5-35b-a3b-gptq-int4": (True, True, True, True, True),
    "qwen3-235b-a22b-instruct-2507": (False, False, True, True, True),
    "qwen3-235b-a22b-instruct-2507-fp8": (False, True, True, True, True),
    "minimax-m2.5": (False, True, True, True, True),
    "qwen3.5-397b-a17b": (False, False, False, True, True),
    "qwen3.5-397b-a17b-fp8": (False, False, True, True, True),
    "qwen3.5-397b-a17b-gptq-int4": (False, True, True, True, True),
    "glm-5": (False, False, False, False, False),
    "glm-5-fp8": (False, False, False, True, True),
    # The recipe's figure (714 GB) and its prose (640 GB) differ; a published run on 8 H100 ran out of memory.
    "kimi-k2.5": (False, False, False, True, True),
}
# Flags that each of the seven must be served with.
REQUIRED = {
    "llama-3.1-8b-instruct": ("--tool-call-parser llama3_json",),
    "qwen3.5-35b-a3b": (
        "--tool-call-parser qwen3_coder",
        "--reasoning-parser qwen3",
    ),
    "qwen3-235b-a22b-instruct-2507": ("--tool-call-parser hermes",),
    "minimax-m2.5": (
        "--tool-call-parser minimax_m2",
        "--reasoning-parser minimax_m2",
    ),
    "qwen3.5-397b-a17b": (
        "--tool-call-parser qwen3_coder",
        "--reasoning-parser qwen3",
    ),
    "glm-5": (
        "--chat-template-content-format string",
        "--tool-call-parser glm47",
        "--reasoning-parser glm45",
    ),
    "kimi-k2.5": (
        "--mm-encoder-tp-mode data",
        "--tool-call-parser kimi_k2",
        "--reasoning-parser kimi_k2",
    ),
}
ENTRIES = pytest.mark.parametrize("model", CATALOGUE.values(), ids=CATALOGUE)


@pytest.mark.parametrize("name", ROWS)
def test_each_model_fits_where_sources_say(name: str) -> None:
    found = tuple(
        case(Flags(model=name, gpu=gpu, gpus_per_node=gpus, nodes=nodes)).fit().fits for gpu, gpus, nodes in SHAPES
    )
    assert found == ROWS[name]


@ENTRIES
def test_the_architecture_adds_up_to_the_stated_parameters(model: Model) -> None:
    """Kimi's "1T" is rounded: 1,027B as its architecture gives it."""
    assert weights.parameters(model) == pytest.approx(model.total_parameters, rel=0.03)


@ENTRIES
def test_every_figure_has_a_source_and_a_date(model: Model) -> None:
    assert model.sources
    assert all(source.figures and source.where and source.date for source in model.sources)


def test_the_draft_layer_explains_the_sizes_that_others_count() -> None:
    """36B, 403B and 754B are counts of all tensors on the Hub; vLLM loads less."""
    for name, counted in (("qwen3.5-35b-a3b", 36e9), ("qwen3.5-397b-a17b", 403e9), ("glm-5", 754e9)):
        assert weights.checkpoint_bytes(CATALOGUE[name]) / 2 == pytest.approx(counted, rel=0.005)


def test_a_precision_names_another_checkpoint_of_the_same_model() -> None:
    assert precisions(CATALOGUE["glm-5"])["fp8"].repository == "zai-org/GLM-5-FP8"
    assert set(precisions(CATALOGUE["qwen3.5-397b-a17b"])) == {"bf16", "fp8", "int4", "nvfp4"}


@pytest.mark.parametrize(
    ("name", "tensor", "expert", "legal"),
    [
        ("qwen3-235b-a22b-fp8", 4, False, True),
        ("qwen3-235b-a22b-fp8", 8, False, False),
        ("qwen3-235b-a22b", 8, False, True),
        ("minimax-m2.5", 4, False, True),
        ("minimax-m2.5", 8, False, False),
        ("minimax-m2.5", 8, True, True),
        ("kimi-k2.5", 16, False, True),
        ("glm-5-fp8", 16, False, True),
    ],
)
def test_blocks_of_scales_limit_tensor_parallel(name: str, tensor: int, expert: bool, legal: bool) -> None:
    assert (parallelism.tensor_problem(CATALOGUE[name], tensor, expert=expert) == "") is legal


@pytest.mark.parametrize(
    ("name", "gpu", "verdict"),
    [
        ("kimi-k2.5", "h100-80gb", "yes"),
        ("kimi-k2.5-nvfp4", "h200-141gb", "no"),
        ("kimi-k2.5-nvfp4", "b200-180gb", "yes"),
        ("minimax-m2.5", "a100-80gb", "yes"),
        ("glm-5-fp8", "a100-80gb", "no"),
        ("glm-5-fp8", "h200-141gb", "yes"),
        ("glm-5-fp8", "rtx-pro-6000-96gb", "unknown"),
    ],
)
def test_whether_it_runs_is_told_beside_whether_it_fits(name: str, gpu: str, verdict: str) -> None:
    found = runs(CATALOGUE[name], GPUS[gpu])
    assert found.verdict == verdict
    assert found.why


def test_fp8_on_a100_says_that_the_arithmetic_is_not_fp8() -> None:
    assert "weight-only" in runs(CATALOGUE["minimax-m2.5"], GPUS["a100-80gb"]).why


def deployed(raw: Raw, name: str, instance: str, nodes: int) -> ServingPlan:
    raw["model"] = name
    raw["gpuNodes"] = {"instanceType": instance, "count": nodes}
    raw["serving"] |= {"maxModelLen": LIGHT.max_model_len}
    found = plan(raw, api_key_given=True, hub_token_given=True).serving
    assert found is not None
    return found


@pytest.mark.parametrize("name", REQUIRED)
def test_each_of_the_seven_is_served_with_its_own_flags(raw: Raw, name: str) -> None:
    smallest = next(item for item in alternatives(CATALOGUE[name], LIGHT) if item.instance.efa)
    args = " ".join(deployed(raw, name, smallest.instance.name, smallest.nodes).leader.args)
    assert all(pair in args for pair in REQUIRED[name])
    assert all(flag in args for flag in CATALOGUE[name].flags)
    assert CATALOGUE[name].repository in args


def test_an_entrys_environment_reaches_the_container(raw: Raw) -> None:
    env = deployed(raw, "qwen3.5-397b-a17b-fp8", "p5en.48xlarge", 1).leader.env
    assert ("VLLM_USE_DEEP_GEMM", "0") in [(item.name, item.value) for item in env]


def test_a_gated_model_needs_a_token(raw: Raw) -> None:
    raw["model"] = "llama-3.1-8b-instruct"
    with pytest.raises(SettingsError, match="is gated") as caught:
        plan(raw, api_key_given=True)
    assert "pulumi config set --secret huggingFaceToken" in str(caught.value)
    plan(raw, api_key_given=True, hub_token_given=True)


def test_a_stack_on_gpus_that_cannot_run_the_model_is_refused(raw: Raw) -> None:
    raw["model"] = "kimi-k2.5-nvfp4"
    with pytest.raises(SettingsError, match="NVFP4 needs Blackwell") as caught:
        plan(raw, api_key_given=True)
    assert "p6-b200.48xlarge" in str(caught.value)


def test_expert_parallel_lets_minimax_span_a_node(raw: Raw) -> None:
    raw["serving"]["expertParallel"] = True
    serving = deployed(raw, "minimax-m2.5", "p5.48xlarge", 1)
    assert (serving.tensor_parallel, serving.pipeline_parallel) == (8, 1)
    assert "--enable-expert-parallel" in serving.leader.args


def test_the_whole_catalogue_on_all_hardware_takes_less_than_a_second() -> None:
    load = Load(gpu_memory_utilization=0.9, max_model_len=32_768, max_num_seqs=64, max_num_batched_tokens=8192)
    started = time.process_time()
    assert all(alternatives(model, load) for model in CATALOGUE.values())
    assert time.process_time() - started < 1


def test_fp8_weights_take_wider_scales_where_the_gpu_has_no_fp8() -> None:
    """54.58 GiB on each of 4 A100 (kaitakuai/experiments, vLLM 0.19.0), where FP8 alone would be 53.6."""
    found = case(Flags(model="minimax-m2.7", gpu="a100-80gb", tensor_parallel=4)).fit()
    assert found.stages[0].weights_gib == pytest.approx(54.58, rel=0.005)
    assert case(Flags(model="minimax-m2.7", gpu="h100-80gb", tensor_parallel=4)).fit().stages[0].weights_gib < 53.8


def test_a_load_that_is_too_much_for_every_shape_is_refused_with_a_lighter_one(raw: Raw) -> None:
    raw["model"] = "glm-5"
    raw["serving"] |= {"maxNumSeqs": 4096, "maxNumBatchedTokens": 1_000_000}
    with pytest.raises(SettingsError) as caught:
        plan(raw, api_key_given=True)
    text = " ".join(str(caught.value).split())
    for said in (
        "with the load below",
        "serving.maxNumBatchedTokens' 8192",
        "serving.maxNumSeqs' 64",
        "gpuNodes.count' 3",
    ):
        assert said in text
    assert "g7e.48xlarge, TP 8 x PP 3" in text
    assert "(not known to run)" in text
