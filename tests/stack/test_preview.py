"""What a user sees before anything is bought: the first preview, and refusals, with the real engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.simulated import SimulatedStack, make


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedStack]:
    """A stack that is only ever previewed: no control plane."""
    folder: Path = tmp_path_factory.mktemp("preview")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SIMULATION_HOME", str(folder / "home"))
        yield make(folder / "project", cluster=False)


def test_the_first_preview_shows_resources_memory_and_price_and_creates_nothing(stack: SimulatedStack) -> None:
    text = stack.ok("preview")
    for expected in (
        "+ 98 to create",
        "GiB per GPU of 79.65, tensor parallel 8 x pipeline parallel 2",
        "First token after about",
        "firstToken",
        "Fits: 912,480 KV tokens",
        "Total: at least 112.13 USD per hour",
        "weightsGiBPerGpuByStage",
        "SIMULATED",
    ):
        assert expected in text, text
    assert re.search(r"Fits: \d{3},\d{3} KV tokens", text)
    # Not to the cent: the control plane's price follows the calendar.
    assert re.search(r"Total: at least 11\d\.\d\d USD per hour, \d\d,\d{3} USD per month", text)
    for component in (
        "Network",
        "Cluster",
        "SystemNodes",
        "LustreCache",
        "WeightStaging",
        "GpuNodes",
        "FabricGate",
        "Serving",
    ):
        assert f"vllm-multinode:index:{component}" in text
    assert stack.state() == []


def test_bad_input_is_refused_before_the_first_resource_without_a_traceback(stack: SimulatedStack) -> None:
    stack.set("gpuNodes.count", -1)
    stack.set("serving.image", "vllm/vllm-openai:latest")
    stack.set("modle", "kimi-k2.5")
    try:
        run = stack.pulumi("preview")
        assert run.status != 0
        assert "Traceback" not in run.text
        for path in ("gpuNodes.count", "serving.image", "modle"):
            assert path in run.text, run.text
        assert "pulumi config set --path" in run.text
        assert "aws:ec2" not in run.text
    finally:
        stack.ok("config", "rm", "--path", "deployment.modle")
        stack.ok("config", "rm", "--path", "deployment.serving.image")
        stack.set("gpuNodes.count", 2)


def test_a_model_that_does_not_fit_is_refused_with_what_would(stack: SimulatedStack) -> None:
    stack.set("gpuNodes.count", 1)
    try:
        run = stack.pulumi("preview")
        assert run.status != 0
        assert "1 x p5en.48xlarge" in run.text, run.text
        assert "63.3" in run.text
    finally:
        stack.set("gpuNodes.count", 2)


def test_a_stack_above_its_price_limit_is_refused_with_its_parts_and_what_is_cheaper(stack: SimulatedStack) -> None:
    stack.set("maxHourlyPrice", 90)
    try:
        run = stack.pulumi("preview")
        assert run.status != 0
        for expected in ("deployment.maxHourlyPrice", "gpuNodes 110.08", "1 x p5en.48xlarge"):
            assert expected in run.text, run.text
        assert "aws:ec2" not in run.text
    finally:
        stack.ok("config", "rm", "--path", "deployment.maxHourlyPrice")


def test_a_missing_api_key_is_refused_with_the_command_that_sets_it(stack: SimulatedStack) -> None:
    key = stack.ok("config", "get", "apiKey").strip()
    stack.ok("config", "rm", "apiKey")
    try:
        run = stack.pulumi("preview")
        assert run.status != 0
        assert "pulumi config set --secret" in run.text, run.text
    finally:
        stack.ok("config", "set", "--secret", "apiKey", key)
