"""The default stack file, as a mapping that a test may change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

STACK_FILE = Path(__file__).parents[2] / "Pulumi.dev.yaml"


@pytest.fixture
def raw() -> dict[str, Any]:
    """`vllm-multinode:deployment` of Pulumi.dev.yaml: two p5.48xlarge."""
    loaded = yaml.safe_load(STACK_FILE.read_text(encoding="utf-8"))
    deployment: dict[str, Any] = loaded["config"]["vllm-multinode:deployment"]
    return deployment
