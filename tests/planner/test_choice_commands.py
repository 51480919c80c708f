"""`python -m planner price | compare | recommend`: tables, JSON, formulas, and clear refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from planner.cli import app
from planner.command_line import DOES_NOT_FIT, REFUSED, STACK_KEY


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def data(*args: str) -> dict[str, Any]:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def text(*args: str) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 100
    return result.stdout


def test_price_shows_hour_month_old_prices_and_the_way_to_the_first_token() -> None:
    shown = text("price")
    for expected in ("110.08", "80,358.40", "55.04*", "older than 90 days", "First token after about 63 min"):
        assert expected in shown
    assert "at least 112.13 USD per hour, 81,856 USD per month" in shown


def test_price_explained_is_each_figure_with_its_numbers() -> None:
    shown = " ".join(text("price", "--explain").split())
    for expected in (
        "gpuNodes: 2 node-hour x 55.04 USD = 110.080000 USD/h",
        "rootVolumes: 800 GB-month x 0.08 USD / 730 h = 0.087671 USD/h",
        "110.080000 + 1.814400 + 0.100000 + 0.045000 + 0.005000 + 0.087671 = 112.132071 USD/h",
        "112.132071 USD/h x 730 h = 81856.41 USD",
        "staging: 1153.38 s / 3600 x 2.0521 USD/h = 0.66 USD; computed: 595.14 GB x 1000 / 516 MB/s",
        "595.14 GB x 0.045 USD/GB = 26.78 USD",
    ):
        assert expected in shown


def test_price_for_programs() -> None:
    found = data("price", "--boot-minutes", "5", "--hub-mb-per-second", "5000")
    assert found["total_per_month"] == pytest.approx(81_856, abs=1)
    assert found["first_token"]["phases"][2] == {
        "name": "boot",
        "seconds": 300,
        "usd": 9.34,
        "gpu_nodes_paid": True,
        "waiting_seconds": 0,
        "source": "assumed: instance start, node join, image pull",
    }
    assert "limited by the file system" in found["first_token"]["phases"][1]["source"]


def test_price_by_purchase() -> None:
    assert "capacity block, paid" in text("price", "--purchase", "capacity_block")
    assert data("price", "--purchase", "reservation")["parts"][0]["per_hour"] == pytest.approx(110.08)


def test_price_shows_a_stack_that_is_above_its_limit(raw: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {STACK_KEY: raw | {"maxHourlyPrice": 5}}}))
    assert "112.13" in text("price", str(file))


def test_compare_shows_each_model_once_with_its_gpus() -> None:
    shown = text("compare")
    assert len(re.findall(r"^ ?kimi-k2\.5 ", shown, re.MULTILINE)) == 1
    assert re.search(r"int4 +16 H100 +8x2 +\d{3} k +2 p5\.48xlarge +110\.08 +- *$", shown, re.MULTILINE)
    assert "give --tokens-per-second" in shown


def test_compare_prices_a_million_tokens_at_the_stated_throughput_and_names_its_source() -> None:
    flag = ("--tokens-per-second", "kimi-k2.5@p5.48xlarge=2400, physics-intern PR 12")
    shown = text("compare", *flag)
    assert re.search(r"2 p5\.48xlarge +110\.08 +12\.74", shown)
    assert "2400 tokens/s, physics-intern PR 12" in shown
    rows = data("compare", *flag)["rows"]
    assert [row["gpu"] for row in rows if row["tokens_per_second"]] == ["h100-80gb"]


def test_compare_says_where_a_format_does_not_run_instead_of_a_price() -> None:
    shown = text("compare", "--model", "kimi-k2.5")
    for gpu in ("A100", "H100", "H200"):
        assert re.search(rf"nvfp4 +not on {gpu} *$", shown, re.MULTILINE)
    assert re.search(r"nvfp4 +4 B200 .* 113\.93", shown)
    assert "kimi-k2.5 nvfp4 does not run on A100, H100, H200: NVFP4 needs Blackwell" in shown
    for row in data("compare", "--model", "kimi-k2.5")["rows"]:
        if row["precision"] == "nvfp4" and row["gpu"] != "b200-180gb":
            assert (row["runs"], row["fits"], row["usd_per_hour"], row["instance_type"]) == ("no", None, None, None)
    assert re.search(r"glm-5 744B/40B +bf16 +not on A100 *$", text("compare"), re.MULTILINE)


def test_compare_one_model_in_every_precision_with_formulas() -> None:
    found = data("compare", "--model", "glm-5", "--explain", "--tokens-per-second", "1000")
    assert {row["precision"] for row in found["rows"]} == {"bf16", "fp8", "nvfp4"}
    assert {row["runs"] for row in found["rows"] if row["precision"] == "nvfp4"} == {"no", "yes"}
    formulas = "\n".join(found["explain"])
    assert "79.65 GiB x 0.9 -" in formulas
    assert "17.58 USD per million = 63.296 USD/h / (1000 tokens/s x 3600 s) x 1000000" in formulas


def test_recommend_lists_choices_reasons_and_break_even() -> None:
    flags = ("--quality", "frontier", "--context", "131072", "--api-price", "2.5", "--explain")
    shown = text("recommend", *flags, "--measured-failure-of", "qwen3.5-397b-a17b", "--sovereignty")
    assert re.search(r"1 p5en\.48xlarge +8x1 .* >=65\.33 +627 M/day", shown)
    assert "an API is no option" in shown
    words = " ".join(shown.split())
    assert "627,131,073 tokens/day = 65.326153 USD/h x 24 h / 2.5 USD x 1000000 tokens" in words
    assert "7,258 tokens/s = 627,131,073 tokens/day / 86400" in words


def test_recommend_for_programs() -> None:
    found = data("recommend", "--quality", "good-enough", "--budget", "10")
    assert [choice["rank"] for choice in found["choices"]] == [1, 2]
    assert all(choice["usd_per_hour"] <= 10 for choice in found["choices"])
    assert {choice["tier"] for choice in found["choices"]} == {"good-enough"}
    assert len(found["conditions"]) == 3


def test_recommend_counts_what_is_around_the_gpu_nodes_by_the_users_own_stack_file(
    raw: dict[str, Any], tmp_path: Path
) -> None:
    raw["prices"] = {"controlPlane": 7.1}
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {STACK_KEY: raw}}))
    own, bare = data("recommend", str(file)), data("recommend")
    assert own["choices"][0]["usd_per_hour"] - bare["choices"][0]["usd_per_hour"] == pytest.approx(7.0)


def test_recommend_takes_a_price_of_the_stack_file_for_that_hardware_alone(raw: dict[str, Any], tmp_path: Path) -> None:
    raw["prices"] = {"gpuNodes": 1.0}
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {STACK_KEY: raw}}))
    choices = data("recommend", str(file), "--quality", "frontier")["choices"]
    kimi = {choice["instance_type"]: choice["usd_per_hour"] for choice in choices if choice["family"] == "kimi-k2.5"}
    assert kimi["p5.48xlarge"] < 5
    assert kimi["p5en.48xlarge"] > 63


def test_recommend_leaves_out_what_has_no_known_price_in_the_region(raw: dict[str, Any], tmp_path: Path) -> None:
    raw["platform"] |= {"region": "us-west-2", "availabilityZone": "us-west-2b"}
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {STACK_KEY: raw}}))
    result = run("recommend", str(file))
    assert result.exit_code == DOES_NOT_FIT
    assert "no hardware whose price is known" in " ".join(result.stdout.split())


def test_recommend_ends_with_1_where_nothing_is_left() -> None:
    result = run("recommend", "--budget", "1")
    assert result.exit_code == DOES_NOT_FIT
    assert "above the budget of 1" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("recommend", "--budget", "0"), "--budget 0\n   allowed: 1e-06 to 1e+09 (USD per hour)"),
        (("recommend", "--budget", "-3"), "--budget -3"),
        (("recommend", "--budget", "nan"), "--budget nan"),
        (("recommend", "--api-price", "0"), "--api-price 0"),
        (("recommend", "--context", "10"), "--context 10\n   allowed: 1024 or more"),
        (("recommend", "--concurrency", "0"), "--concurrency 0\n   allowed: 1 or more"),
        (("recommend", "--measured-failure-of", "kimi"), "type:    --measured-failure-of kimi-k2.5"),
        (("recommend", "--quality", "best"), "good-enough"),
        (("compare", "--model", "kimi"), "type:    --model kimi-k2.5"),
        (("compare", "--max-model-len", "0"), "--max-model-len 0"),
        (("compare", "--tokens-per-second", "fast"), "0.001 to 1e9"),
        (("compare", "--tokens-per-second", "kimi=5"), "a model of the catalogue"),
        (("price", "--boot-minutes", "0"), "--boot-minutes 0"),
        (("price", "--purchase", "spot"), "on_demand"),
    ],
)
def test_bad_flags_are_refused_with_what_is_allowed_and_no_traceback(flags: tuple[str, ...], named: str) -> None:
    result = run(*flags)
    assert result.exit_code == REFUSED
    assert named in result.stderr
    assert "Traceback" not in result.output
