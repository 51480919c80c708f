"""What commands refuse: each refusal says what to type, and what it says is accepted; with `--json` it is data."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from bench.checkpoint_configs import config
from planner import plan
from planner.catalogue import CATALOGUE
from planner.cli import app
from planner.command_line import DOES_NOT_FIT, REFUSED, STACK_KEY
from tests.planner.test_weight_rules import on_existing_cluster

REFUSED_FLAGS = (
    "fit --gpu h300",
    "fit --gpu x",
    "fit --model Kimi-K3",
    "fit --model someone/Kimi-K2.5-copy",
    "fit --instance-type p5.48xl",
    "fit --precision fp8",
    "fit --kv-cache-dtype int8",
    "fit --gpu h200-141gb --instance-type p5.48xlarge",
    "fit --instance-type p5.48xlarge --gpus-per-node 4",
    "fit --nodes 99",
    "fit --max-model-len 300000",
    "fit --max-num-batched-tokens 1",
    "fit --max-num-seqs 0",
    "fit --gpu-memory-utilization 1.2",
    "fit --tensor-parallel 5",
    "fit --tensor-parallel 4 --pipeline-parallel 2",
    "fit --decode-context-parallel 3",
    "fit --data-parallel 3",
    "fit --model llama-3.1-8b-instruct --expert-parallel",
    "fit --model llama-3.1-8b-instruct --gpu h100-80gb --gpus-per-node 72 --nodes 64",
    "price --model kimi",
    "price --instance-type p5",
    "price --nodes 17",
    "price --boot-minutes 0",
    "price --write",
    "compare --model kimi",
    "compare --max-model-len 1",
    "compare --tokens-per-second fast",
    "compare --tokens-per-second kimi=5",
    "compare --tokens-per-second kimi-k2.5@p5=5",
    "recommend --measured-failure-of kimi",
    "recommend --context 1",
    "recommend --concurrency 0",
    "recommend --budget 0",
)
NOTHING_FITS = (
    pytest.param("--concurrency 1000000000", marks=pytest.mark.slow),
    "--concurrency 20000 --context 131072 --quality good-enough",
    "--context 10000000",
    "--budget 1",
    "--budget 5 --concurrency 3000",
    "--quality good-enough --context 1048576",
    "--measured-failure-of kimi-k2.5",
    "--concurrency 1000000000 --context 10000000 --budget 3",
)


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, words)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def problems(*words: str) -> list[dict[str, Any]]:
    result = run(*words, "--json")
    assert result.exit_code == REFUSED
    assert result.stderr == ""
    found: list[dict[str, Any]] = json.loads(result.stdout)["problems"]
    assert found
    return found


def with_typed(words: list[str], typed: str) -> list[str]:
    """The command line after what a refusal says to type: flags set, or left out."""
    setting, _, leaving = typed.partition("leave out ")
    changed = list(words)
    for flag in leaving.split(" and "):
        while flag and flag in changed:
            place = changed.index(flag)
            value = place + 1 < len(changed) and not changed[place + 1].startswith("--")
            del changed[place : place + 1 + value]
    new = shlex.split(setting.removesuffix(", and "))
    for flag in new[::2]:
        if flag in changed:
            place = changed.index(flag)
            del changed[place : place + 2]
    return [*changed, *new]


@pytest.mark.parametrize("line", REFUSED_FLAGS)
def test_what_a_refusal_says_to_type_is_accepted(line: str) -> None:
    words = shlex.split(line)
    for problem in problems(*words):
        assert problem["where"]
        assert problem["allowed"]
        assert problem["type"], problem
        for typed in problem["type"]:
            words = with_typed(words, typed) if typed != "--refresh" else words[:1]
    assert run(*words).exit_code in (0, DOES_NOT_FIT), words


@pytest.mark.parametrize("line", NOTHING_FITS)
def test_where_nothing_fits_a_wish_that_is_answered_is_named(line: str) -> None:
    words = ["recommend", *line.split()]
    result = run(*words, "--json")
    assert result.exit_code == DOES_NOT_FIT
    assert run(*with_typed(words, json.loads(result.stdout)["instead"])).exit_code == 0


def test_people_are_told_the_same() -> None:
    assert (
        "Nothing fits what is wanted.\n   type:    --context 262144" in run("recommend", "--context", "9999999").stdout
    )


def test_a_region_without_prices_is_told_how_to_read_them(raw: dict[str, Any], tmp_path: Path) -> None:
    raw["platform"] |= {"region": "us-west-2", "availabilityZone": "us-west-2b"}
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {STACK_KEY: raw}}))
    assert "price --refresh --region us-west-2 --write" in run("recommend", str(file)).stdout


def test_hardware_is_not_recommended_for_a_cluster_that_is_there(raw: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {STACK_KEY: on_existing_cluster(raw, {"kind": "nvme"})}}))
    (problem,) = problems("recommend", str(file))
    assert (problem["where"], problem["type"]) == (str(file), ["leave out the stack file"])


def test_a_load_that_no_hardware_bears_is_told_with_a_lighter_one() -> None:
    words = ("fit", "--model", "llama-3.1-8b-instruct", "--max-num-batched-tokens", "4000000")
    answer = json.loads(run(*words, "--json").stdout)
    need = answer["alternatives_need"]
    assert "--max-num-batched-tokens 8192" in need
    smallest = answer["alternatives"][0]
    changed = list(words)
    for typed in (f"--instance-type {smallest['instance_type']}", f"--nodes {smallest['nodes']}", *need):
        changed = with_typed(changed, typed)
    assert run(*changed).exit_code == 0
    assert f"with {' '.join(need)}" in " ".join(run(*words).stdout.split())


@pytest.mark.parametrize("name", ["Kimi-K2.5", "moonshotai/Kimi-K2.5", "MOONSHOTAI/kimi-k2.5"])
def test_a_model_is_known_by_its_name_on_the_hub_whatever_its_case(raw: dict[str, Any], name: str) -> None:
    assert plan(raw | {"model": name}, api_key_given=True).model.name == "kimi-k2.5"
    assert json.loads(run("fit", "--model", name, "--json").stdout)["model"] == "kimi-k2.5"
    assert run("price", "--model", name).exit_code == 0
    assert run("compare", "--model", name).exit_code == 0
    assert run("recommend", "--measured-failure-of", name, "--quality", "high").exit_code == DOES_NOT_FIT
    assert "2400 tokens/s" in run("compare", "--tokens-per-second", f"{name}@P5.48xlarge=2400").stdout


def test_every_repository_of_the_catalogue_names_one_model() -> None:
    for model in CATALOGUE.values():
        assert json.loads(run("fit", "--model", model.repository, "--json").stdout)["model"] == model.name


def test_gpus_are_known_whatever_their_case() -> None:
    assert json.loads(run("fit", "--gpu", "H200-141GB", "--json").stdout)["gpu"] == "h200-141gb"


def test_a_name_like_none_is_answered_by_one_that_begins_like_it() -> None:
    (problem,) = problems("fit", "--gpu", "h300")
    assert problem["type"] == ["--gpu h100-80gb"]
    assert "h200-141gb" in problem["allowed"]


def test_a_missing_stack_file_is_answered_with_those_that_are_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("Pulumi.mine.yaml").touch()
    (problem,) = problems("check", "none.yaml")
    assert problem["where"] == "none.yaml"
    assert "Pulumi.mine.yaml" in problem["allowed"]


def test_a_refused_stack_file_is_data_with_json(raw: dict[str, Any], tmp_path: Path) -> None:
    raw |= {"name": "No_Label", "gpuNode": 2}
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {STACK_KEY: raw}}))
    found = {problem["where"]: problem for problem in problems("check", str(file))}
    assert set(found) == {"deployment.name", "deployment.gpuNode", "apiKey"}
    assert found["deployment.name"]["given"] == "No_Label"
    assert found["deployment.name"]["type"] == ["pulumi config set --path 'deployment.name' no-label"]


@pytest.mark.parametrize("line", ["recommend --quality best", "fit --nodes two", "fit --no-such-flag", "import"])
def test_flags_that_cannot_be_read_are_data_with_json(line: str) -> None:
    (problem,) = problems(*line.split())
    assert problem["type"] == [f"python -m planner {line.split()[0]} --help"]
    plain = run(*line.split())
    assert (plain.exit_code, plain.stdout) == (REFUSED, "")


def test_import_for_programs(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    model = CATALOGUE["minimax-m2.5"]
    file.write_text(json.dumps(config(model, 62)))
    answer = json.loads(run("import", str(file), "--repository", "some/Model", "--json").stdout)
    assert answer["model"]["repository"] == "some/Model"
    assert answer["model"]["config"]["num_hidden_layers"] == 62
    assert answer["total_parameters"] == pytest.approx(model.total_parameters, rel=0.03)
    assert (answer["precision"], answer["index_bytes"]) == ("fp8", None)
    file.write_text("{}")
    (problem,) = problems("import", str(file))
    assert problem["where"] == str(file)
    assert "unknown architecture" in problem["allowed"]
