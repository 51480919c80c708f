"""The default stack file, as a mapping that a test may change."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

TODAY = datetime.date(2026, 12, 1)
STACK_FILE = Path(__file__).parents[2] / "Pulumi.dev.yaml"


@pytest.fixture
def raw() -> dict[str, Any]:
    """`vllm-multinode:deployment` of Pulumi.dev.yaml: two p5.48xlarge."""
    loaded = yaml.safe_load(STACK_FILE.read_text(encoding="utf-8"))
    deployment: dict[str, Any] = loaded["config"]["vllm-multinode:deployment"]
    return deployment


@pytest.fixture(autouse=True)
def _day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The age of prices and the support of Kubernetes versions are told as of one day."""
    monkeypatch.setattr("planner.prices.today", lambda: TODAY)
