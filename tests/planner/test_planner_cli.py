"""`python -m planner`: exit status, JSON, and messages instead of tracebacks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from planner.cli import app
from planner.command_line import DOES_NOT_FIT, REFUSED, STACK_KEY


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def fit(*args: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(run("fit", "--json", *args).stdout)
    return data


@pytest.fixture
def stack_file(raw: dict[str, Any], tmp_path: Path) -> Path:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {STACK_KEY: raw, "vllm-multinode:apiKey": {"secure": "v1:..."}}}))
    return file


def test_fit_by_flags_as_a_program_of_its_own() -> None:
    flags = ("--model", "kimi-k2.5", "--instance-type", "p5.48xlarge", "--nodes", "2", "--json")
    done = subprocess.run([sys.executable, "-m", "planner", "fit", *flags], capture_output=True, text=True, check=True)
    data = json.loads(done.stdout)
    assert data["fits"] is True
    assert (data["tensor_parallel"], data["pipeline_parallel"]) == (8, 2)
    assert 700_000 < data["kv_tokens"] < 950_000
    assert [set(stage) >= {"weights_gib", "overhead_gib", "kv_gib"} for stage in data["stages"]] == [
        True,
        True,
    ]


def test_fit_ends_with_1_and_alternatives_when_the_model_does_not_fit() -> None:
    result = run("fit", "--instance-type", "p5.48xlarge", "--nodes", "1", "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == DOES_NOT_FIT
    assert data["fits"] is False
    assert {"instance_type": "p5en.48xlarge", "nodes": 1}.items() <= data["alternatives"][2].items()


def test_every_alternative_fits() -> None:
    for item in fit("--instance-type", "p5.48xlarge", "--nodes", "1")["alternatives"]:
        assert fit("--instance-type", item["instance_type"], "--nodes", str(item["nodes"]))["fits"]


def test_one_p5en_node_fits() -> None:
    assert fit("--instance-type", "p5en.48xlarge", "--nodes", "1")["fits"]


def test_flags_decide_the_fit() -> None:
    split = fit("--tensor-parallel", "16", "--max-model-len", "65536")
    assert split["pipeline_parallel"] == 1
    assert split["max_model_len"] == 65_536
    more = fit("--gpu-memory-utilization", "0.95", "--max-num-seqs", "16", "--max-num-batched-tokens", "4096")
    assert more["kv_tokens"] > fit()["kv_tokens"]


def test_a_bad_flag_is_refused_in_terms_of_flags() -> None:
    result = run("fit", "--model", "kimi", "--nodes", "-1", "--tensor-parallel", "7")
    assert result.exit_code == REFUSED
    assert "--model kimi-k2.5" in result.stderr
    assert "--nodes 2" in result.stderr


def test_a_stack_file_with_flags_on_top(stack_file: Path) -> None:
    assert fit(str(stack_file))["nodes"] == 2
    assert fit(str(stack_file), "--nodes", "4")["pipeline_parallel"] == 4


@pytest.mark.parametrize("command", ["fit", "price", "check", "recommend"])
def test_the_stack_file_is_the_argument_of_every_command_that_takes_one(stack_file: Path, command: str) -> None:
    assert run(command, str(stack_file)).exit_code == 0
    stack_file.unlink()
    result = run(command, str(stack_file))
    assert result.exit_code == REFUSED
    assert "No such file" in result.stderr
    assert run(command, "--stack-file", str(stack_file)).exit_code == REFUSED


def test_fit_of_a_paused_stack_says_so(stack_file: Path) -> None:
    result = run("fit", str(stack_file), "--nodes", "0")
    assert result.exit_code == REFUSED
    assert "paused" in result.stderr


def test_price_by_part() -> None:
    data = json.loads(run("price", "--nodes", "2", "--json").stdout)
    assert data["complete"] is False
    assert data["parts"][0]["per_hour"] == pytest.approx(110.08)
    assert "Total: at least" in run("price").stdout


def test_check_accepts_a_good_stack_file(stack_file: Path) -> None:
    result = run("check", str(stack_file))
    assert result.exit_code == 0
    assert "KV tokens" in result.stdout


def test_check_names_what_preview_would_refuse(stack_file: Path, raw: dict[str, Any]) -> None:
    raw |= {"name": "No_Label", "gpuNode": 2}
    stack_file.write_text(yaml.safe_dump({"config": {STACK_KEY: raw}}))
    result = run("check", str(stack_file))
    assert result.exit_code == REFUSED
    for named in ("deployment.name", "deployment.gpuNode", "apiKey"):
        assert named in result.stderr


@pytest.mark.parametrize("content", ["", "a: [", "config: 3", "config: {other: 1}", f"config: {{'{STACK_KEY}': 3}}"])
def test_a_file_that_is_no_stack_file_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "Pulumi.bad.yaml"
    file.write_text(content)
    result = run("check", str(file))
    assert result.exit_code == REFUSED
    assert str(file) in result.stderr


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    result = run("fit", str(tmp_path / "none.yaml"))
    assert result.exit_code == REFUSED
    assert "No such file" in result.stderr
