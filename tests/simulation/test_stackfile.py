"""The generated stack file: what is merged, what survives, what is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from simulation import stackfile
from simulation.tools import SetupError

DEV = """\
config:
  # where the GPUs are
  aws:region: us-east-2
  vllm-multinode:deployment:
    gpuNodes: {count: 2, instanceType: p5.48xlarge}
    operations:
      timeBox: {until: 2026-12-24T18:00:00Z, daily: 18:30, mode: on}
    charts:
      nvidiaDevicePlugin: {version: 0.20.0}
"""
OVERLAY = """\
config:
  vllm-multinode:deployment:
    charts:
      nvidiaDevicePlugin: {chart: ./local}
      leaderWorkerSet: {install: false, version: 0.8.0}
"""
SECRET = "v1:AAAA:BBBB"
SALT = "v1:salt"


REAL_STACK = f"{DEV}  vllm-multinode:apiKey:\n    secure: {SECRET}\nencryptionsalt: {SALT}\n"


class Project:
    """A project folder with both sources, and what was said while its stack file was refreshed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.overlay = folder / "overlay.yaml"
        self.file = replace(stackfile.SIMULATED, overlay=self.overlay)
        self.dev = folder / self.file.source
        self.target = folder / self.file.name
        self.put_aside = stackfile.put_aside(self.home, self.file)
        self.said: list[str] = []
        self.dev.write_text(DEV)
        self.overlay.write_text(OVERLAY)

    def refresh(self) -> bool:
        self.said.clear()
        return stackfile.refresh(self.folder, self.home, self.said.append, self.file)

    def deployment(self) -> dict[str, object]:
        loaded = yaml.safe_load(self.target.read_text())["config"]["vllm-multinode:deployment"]
        assert isinstance(loaded, dict)
        return loaded

    def store_secret(self) -> None:
        """What `pulumi config set --secret apiKey` does to the file."""
        text = self.target.read_text()
        self.target.write_text(f"{text}  vllm-multinode:apiKey:\n    secure: {SECRET}\nencryptionsalt: {SALT}\n")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_overlay_is_merged_key_by_key(project: Project) -> None:
    assert project.refresh()
    assert project.deployment()["charts"] == {
        "nvidiaDevicePlugin": {"version": "0.20.0", "chart": "./local"},
        "leaderWorkerSet": {"install": False, "version": "0.8.0"},
    }
    assert project.deployment()["gpuNodes"] == {"count": 2, "instanceType": "p5.48xlarge"}
    assert any("leaderWorkerSet" in line for line in project.said), "the overlay is shown when the file is made"


def test_values_are_copied_as_written(project: Project) -> None:
    project.refresh()
    lines = [line.strip() for line in project.target.read_text().splitlines()]
    assert {"until: 2026-12-24T18:00:00Z", "daily: 18:30", "mode: on"} <= set(lines)


def test_an_unchanged_source_keeps_every_edit(project: Project) -> None:
    project.refresh()
    edited = project.target.read_text().replace("count: 2", "count: 0")
    project.target.write_text(edited)
    assert not project.refresh()
    assert project.target.read_text() == edited
    assert project.said == []


@pytest.mark.parametrize("source", ["dev", "overlay"])
def test_a_changed_source_keeps_secrets_and_puts_edits_aside(project: Project, source: str) -> None:
    project.refresh()
    project.store_secret()
    edited = project.target.read_text().replace("count: 2", "count: 0")
    project.target.write_text(edited)
    path: Path = getattr(project, source)
    path.write_text(path.read_text() + "  vllm-multinode:added: 1\n")

    assert project.refresh()
    loaded = yaml.safe_load(project.target.read_text())
    assert loaded["encryptionsalt"] == SALT
    assert loaded["config"]["vllm-multinode:apiKey"] == {"secure": SECRET}
    assert loaded["config"]["vllm-multinode:added"] == 1
    assert project.put_aside.read_text() == edited
    assert any(str(project.put_aside) in line for line in project.said), "an edit must not vanish silently"
    assert not project.refresh()


def test_the_first_comment_says_that_it_is_generated(project: Project) -> None:
    project.refresh()
    first = project.target.read_text().splitlines()[0]
    assert first.startswith("# Generated from Pulumi.dev.yaml and simulation/overlay.yaml")


def test_has_value(project: Project) -> None:
    project.refresh()
    assert not stackfile.has_value(project.folder, "vllm-multinode:apiKey")
    project.store_secret()
    assert stackfile.has_value(project.folder, "vllm-multinode:apiKey")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(None, "is missing"), ("- 1\n", "must hold a mapping"), ("a: [\n", "not valid YAML")],
)
def test_a_bad_source_is_named(project: Project, content: str | None, complaint: str) -> None:
    project.dev.unlink() if content is None else project.dev.write_text(content)
    with pytest.raises(SetupError, match=f"Pulumi.dev.yaml.*{complaint}"):
        project.refresh()
    assert not project.target.exists()


def test_the_committed_overlay_names_what_the_local_cluster_runs(project: Project) -> None:
    stackfile.refresh(project.folder, project.home, project.said.append)
    charts = project.deployment()["charts"]
    assert isinstance(charts, dict)
    assert charts["leaderWorkerSet"] == {"install": False, "version": "0.8.0"}
    assert charts["nvidiaDevicePlugin"]["chart"] == "./simulation/charts/nvidia-device-plugin"


def test_secrets_of_the_real_stack_stay_out(project: Project) -> None:
    project.dev.write_text(REAL_STACK)
    project.refresh()
    written = project.target.read_text()
    assert SECRET not in written
    assert SALT not in written
    assert "gpuNodes" in written


def test_the_existing_clusters_file_names_its_kubeconfig(project: Project) -> None:
    source = "config:\n  vllm-multinode:deployment: {platform: {kind: existing, context: theirs}, name: ib}\n"
    (project.folder / stackfile.EXISTING.source).write_text(source)
    assert stackfile.refresh(project.folder, project.home, project.said.append, stackfile.EXISTING)
    written = yaml.safe_load((project.folder / "Pulumi.simulated-infiniband.yaml").read_text())
    deployment = written["config"]["vllm-multinode:deployment"]
    assert deployment["name"] == "ib"
    assert deployment["platform"] == {
        "kind": "existing",
        "context": "existing",
        "kubeconfig": f"{project.home}/kubeconfig",
    }
    assert deployment["charts"]["leaderWorkerSet"] == {"install": False, "version": "0.8.0"}
    assert any("existing_overlay.yaml" in line for line in project.said)
