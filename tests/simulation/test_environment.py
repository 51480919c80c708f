"""The prepared environment: what it keeps away, and plain `pulumi` commands of the real engine in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulation import environment, paths
from simulation.cli import main
from simulation.tools import SetupError
from simulation.tools.catalogue import TOOLS

PROGRAM = """\
import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.core.v1 import ConfigMap

config = pulumi.Config()
provider = Provider("render", render_yaml_to_directory="rendered")
count = config.require_object("deployment")["gpuNodes"]["count"]
opts = pulumi.ResourceOptions(provider=provider)
ConfigMap("note", metadata={"name": "note"}, data={"count": str(count)}, opts=opts)
pulumi.export("key", config.require_secret("apiKey"))
"""
ENGINE = next(tool for tool in TOOLS if tool.name == "pulumi")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMULATION_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:  # noqa: ARG001
    """A project of two resources, not the repository's own."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: vllm-multinode\nruntime: python\n")
    (folder / "Pulumi.dev.yaml").write_text("config:\n  vllm-multinode:deployment: {gpuNodes: {count: 2}}\n")
    (folder / "__main__.py").write_text(PROGRAM)
    return folder


def pulumi(project: Path, *arguments: str) -> str:
    """Runs a plain `pulumi` command. A provider that renders refuses the KUBECONFIG of the environment."""
    prepared = {name: value for name, value in environment.variables().items() if name != "KUBECONFIG"}
    answer = subprocess.run(
        ["pulumi", *arguments],
        cwd=project,
        env=prepared,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.mark.slow
def test_plain_pulumi_commands_run_the_simulated_stack(project: Path) -> None:
    environment.prepare(cluster=False, say=lambda _: None, project=project)
    preview = pulumi(project, "preview")
    assert "Previewing update (simulated)" in preview
    assert "+ 3 to create" in preview
    warnings = set(re.findall(r"warning: (.*)", preview))
    own = paths.ROOT / "simulation" / "bin" / "pulumi-resource-aws"
    assert warnings == {f"using pulumi-resource-aws from $PATH at {own}"}

    pulumi(project, "up", "--yes", "--skip-preview")
    (rendered,) = (project / "rendered").rglob("*note.yaml")
    assert 'count: "2"' in rendered.read_text()
    assert len(pulumi(project, "stack", "output", "key", "--show-secrets").strip()) >= 32
    pulumi(project, "destroy", "--yes", "--skip-preview")
    assert not rendered.exists()


def test_preparing_twice_does_nothing_the_second_time(project: Path, home: Path) -> None:
    said: list[str] = []
    environment.prepare(cluster=False, say=said.append, project=project)
    assert any("Made the stack simulated" in line for line in said)
    written = (project / "Pulumi.simulated.yaml").read_text()
    state = (home / "backend/.pulumi/stacks/vllm-multinode/simulated.json").read_text()
    said.clear()
    environment.prepare(cluster=False, say=said.append, project=project)
    assert said == []
    assert (project / "Pulumi.simulated.yaml").read_text() == written
    assert (home / "backend/.pulumi/stacks/vllm-multinode/simulated.json").read_text() == state


@pytest.mark.slow
def test_a_lost_home_is_made_again_with_the_same_key(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment.prepare(cluster=False, say=lambda _: None, project=project)
    key = pulumi(project, "config", "get", "apiKey")
    monkeypatch.setenv("SIMULATION_HOME", str(project.parent / "other-home"))
    environment.prepare(cluster=False, say=lambda _: None, project=project)
    assert pulumi(project, "config", "get", "apiKey") == key
    assert "+ 3 to create" in pulumi(project, "preview")


def test_no_credential_of_the_users_gets_in(home: Path) -> None:
    theirs = {
        "PATH": os.environ["PATH"],
        "AWS_ACCESS_KEY_ID": "AKIAREAL",
        "AWS_SECRET_ACCESS_KEY": "real-key",
        "AWS_SESSION_TOKEN": "real-token",
        "AWS_PROFILE": "real-profile",
        "AWS_REGION": "us-east-2",
        "PULUMI_ACCESS_TOKEN": "pul-real",
        "PULUMI_BACKEND_URL": "s3://real-state",
        "KUBECONFIG": "/real/kubeconfig",
        "EDITOR": "vi",
    }
    prepared = environment.variables(theirs)
    assert not [name for name, value in prepared.items() if "real" in value.lower()]
    assert prepared["PULUMI_BACKEND_URL"] == f"file://{home}/backend"
    assert prepared["KUBECONFIG"].startswith(str(home))
    assert (prepared["AWS_REGION"], prepared["EDITOR"]) == ("us-east-2", "vi")


@pytest.mark.usefixtures("home")
def test_the_stand_ins_programs_come_first_and_only_once() -> None:
    once = environment.variables()
    entries = once["PATH"].split(os.pathsep)
    assert entries[:2] == [str(Path(sys.executable).parent), str(paths.ROOT / "simulation" / "bin")]
    assert environment.variables(once) == once


@pytest.mark.usefixtures("home")
def test_an_installed_pulumi_is_used_and_may_fetch_its_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "installed" / "pulumi"
    theirs.parent.mkdir()
    theirs.write_text("#!/bin/sh\n")
    theirs.chmod(0o755)
    monkeypatch.setenv("PATH", f"{theirs.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("PULUMI_HOME", raising=False)
    prepared = environment.variables()
    assert str(ENGINE.home) not in prepared["PATH"]
    assert "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION" not in prepared
    environment.prepare_home()
    assert (Path(prepared["PULUMI_HOME"]) / "plugins").resolve() == tmp_path / "user" / ".pulumi" / "plugins"


def test_the_users_plugin_cache_stays_as_it_is_when_pulumi_comes_and_goes(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = tmp_path / "user"
    monkeypatch.setenv("PULUMI_HOME", str(user))
    for installed in (None, Path("/usr/bin/pulumi"), None):
        monkeypatch.setattr(environment, "installed_pulumi", lambda installed=installed: installed)
        environment.prepare_home()
        assert (home / "pulumi-home" / "plugins").is_symlink() == bool(installed)
    assert list((user / "plugins").iterdir()) == []


def test_a_failing_pulumi_command_is_quoted(project: Path) -> None:
    (project / "Pulumi.yaml").write_text("name: vllm-multinode\nruntime: [python]\n")
    with pytest.raises(SetupError, match=r"`pulumi stack init simulated` failed: (.|\n)*runtime"):
        environment.prepare(cluster=False, say=lambda _: None, project=project)


def test_a_shell_can_source_the_environment(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["env"]) == 0
    script = capfd.readouterr().out + 'echo "$SIMULATION_HOME|$PULUMI_STACK|${AWS_PROFILE-unset}|$(command -v pulumi)"'
    answer = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "AWS_PROFILE": "real"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = environment.installed_pulumi() or ENGINE.executable
    assert answer.stdout.strip() == f"{home}|simulated|unset|{found}"
