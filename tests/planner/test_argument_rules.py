"""What users add to vLLM's command line: what gets there, and what is refused before anything is created."""

from __future__ import annotations

from typing import Any

import pytest

from planner import SettingsError, plan
from planner.problems import dotted
from planner.vllm_flags import release
from tests.planner.test_refusals import change, mended, refused

Raw = dict[str, Any]
OTHER = {"vllmVersion": "0.33.0", "image": "example.org/vllm-efa:0.33.0"}
# The words, the entry that is refused, what has to be said, and what has to be typed first.
CONTRADICTIONS = [
    (["--nnodes", "3"], 0, "gpuNodes.count is the setting", "rm @[1]"),
    (["-n3"], 0, "gpuNodes.count is the setting", "rm @[0]"),
    (["--node-rank=1"], 0, "told its own by the operator", "rm @[0]"),
    (["--master-addr", "10.0.0.1"], 0, "told its own by the operator", "rm @[1]"),
    (["--headless"], 0, "told its own by the operator", "rm @[0]"),
    (["-tp", "4"], 0, "serving.tensorParallel is the setting", "set --path 'deployment.serving.tensorParallel' 4"),
    (["--tensor_parallel_size=4"], 0, "serving.tensorParallel", "set --path 'deployment.serving.tensorParallel' 4"),
    (["--tensor-par", "4"], 0, "serving.tensorParallel", "set --path 'deployment.serving.tensorParallel' 4"),
    (["-pp", "2"], 0, "serving.pipelineParallel", "set --path 'deployment.serving.pipelineParallel' 2"),
    (["--data-parallel-size-local", "2"], 0, "one engine is split over all GPUs", "rm @[1]"),
    (["--port", "80"], 0, "HTTP on port 8000", "rm @[1]"),
    (["--host", "::"], 0, "HTTP on port 8000", "rm @[1]"),
    (["--model", "other/model"], 0, "model is the setting", "rm @[1]"),
    (["-q", "fp8"], 0, "from the checkpoint (int4) and refuses any other; other precisions are", "rm @[1]"),
    (["--served-model-name", "kimi"], 0, "by its repository, moonshotai/Kimi-K2.5", "rm @[1]"),
    (["--max-model-len", "8192"], 0, "serving.maxModelLen", "set --path 'deployment.serving.maxModelLen' 8192"),
    (["--max-model-len", "8k"], 0, "serving.maxModelLen", "rm @[1]"),
    (["--kv-cache-memory-bytes", "9"], 0, "what serving.gpuMemoryUtilization leaves it", "rm @[1]"),
    (["--config", "/more.yaml"], 0, "arguments in a file cannot be checked", "rm @[1]"),
    (["--seed", "1", "--shutdown-timeout", "9"], 2, "time that Kubernetes gives", "rm @[3]"),
]
# vLLM refuses these as well: `tests/vllm/test_arguments.py` asks it.
UNKNOWN = [
    (["--enforce-eagar"], 0, "did you mean --enforce-eager?", "set @[0] -- --enforce-eager"),
    (["--dtyp3=auto"], 0, "did you mean --dtype?", "set @[0] -- --dtype=auto"),
    (["--max-model-length", "8192"], 0, "did you mean --max-model-len?", "rm @[1]"),
    (["--frobnicate"], 0, "a flag of vLLM 0.27.1, and then its values", "rm @[0]"),
    (["seed", "1"], 0, "a flag of vLLM 0.27.1, and then its values", "rm @[1]"),
    (["--seed 1"], 0, "--seed=1, or two entries of the list", "set @[0] -- --seed=1"),
    (["--enforce-eager", "true"], 0, "no value for --enforce-eager", "rm @[1]"),
    (["--seed"], 0, "a value, as the list's next entry or as --seed=...", "rm @[0]"),
    (["--seed", "1", "2"], 0, "1 value for --seed", "rm @[2]"),
    (["--dtype", "int4"], 0, "auto, bfloat16, float, float16, float32, half", "rm @[1]"),
]
REFUSED = CONTRADICTIONS + UNKNOWN
# And it takes these.
TAKEN: list[list[Any]] = [
    ["--enforce-eager", "--seed", 1],
    ["--no-enable-prefix-caching", "--enable_log_requests", "-O3"],
    ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}'],
    ["--reasoning-config.reasoning_parser", "kimi_k2", "--max-logprobs", "-1", "--limit-mm-per-prompt.image=4"],
    ["--decode-context-parallel-size", "8"],
]


