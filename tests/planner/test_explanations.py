"""`--explain`: whatever is printed as a formula is worked out again from its own numbers, and comes out."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from planner.catalogue import CATALOGUE
from planner.cli import app
from planner.command_line import STACK_KEY

GIB = 2**30
CASES = (
    "",
    "--kv-cache-dtype fp8 --max-num-seqs 1024",
    "--model glm-5-fp8 --instance-type p5en.48xlarge --nodes 1",
    "--model glm-5-fp8 --instance-type p5en.48xlarge --nodes 1 --kv-cache-dtype fp8",
    "--model kimi-k2-thinking --gpu h200-141gb --tensor-parallel 8 --decode-context-parallel 8",
    "--model qwen3.5-397b-a17b-fp8 --instance-type p5.48xlarge --nodes 2",
    "--model minimax-m2.5 --instance-type p4de.24xlarge --nodes 1 --expert-parallel",
    "--model deepseek-r1 --gpu h200-141gb --nodes 2 --gpus-per-node 8 --data-parallel 16 --expert-parallel",
    "--model llama-3.1-8b-instruct --gpu l40s-48gb --tensor-parallel 1 --max-num-seqs 1024",
)
NUMBER = re.compile(r"-?[\d,]*\d(?:\.\d+)?")


def ran(line: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*line.split(), "--json"])
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def worked_out(side: str) -> float:
    """A side of an equation with its words left out: numbers, + - x /, parentheses, ceil and floor."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", side).replace(" x ", " * ")
    text = re.sub(r"\b(?!ceil\b|floor\b)[A-Za-z][\w']*(?:[/-][A-Za-z]+)*", "", text)
    assert re.fullmatch(r"[\d\s.()*/+-]+", re.sub(r"ceil|floor", "", text)), side
    return float(eval(text, {"__builtins__": {}, "ceil": math.ceil, "floor": math.floor}))  # noqa: S307 (checked above)


def check(line: str) -> bool:
    """Whether the line is a formula; one whose sides differ by more than the rounding of what it shows fails."""
    equation = re.sub(r"^[\w ,]+: ", "", line.strip()).partition(";")[0]
    sides = equation.split(" = ")
    if len(sides) != 2 or sides[1].startswith("measured"):
        return False
    shown, formula = sorted(sides, key=lambda side: len(NUMBER.findall(side)))
    size = worked_out(formula) / (GIB if "GiB" in shown and "bytes" in formula else 1)
    # Each rounded addend may be off by half of its last digit.
    addends = 1 + formula.count(" - ") + formula.count(" + ") * (" x " not in formula)
    (number,) = NUMBER.findall(shown)
    open_ = 0.51 * 10.0 ** -len(number.partition(".")[2]) * addends
    assert size == pytest.approx(worked_out(shown), abs=open_, rel=2e-6), line
    return True


@pytest.mark.parametrize("flags", CASES)
def test_each_formula_of_a_fit_comes_out(flags: str) -> None:
    for lines in ran(f"fit {flags}")["explain"].values():
        assert sum(map(check, lines)) >= len(lines) - 1


@pytest.mark.parametrize("name", CATALOGUE)
def test_each_formula_comes_out_for_each_model(name: str) -> None:
    for lines in ran(f"fit --model {name} --gpu b300-270gb --gpus-per-node 8 --nodes 2")["explain"].values():
        assert sum(map(check, lines)) >= len(lines) - 1


@pytest.mark.parametrize(
    ("line", "least"),
    [
        ("compare --explain --tokens-per-second 1000", 180),
        ("recommend --quality frontier --api-price 2.5 --tokens-per-second 900 --explain", 60),
        ("price --explain", 14),
        ("price --explain --boot-minutes 3 --hub-mb-per-second 5000", 14),
        ("price --explain --instance-type p5en.48xlarge --nodes 1", 14),
    ],
)
def test_each_formula_of_the_other_commands_comes_out(line: str, least: int) -> None:
    assert sum(map(check, ran(line)["explain"])) >= least


def test_a_wrong_formula_is_found_out() -> None:
    assert check("weights 36.48 GiB = layers 35.33 + embedding 0.27 + image encoder 0.88")
    for wrong in ("0.27 GiB = 31 layers x 30 captures x 0.0003 GiB", "1.00 GiB = 2 x 1,073,741,824 bytes"):
        with pytest.raises(AssertionError):
            check(wrong)


def test_a_token_is_traced_to_the_architecture() -> None:
    lines = ran("fit")["explain"]["stage 0"]
    assert "a token takes 35,712 bytes on this GPU = 31 layers x (512 + 64) values x 2 bytes" in lines
    assert any(line.startswith("routed experts 33.223 GiB = 30 layers x (384 / 8 experts x 3 x") for line in lines)


def test_the_lengths_of_phases_are_formulas_too() -> None:
    lines = "\n".join(ran("price --explain")["explain"])
    assert "computed: 595.14 GB x 1000 / 516 MB/s, limited by the hub" in lines
    assert "computed: 2 x 595.14 GB x 1000 / 2343.75 MB/s, limited by the file system" in lines
    overlap = ran("timeline --explain")["explain"]["overlap"]
    assert "price of waiting: 253.38 s / 3600 x 110.0800 USD/h = 7.75 USD" in overlap


@pytest.mark.parametrize("weights", [{}, {"kind": "nvme"}])
def test_each_formula_of_the_two_ways_to_start_comes_out(
    raw: dict[str, Any], tmp_path: Path, weights: dict[str, Any]
) -> None:
    raw["weights"] = {"kind": "fsx", "revision": raw["weights"]["revision"]} | weights
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {STACK_KEY: raw}}))
    for lines in ran(f"timeline --explain {file}")["explain"].values():
        assert sum(map(check, lines)) == len(lines)
    if weights:
        assert re.search(r"fill disks: .*computed: 595\.14 GB x 1000 / 2900 MB/s", "\n".join(lines))
