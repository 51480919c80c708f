"""The build driver on a Go module of three lines, and the catalogue against what the modules pin."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simulation import paths, tools
from simulation.tools import SetupError, build, catalogue
from simulation.tools.catalogue import MODULES, TOOLS, Tool

HELLO = 'package main\n\nvar word = "hello"\n\nfunc main() { println(word) }\n'
needs_go = pytest.mark.skipif(not shutil.which("go"), reason="Go is not needed where Pulumi is installed")


@pytest.fixture
def greeter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """A tool whose module and cache lie in a temporary folder."""
    module = tmp_path / "modules" / "greeter"
    module.mkdir(parents=True)
    (module / "go.mod").write_text("module greeter\n\ngo 1.26.0\n")
    (module / "main.go").write_text(HELLO)
    monkeypatch.setattr(catalogue, "MODULES", module.parent)
    monkeypatch.setattr(build, "MODULES", module.parent)
    monkeypatch.setattr(paths, "tools", lambda: tmp_path / "cache")
    catalogue._digest.cache_clear()
    return Tool(name="greeter", version="1.0", group="engine", folder="greeter", package=".", cold_build=1)


def run_build(tool: Tool) -> list[str]:
    said: list[str] = []
    build.build([tool], "It greets.", said.append)
    return said


@needs_go
def test_a_missing_tool_is_built_once_and_says_so(greeter: Tool) -> None:
    said = run_build(greeter)
    answer = subprocess.run([greeter.executable], capture_output=True, text=True, check=True)
    assert answer.stderr == "hello\n"
    assert "It greets." in said[0]
    built = greeter.executable.stat().st_mtime_ns
    run_build(greeter)
    assert greeter.executable.stat().st_mtime_ns == built


@needs_go
def test_two_clones_that_build_at_once_share_one_build(greeter: Tool) -> None:
    with ThreadPoolExecutor(max_workers=2) as clones:
        said = [line for lines in clones.map(run_build, [greeter, greeter]) for line in lines]
    assert greeter.is_built
    assert sum("MB in" in line for line in said) == 1


@needs_go
def test_a_failed_build_says_why_and_leaves_nothing(greeter: Tool) -> None:
    (catalogue.MODULES / "greeter" / "main.go").write_text("package main\n\nfunc main() { greet() }\n")
    with pytest.raises(SetupError, match="undefined: greet"):
        run_build(greeter)
    assert [path.name for path in paths.tools().iterdir() if path.suffix != ".lock"] == []


def test_without_go_the_error_says_what_to_install(greeter: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(paths.tools()))
    with pytest.raises(
        SetupError, match=r"greeter must be built, but there is no `go` on PATH.*Install Go 1\.26"
    ):
        run_build(greeter)


@pytest.mark.parametrize("change", [{"linker_flags": "-s"}, {"package": "./other"}, {"version": "1.1"}])
def test_whatever_changes_the_binary_changes_its_folder(greeter: Tool, change: dict[str, str]) -> None:
    assert dataclasses.replace(greeter, **change).home != greeter.home  # type: ignore[arg-type]


def test_a_changed_source_file_changes_the_folder_too(greeter: Tool) -> None:
    before = greeter.home
    (catalogue.MODULES / "greeter" / "main.go").write_text(HELLO.replace("hello", "good day"))
    catalogue._digest.cache_clear()
    assert greeter.home != before


def test_a_better_estimate_does_not_rebuild(greeter: Tool) -> None:
    assert dataclasses.replace(greeter, cold_build=99).home == greeter.home


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("pulumi", "github.com/pulumi/pulumi/pkg/v3"),
        ("pulumi-language-python", "github.com/pulumi/pulumi/sdk/v3"),
        ("kube-apiserver", "k8s.io/kubernetes"),
        ("etcd", "go.etcd.io/etcd/server/v3"),
        ("lws-manager", "sigs.k8s.io/lws"),
        ("kwok", "sigs.k8s.io/kwok"),
    ],
)
def test_the_version_is_the_one_that_the_module_pins(name: str, module: str) -> None:
    tool = next(tool for tool in (*TOOLS, catalogue.LANGUAGE_HOST) if tool.name == name)
    pinned = re.search(
        rf"^\s+{re.escape(module)} v(\S+)", (MODULES / tool.folder / "go.mod").read_text(), re.M
    )
    assert pinned
    assert tool.version == pinned[1]


def test_the_kubernetes_provider_passes_for_the_version_of_its_python_sdk() -> None:
    provider = next(tool for tool in TOOLS if tool.name == "pulumi-resource-kubernetes")
    assert f"pulumi-kubernetes=={provider.version}\n" in (paths.ROOT / "requirements.txt").read_text()


@pytest.mark.parametrize(
    ("look_up", "complaint"),
    [
        (lambda: tools.binary("kubelet"), "'kubelet' is not a program.*Known are: pulumi,"),
        (
            lambda: tools.binary("etcd"),
            r"etcd 3\.\S+ has not been built.*python -m simulation tools --cluster",
        ),
        (lambda: tools.resource("helm/x.yaml"), "'helm' keeps no files.*lws, kwok"),
        (lambda: tools.resource("lws/x.yaml"), "lws-manager .* has not been built"),
    ],
)
def test_a_look_up_that_fails_says_what_to_type(
    look_up: object, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "tools", lambda: tmp_path)
    assert callable(look_up)
    with pytest.raises(SetupError, match=complaint):
        look_up()


@pytest.mark.slow
def test_the_control_plane_and_its_files_are_found() -> None:
    for name in (
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubectl",
        "etcd",
        "lws-manager",
        "kwok",
    ):
        subprocess.run([tools.binary(name), "--help"], capture_output=True, check=True, timeout=30)
    for name in (
        "lws/config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
        "lws/config/rbac/role.yaml",
        "kwok/kustomize/rbac/role.yaml",
        "kwok/kustomize/stage/pod/fast/pod-ready.yaml",
    ):
        assert tools.resource(name).stat().st_size
    with pytest.raises(SetupError, match="not among the files kept of kwok"):
        tools.resource("kwok/kustomize/no.yaml")