@pytest.mark.parametrize("words", TAKEN, ids=lambda words: " ".join(map(str, words)))
def test_every_pod_gets_the_arguments_in_front_of_its_own(raw: Raw, words: list[Any]) -> None:
    serving = plan(change(raw, "serving.extraArgs", words), api_key_given=True).serving
    assert serving is not None
    texts = [str(word) for word in words]
    assert list(serving.leader.args[-4 - len(words) : -4]) == list(serving.worker.args[-1 - len(words) : -1]) == texts


@pytest.mark.parametrize(("words", "entry", "allowed", "typed"), REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_what_vllm_or_the_plan_would_not_bear_is_refused(
    raw: Raw, words: list[str], entry: int, allowed: str, typed: str
) -> None:
    raw = change(raw, "serving.extraArgs", words)
    error = refused(raw)
    (problem,) = error.problems
    assert dotted(problem.path) == f"serving.extraArgs[{entry}]"
    assert allowed in problem.allowed
    command = "pulumi config " + typed.replace("@", "--path 'deployment.serving.extraArgs").replace("]", "]'", 1)
    first = next(line for line in str(error).splitlines() if line.startswith("   type:"))
    assert first.removeprefix("   type:    ") == command
    assert plan(mended(raw, error.problems), api_key_given=True)


def test_several_refused_arguments_can_be_taken_out_one_after_the_other(raw: Raw) -> None:
    raw = change(raw, "serving.extraArgs", ["--port", "80", "--seed", "1", "--enforce-eagar", "--host", "::"])
    after = mended(raw, refused(raw).problems)
    assert after["serving"]["extraArgs"] == ["--seed", "1", "--enforce-eager"]


@pytest.mark.parametrize("words", [["--api-key", "geheim"], ["--api-key=geheim"], ["--api-key geheim"]])
def test_a_key_on_the_command_line_is_refused_and_not_shown(raw: Raw, words: list[str]) -> None:
    raw = change(raw, "serving.extraArgs", words)
    text = str(refused(raw))
    assert "apiKey is the setting" in text
    assert "geheim" not in text
    assert 'pulumi config set --secret apiKey "$(openssl rand -hex 32)"' in str(refused(raw, api_key_given=False))


def test_the_flags_of_a_model_of_one_s_own_are_held_against_the_same_list(raw: Raw) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "torch_dtype": "bfloat16",
    }
    raw = change(
        raw, "model", {"repository": "some/model", "config": config, "flags": ["--trust-remote-kode", "-tp=2"]}
    )
    assert {dotted(problem.path) for problem in refused(raw).problems} == {"model.flags[0]", "model.flags[1]"}


def test_of_another_release_only_contradictions_are_known(raw: Raw) -> None:
    serving = {**raw["serving"], **OTHER, "extraArgs": ["--flag-of-tomorrow", "--port", "80"]}
    (problem,) = refused({**raw, "serving": serving}).problems
    assert dotted(problem.path) == "serving.extraArgs[1]"


@pytest.mark.parametrize("words", ["--enforce-eager", [["--seed"]], [None], [""]])
def test_what_is_no_list_of_words_is_refused(raw: Raw, words: object) -> None:
    with pytest.raises(SettingsError):
        plan(change(raw, "serving.extraArgs", words), api_key_given=True)


def test_the_list_of_flags_says_where_it_comes_from() -> None:
    assert release().version == "0.27.1"
    assert release().date
    assert release().flags["-tp"].name == "--tensor-parallel-size"
