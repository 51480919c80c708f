"""Input that once hung the planner, made it fail, or was taken for what it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from planner.cli import app
from planner.command_line import REFUSED
from tests.planner.test_refusals import change, refused

MOE = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 48,
    "hidden_size": 2048,
    "vocab_size": 151_936,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "max_position_embeddings": 40_960,
}
LATENT = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "vocab_size": 129_280,
    "intermediate_size": 18_432,
    "moe_intermediate_size": 2048,
    "num_attention_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "max_position_embeddings": 163_840,
}


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def imported(folder: Path, config: dict[str, Any] | str) -> tuple[int, str]:
    file = folder / "config.json"
    file.write_text(config if isinstance(config, str) else json.dumps(config))
    return run("import", str(file), "--repository", "owner/name")


@pytest.mark.parametrize("config", [MOE, LATENT], ids=["moe", "latent"])
def test_whole_configs_are_read(tmp_path: Path, config: dict[str, Any]) -> None:
    status, output = imported(tmp_path, config)
    assert status == 0, output


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        (MOE, "moe_intermediate_size"),
        (LATENT, "moe_intermediate_size"),
        (LATENT, "first_k_dense_replace"),
        (LATENT, "intermediate_size"),
        (LATENT, "n_shared_experts"),
    ],
)
def test_what_decides_memory_is_never_guessed(tmp_path: Path, config: dict[str, Any], missing: str) -> None:
    status, output = imported(tmp_path, {key: value for key, value in config.items() if key != missing})
    assert status == REFUSED
    assert missing in output


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({**MOE, "num_hidden_layers": 10**30}, "num_hidden_layers"),
        ({**MOE, "hidden_size": 10**12}, "hidden_size"),
        ({**MOE, "num_experts_per_tok": 999}, "num_experts_per_tok"),
        ({**MOE, "num_key_value_heads": 7}, "num_key_value_heads"),
        ({**MOE, "mlp_only_layers": [1]}, "mlp_only_layers"),
        ({**MOE, "decoder_sparse_step": 2}, "decoder_sparse_step"),
        ({**LATENT, "first_k_dense_replace": 99}, "first_k_dense_replace"),
        ({**MOE, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 0}}, "groups of 0"),
        ({**MOE, "quantization_config": {"quant_method": "gptq", "bits": 3}}, "3 bits"),
        ({**LATENT, "quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 0]}}, "weight_block_size"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_nonsense_is_refused_by_name(tmp_path: Path, config: dict[str, Any] | str, named: str) -> None:
    status, output = imported(tmp_path, config)
    assert status == REFUSED
    assert named in output


def fit(*arguments: str) -> tuple[int, str]:
    return run("fit", "--instance-type", "p5en.48xlarge", "--nodes", "1", *arguments)


@pytest.mark.parametrize(
    ("model", "context", "status"),
    [
        ("qwen3-235b-a22b", 8, REFUSED),
        ("qwen3-235b-a22b", 2, 0),
        ("qwen3-235b-a22b-fp8", 2, REFUSED),
        ("kimi-k2.5", 8, 0),
        ("kimi-k2.5", 3, REFUSED),
    ],
)
def test_only_copies_of_the_cache_are_spread(model: str, context: int, status: int) -> None:
    found, output = fit("--model", model, "--decode-context-parallel", str(context))
    assert found == status, output
    if status:
        assert "--decode-context-parallel" in output


def test_experts_are_spread_only_where_there_are_some(raw: dict[str, Any]) -> None:
    status, output = fit("--model", "llama-3.1-8b-instruct", "--expert-parallel")
    assert status == REFUSED
    assert "has no experts" in output
    stack = change(raw, "model", "llama-3.1-8b-instruct")
    problems = refused(change(stack, "serving.expertParallel", True)).problems
    assert ("serving", "expertParallel") in [problem.path for problem in problems]


@pytest.mark.parametrize("arguments", [("--nodes", "2", "--data-parallel", "3"), ("--max-num-batched-tokens", "1")])
def test_a_refusal_of_flags_says_what_to_leave_out_or_try(arguments: tuple[str, ...]) -> None:
    status, output = run("fit", "--model", "kimi-k2.5", *arguments)
    assert status == REFUSED
    assert "none" not in output
    assert "type:" in output


@pytest.mark.parametrize(
    "arguments",
    [
        ("price", "--boot-minutes", "1e308"),
        ("compare", "--tokens-per-second", "kimi-k2.5@p5.48xlarge=1e-320, me", "--json"),
    ],
)
def test_numbers_that_leave_the_finite_ones_are_refused(arguments: tuple[str, ...]) -> None:
    status, output = run(*arguments)
    assert status == REFUSED, output


def test_a_price_beyond_reason_is_refused(raw: dict[str, Any]) -> None:
    (problem,) = refused(change(raw, "prices", {"gpuNodes": 1e308})).problems
    assert problem.path == ("prices", "gpuNodes")


def test_a_model_newer_than_the_default_image_asks_for_its_own_release(raw: dict[str, Any]) -> None:
    problems = refused(change(raw, "model", "glm-5.3")).problems
    newer = next(problem for problem in problems if problem.path == ("serving", "vllmVersion"))
    assert [mend.value for mend in newer.mends] == ["0.28.1"]


def test_explained_collectives_add_up() -> None:
    _, output = fit("--model", "kimi-k2.5", "--explain")
    assert "pipeline parallel = " not in output
    assert "0.8 GiB for tensor parallel" in output
    assert "0.6 GiB for pipeline parallel" not in output


def test_a_misfit_says_of_each_alternative_whether_it_is_known_to_run() -> None:
    case = ("fit", "--model", "kimi-k2.5", "--instance-type", "p5.48xlarge", "--nodes", "1")
    _, text = run(*case)
    assert "g7e.48xlarge" in text
    assert "(not known to run)" in " ".join(text.split())
    _, answer = run(*case, "--json")
    verdicts = {item["instance_type"]: item["runs"] for item in json.loads(answer)["alternatives"]}
    assert verdicts["g7e.48xlarge"] == "unknown"
    assert verdicts["p5en.48xlarge"] == "yes"
