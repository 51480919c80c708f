"""Splits that vLLM 0.27.1 refuses at start, each with the reason; what it accepts stays legal."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from planner.catalogue import CATALOGUE
from planner.checkpoint_config import read
from planner.cli import app
from planner.parallelism import choose, context_problem, legal, tensor_problem


@pytest.mark.parametrize(
    ("name", "tensor", "expert", "reason"),
    [
        # `assert self.total_num_kv_heads % tp_size == 0` of each model's attention.
        ("minimax-m2.5", 3, False, "3 neither divides the 8 KV heads"),
        ("minimax-m2.5", 6, True, "6 neither divides the 8 KV heads"),
        ("glm-4.6", 12, False, "12 neither divides the 8 KV heads"),
        # `validate_fp8_block_shape`: row parallel inputs and column parallel outputs that are not merged.
        ("qwen3.5-35b-a3b-fp8", 8, True, "the width 512 of Qwen3.5-35B-A3B FP8's shared experts"),
        ("qwen3.5-397b-a17b-fp8", 16, True, "the width 1024 of Qwen3.5-397B-A17B FP8's shared experts"),
        ("deepseek-v3", 32, True, "the width 18432 of DeepSeek-V3's layers"),
        ("kimi-k2-instruct", 64, True, "the width 12288 of Kimi-K2-Instruct's query projection"),
        ("glm-5-fp8", 64, True, "the width 28672 of GLM-5 FP8's KV up projection"),
        # `The output_size of gate's and up's weight is not divisible by weight quantization block_n`.
        ("qwen3-235b-a22b-fp8", 8, False, "the width 1536 of Qwen3-235B-A22B FP8's experts"),
        ("qwen3-235b-a22b", 128, False, "128 does not divide the 64 attention heads"),
        ("qwen3.5-35b-a3b", 32, False, "32 does not divide the 16 attention heads"),
    ],
)
def test_what_vllm_refuses_is_refused_with_the_reason(name: str, tensor: int, expert: bool, reason: str) -> None:
    assert reason in tensor_problem(CATALOGUE[name], tensor, expert=expert)


@pytest.mark.parametrize(
    ("name", "tensor", "expert"),
    [
        ("minimax-m2.5", 16, True),
        ("glm-4.6", 24, False),
        ("qwen3.5-35b-a3b", 8, False),
        # bf16 layers have no blocks, whatever those of the experts are.
        ("kimi-k2.5", 64, True),
        # 64 values a rank, where a group has 128: vLLM's fallback splits the groups.
        ("qwen3.5-35b-a3b-gptq-int4", 8, False),
        ("qwen3.5-397b-a17b-gptq-int4", 16, False),
    ],
)
def test_what_vllm_accepts_is_legal(name: str, tensor: int, expert: bool) -> None:
    assert tensor_problem(CATALOGUE[name], tensor, expert=expert) == ""


def test_data_parallel_ranks_of_whole_experts_do_not_split_the_shared_ones() -> None:
    assert tensor_problem(CATALOGUE["qwen3.5-35b-a3b-fp8"], 8, expert=True)
    assert not tensor_problem(CATALOGUE["qwen3.5-35b-a3b-fp8"], 8, expert=True, data=2)


def test_three_gpus_are_never_one_group_of_eight_kv_heads() -> None:
    assert all(shape.tensor != 3 for shape in legal(CATALOGUE["minimax-m2.5"], 3, 1))
    assert choose(CATALOGUE["minimax-m2.5"], 3, 1, tensor=3) is None
    words = ["fit", "--model", "minimax-m2.5", "--gpu", "h200-141gb", "--tensor-parallel", "3", "--json"]
    (problem,) = json.loads(CliRunner().invoke(app, words).stdout)["problems"]
    assert problem["allowed"].startswith("1, 2, 4: 3 neither divides")


@pytest.mark.parametrize(
    ("name", "tensor", "context", "reason"),
    [
        ("kimi-k2.5", 8, 3, "3 does not divide tensor parallel 8"),
        ("qwen3-235b-a22b", 8, 4, "there are 2 copies"),
        ("qwen3-235b-a22b", 4, 2, "there are 1 copies"),
        ("minimax-m2.5", 24, 4, "there are 3 copies"),
        ("minimax-m2.5", 32, 4, "4 does not divide the 6 query heads of a KV head"),
        # Three copies, spread over two ranks: odd, and accepted.
        ("minimax-m2.5", 24, 2, ""),
        ("kimi-k2.5", 8, 8, ""),
    ],
)
def test_the_cache_is_spread_as_vllm_does(name: str, tensor: int, context: int, reason: str) -> None:
    found = context_problem(CATALOGUE[name], tensor, context)
    assert reason in found
    assert bool(found) is bool(reason)


def test_groups_of_an_imported_gptq_mixture_may_lie_across_ranks() -> None:
    config = {
        "model_type": "qwen3_moe", "num_hidden_layers": 4, "hidden_size": 2048, "vocab_size": 1000,
        "intermediate_size": 6144, "moe_intermediate_size": 768, "num_attention_heads": 32, "num_key_value_heads": 4,
        "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "max_position_embeddings": 4096,
    }  # fmt: skip
    gptq = {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
    packed = {
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 128}}},
        }
    }
    assert read(config | gptq).precision.unit == 32
    assert read(config | packed).precision.unit == 128
