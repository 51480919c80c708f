"""The lock files that pods install from: what is tested here is what they get."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.payloads.conftest import PAYLOADS

DEVELOPMENT = (PAYLOADS.parent / "requirements-dev.txt").read_text()
HUB, S3 = PAYLOADS / "requirements-staging.txt", PAYLOADS / "requirements-staging-s3.txt"


def pins(text: str) -> dict[str, str]:
    """Versions by name."""
    found = re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", text, re.MULTILINE)
    return {name.lower().replace("_", "-"): version for name, version in found}


@pytest.mark.parametrize(("lock", "package"), [(HUB, "huggingface-hub"), (S3, "boto3")])
def test_pods_get_the_version_that_is_tested(lock: Path, package: str) -> None:
    assert pins(lock.read_text())[package] == pins(DEVELOPMENT)[package]


@pytest.mark.parametrize("lock", [HUB, S3])
def test_every_pin_has_a_hash(lock: Path) -> None:
    text = lock.read_text()
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}$", text, re.MULTILINE)) >= len(pins(text)) > 0
    assert not re.search(r"https?://|--index-url", text), "the index is the pod's to choose"


def test_both_can_be_installed_together() -> None:
    hub, s3 = pins(HUB.read_text()), pins(S3.read_text())
    assert {name for name in hub.keys() & s3.keys() if hub[name] != s3[name]} == set()
