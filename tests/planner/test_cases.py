"""`python -m planner fit` by flags alone: any GPU, any shape, each wrong flag told with what to type instead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from planner.cases import case
from planner.cli import app
from planner.command_line import DOES_NOT_FIT, REFUSED
from planner.flags import Flags
from planner.refusals import RefusedError

GPUS = (
    *("h100-80gb", "h100-nvl-94gb", "h200-141gb", "h200-nvl-141gb", "h20-141gb", "b200-180gb"),
    *("a100-40gb", "a100-80gb", "a10-24gb", "l40s-48gb", "rtx-pro-6000-96gb"),
)


def fit(*flags: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(CliRunner().invoke(app, ["fit", "--json", *flags]).stdout)
    return data


@pytest.mark.parametrize("gpu", GPUS)
def test_every_gpu_can_be_named(gpu: str) -> None:
    found = fit("--model", "llama-3.1-8b-instruct", "--gpu", gpu, "--tensor-parallel", "1", "--max-model-len", "8192")
    assert found["gpu"] == gpu
    assert found["fits"]


def test_a_family_and_a_precision_name_a_checkpoint() -> None:
    found = fit("--model", "glm-5", "--precision", "fp8", "--gpu", "h200-141gb", "--gpus-per-node", "8")
    assert (found["model"], found["fits"]) == ("glm-5-fp8", True)


def test_flags_alone_fix_the_number_of_gpus() -> None:
    found = fit("--model", "qwen3-235b-a22b-fp8", "--gpu", "rtx-pro-6000-96gb", "--tensor-parallel", "1")
    assert (found["gpus_per_node"], found["tensor_parallel"], found["pipeline_parallel"]) == (1, 1, 1)
    two = fit("--model", "minimax-m2.7", "--gpu", "h100-nvl-94gb", "--nodes", "2", "--tensor-parallel", "2",
              "--pipeline-parallel", "2")  # fmt: skip
    assert two["gpus_per_node"] == 2


def test_decode_context_parallel_multiplies_the_cache() -> None:
    flags = ("--model", "kimi-k2-thinking", "--gpu", "h200-141gb", "--tensor-parallel", "8")
    assert fit(*flags, "--decode-context-parallel", "8")["kv_tokens"] == 8 * fit(*flags)["kv_tokens"]


def test_an_fp8_cache_doubles_the_tokens() -> None:
    flags = ("--model", "kimi-k2.5", "--nodes", "2")
    assert fit(*flags, "--kv-cache-dtype", "fp8")["kv_tokens"] == pytest.approx(2 * fit(*flags)["kv_tokens"], rel=1e-4)


def test_data_parallel_replicas_share_the_experts_and_nothing_else() -> None:
    flags = (
        "--model",
        "deepseek-r1",
        "--gpu",
        "h200-141gb",
        "--nodes",
        "2",
        "--gpus-per-node",
        "8",
        "--expert-parallel",
    )
    tensor, data = (
        fit(*flags, *more)
        for more in (("--tensor-parallel", "16"), ("--tensor-parallel", "1", "--data-parallel", "16"))
    )
    assert data["stages"][0]["weights_gib"] > tensor["stages"][0]["weights_gib"]
    assert data["kv_tokens_total"] == 16 * data["kv_tokens"]


def test_explain_traces_each_figure() -> None:
    text = CliRunner().invoke(app, ["fit", "--explain"]).stdout
    for part in ("budget 71.685 GiB = 79.65 GiB", "31 layers", "35,712 bytes", "8192 batched tokens x", "KV cache"):
        assert part in text


def test_explain_goes_into_the_json_too() -> None:
    assert any("budget" in line for line in fit()["explain"]["stage 0"])


def test_whether_it_runs_is_printed_beside_whether_it_fits() -> None:
    found = fit("--model", "kimi-k2.5-nvfp4", "--gpu", "h200-141gb")
    assert (found["fits"], found["runs"]) == (True, "no")


@pytest.mark.parametrize(
    ("flags", "said", "typed"),
    [
        ({"model": "kimi-k3"}, "allowed: kimi-k2.5", "--model kimi-k2.5"),
        ({"gpu": "h100"}, "a100-40gb", "--gpu h100-80gb"),
        ({"precision": "fp8"}, "checkpoints in int4, nvfp4", "--precision int4"),
        ({"gpu": "h100-80gb", "instance_type": "p5.48xlarge"}, "both name the GPU", "leave out --gpu"),
        ({"instance_type": "p5.48xlarge", "gpus_per_node": 4}, "which says how many", "leave out --gpus-per-node"),
        ({"gpu_memory_utilization": 1.2}, "0.05 to 1", "--gpu-memory-utilization 0.9"),
        ({"max_num_seqs": 0}, "1 to 65536", "--max-num-seqs 64"),
        ({"max_model_len": 300_000}, "at most 262144", "--max-model-len 262144"),
        ({"kv_cache_dtype": "int8"}, "fp8", "--kv-cache-dtype"),
        (
            {"model": "minimax-m2.5", "gpu": "h100-80gb", "tensor_parallel": 8},
            "no multiple of 128",
            "--expert-parallel",
        ),
        ({"gpu": "h100-80gb", "tensor_parallel": 5}, "64 attention heads", "leave out --tensor-parallel"),
        ({"nodes": 2, "tensor_parallel": 4, "pipeline_parallel": 2}, "8 x 2", "leave out --tensor-parallel"),
    ],
)
def test_a_wrong_flag_says_what_is_allowed_and_what_to_type(flags: dict[str, Any], said: str, typed: str) -> None:
    with pytest.raises(RefusedError) as caught:
        case(Flags(**flags))
    told = " ".join(str(caught.value).split())
    assert said in told
    assert typed in told


def test_the_exit_status_tells_misfit_and_refusal_apart() -> None:
    assert CliRunner().invoke(app, ["fit", "--nodes", "1"]).exit_code == DOES_NOT_FIT
    assert CliRunner().invoke(app, ["fit", "--nodes", "0"]).exit_code == REFUSED


def test_a_hybrid_models_state_is_constant_and_its_cache_grows_with_full_attention_alone() -> None:
    """vLLM 0.20.0 logged 43.42 requests of 65,536 tokens in 57.73 GiB: 2,866 blocks of 1,056 tokens, 66 a request."""
    flags = Flags(
        model="qwen3.6-35b-a3b", gpu="h200-nvl-141gb", tensor_parallel=1, max_model_len=65_536, max_num_seqs=32
    )
    cache = case(flags).fit().stages[0].cache
    assert (cache.block_tokens, cache.blocks_per_request(65_536)) == (1056, 66)
    assert cache.requests(57.73 * 1024**3, 65_536) == pytest.approx(43.42, abs=0.01)
