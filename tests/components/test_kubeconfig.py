"""The way into a cluster that is there: a file and a context that exist, or a refusal that says what to type."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi import RunError

from components.kubeconfig import check_context
from planner.platform_settings import ExistingPlatform
from tests.components.graph import record
from tests.components.test_existing_cluster import existing
from tests.planner.test_weight_rules import EXISTING, on_existing_cluster


def platform(context: str = "lab", kubeconfig: str | None = None) -> ExistingPlatform:
    return ExistingPlatform.model_validate({**EXISTING, "context": context, "kubeconfig": kubeconfig})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "a config"
    made.write_text(yaml.safe_dump({"contexts": [{"name": "lab"}, {"name": "kind home"}]}))
    return made


def test_a_context_that_is_there_passes(file: Path, tmp_path: Path) -> None:
    check_context(platform(kubeconfig=str(file)), {})
    check_context(platform("kind home"), {"KUBECONFIG": f"{tmp_path}/none:{file}"})


def test_without_any_kubeconfig_the_provider_is_asked(tmp_path: Path) -> None:
    check_context(platform(), {"KUBECONFIG": f"{tmp_path}/none"})


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (platform(kubeconfig="/no/such/file"), "pulumi config rm --path 'deployment.platform.kubeconfig'"),
        (
            platform("my-cluster"),
            "lab, kind home\n   type:    pulumi config set --path 'deployment.platform.context' lab",
        ),
        (platform("kind-home"), "pulumi config set --path 'deployment.platform.context' 'kind home'"),
    ],
)
def test_what_is_missing_is_said_with_what_to_type(file: Path, chosen: ExistingPlatform, said: str) -> None:
    with pytest.raises(RunError) as caught:
        check_context(chosen, {"KUBECONFIG": str(file)})
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "[", "contexts: 3", "contexts: [a]", "\0"])
def test_a_file_that_is_no_kubeconfig_has_no_context(tmp_path: Path, text: str) -> None:
    broken = tmp_path / "broken"
    broken.write_text(text)
    with pytest.raises(RunError, match=r"it\s+has none"):
        check_context(platform(kubeconfig=str(broken)), {})


def test_the_program_asks_before_the_first_resource(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(file))
    existing()
    file.write_text(yaml.safe_dump({"contexts": [{"name": "other"}]}))
    with pytest.raises(RunError, match="a context of"):
        existing()


def test_the_shell_finds_a_kubeconfig_below_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "lab config").write_text(yaml.safe_dump({"contexts": [{"name": "lab"}]}))

    def change(deployment: dict[str, Any]) -> None:
        deployment.update(on_existing_cluster(deployment, {"kind": "nvme"}))
        deployment["platform"] = {**EXISTING, "kubeconfig": "~/lab config"}

    made = record(change).outputs["connect"]
    echoed = subprocess.run(["bash", "-c", f"printf '%s\\n' {made}"], capture_output=True, text=True, check=True)
    assert f"{tmp_path}/lab config" in echoed.stdout.splitlines()
