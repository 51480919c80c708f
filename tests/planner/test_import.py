"""A checkpoint's config.json as an entry, and models that a stack file describes itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from bench.checkpoint_configs import config
from planner import SettingsError, plan, weights
from planner.catalogue import CATALOGUE
from planner.cli import app
from planner.command_line import REFUSED
from planner.inline_models import inline

Raw = dict[str, Any]
READ_BACK = (
    "llama-3.1-8b-instruct",
    "qwen3-235b-a22b",
    "qwen3-235b-a22b-fp8",
    "minimax-m2.5",
    "kimi-k2-thinking",
    "glm-5",
    "glm-5-fp8",
)


def imported(folder: Path, content: object, *flags: str) -> Result:
    file = folder / "config.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return CliRunner().invoke(app, ["import", str(file), "--repository", "some/Model", *flags])


@pytest.mark.parametrize("name", READ_BACK)
def test_a_config_gives_the_architecture_of_its_entry(tmp_path: Path, name: str) -> None:
    model = CATALOGUE[name]
    result = imported(tmp_path, config(model, model.architecture.layers))
    found = inline(yaml.safe_load(result.stdout)["model"])
    assert weights.parameters(found) == pytest.approx(weights.parameters(model), rel=1e-9)
    assert found.weights.expert_bytes == pytest.approx(model.weights.expert_bytes)
    assert found.architecture.attention == model.architecture.attention
    assert found.context_tokens == model.context_tokens


def test_a_hybrid_multimodal_config_is_read_from_its_text_part(tmp_path: Path) -> None:
    model = CATALOGUE["qwen3.5-35b-a3b"]
    text = {**config(model, 40)["text_config"], "mtp_num_hidden_layers": 1}
    vision = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16,
              "num_position_embeddings": 2304, "temporal_patch_size": 2}  # fmt: skip
    whole = {"model_type": "qwen3_5_moe", "text_config": text, "vision_config": vision}
    found = inline(yaml.safe_load(imported(tmp_path, whole).stdout)["model"])
    assert found.architecture == model.architecture


def test_the_index_is_held_against_what_is_computed(tmp_path: Path) -> None:
    index = tmp_path / "index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 16_060_522_496}, "weight_map": {}}))
    llama = config(CATALOGUE["llama-3.1-8b-instruct"], 32)
    assert "16.1 GB by the index, -0.0%" in imported(tmp_path, llama, "--index", str(index)).stdout
    index.write_text(json.dumps({"weight_map": {}}))
    assert "no metadata.total_size" in imported(tmp_path, llama, "--index", str(index)).stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hidden_size": None}, "config.json has no hidden_size"),
        ({"model_type": "mamba9"}, "unknown architecture: model_type is 'mamba9'"),
        ({"num_hidden_layers": -3}, "must be a whole number from 1 to 1000, not -3"),
        ({"num_hidden_layers": "many"}, "must be a whole number from 1 to 1000, not 'many'"),
        ({"quantization_config": {"quant_method": "magic"}}, "unknown quantization: quant_method is 'magic'"),
    ],
)
def test_a_config_that_cannot_be_read_is_a_clear_error(tmp_path: Path, change: Raw, said: str) -> None:
    result = imported(tmp_path, {**config(CATALOGUE["qwen3-235b-a22b"], 94), **change})
    assert result.exit_code == REFUSED
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("content", ["", "[1]", "{", "3"])
def test_a_file_that_is_no_config_is_a_clear_error(tmp_path: Path, content: str) -> None:
    result = imported(tmp_path, content)
    assert result.exit_code == REFUSED
    assert "config.json" in result.stderr


def entry(**more: object) -> Raw:
    return {"repository": "some/Model", "config": config(CATALOGUE["minimax-m2.5"], 62), **more}


def test_a_stack_file_may_describe_its_model(raw: Raw) -> None:
    raw["model"] = entry(flags=["--trust-remote-code"], toolCallParser="hermes", environment={"A": "1"})
    planned = plan(raw, api_key_given=True)
    assert planned.serving is not None
    args = planned.serving.leader.args
    assert args[0].startswith("/weights/Model-")
    assert {"--trust-remote-code", "hermes"} <= set(args)
    assert ("A", "1") in [(item.name, item.value) for item in planned.serving.leader.env]
    assert planned.serving.tensor_parallel == 4


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (entry(parser="x"), "an inline model has no key parser"),
        ({"repository": "some/Model"}, "an inline model needs config"),
        (entry(gated="yes"), "gated of an inline model is of the wrong kind"),
        (entry(repository="Model"), "owner/name"),
        (entry(config={"model_type": "llama"}), "config.json has no num_hidden_layers"),
        (3, "kimi-k2.5"),
    ],
)
def test_a_wrong_description_is_refused_with_the_others(raw: Raw, model: object, said: str) -> None:
    raw |= {"model": model, "name": "No_Label"}
    with pytest.raises(SettingsError) as caught:
        plan(raw, api_key_given=True)
    assert said in str(caught.value)
    assert "deployment.name" in str(caught.value)
