"""Which programs the stand-in builds from Go modules, at which version, and how. `build` builds them.

Every version here is the newest that the Go module proxy serves as source and that works with the others; the
module folders beside this file pin all that each program is compiled from (go.mod, go.sum).
"""

from __future__ import annotations

import functools
import hashlib
import platform
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from simulation import paths

MODULES = Path(__file__).resolve().parent
"""The folder that holds one Go module a subfolder."""

Group = Literal["engine", "cluster"]

STRIP = "-s -w"
PULUMI_VERSION = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"
KUBERNETES_PROVIDER = "github.com/pulumi/pulumi-kubernetes/provider/v4"
KUBERNETES = "1.35.4"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFiles:
    """Files of a downloaded Go module that a program needs at run time (or embeds while it is compiled)."""

    module: str
    """Import path of the module, as go.mod names it."""
    patterns: tuple[str, ...]
    """Globs below the module's root; each has to match something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One program: `package` of the Go module in `folder`, linked with `linker_flags`."""

    name: str
    """File name of the executable."""
    version: str
    group: Group
    folder: str
    package: str
    cold_build: int = field(repr=False)
    """Seconds from an empty build cache, measured 2026-12-01 with Go 1.26.8 on 2 cores; later tools of one
    folder share what the first one compiled."""
    linker_flags: str = STRIP
    embeds: ModuleFiles | None = None
    """Copied beside the main package before it is compiled."""
    beside: ModuleFiles | None = None
    """Executable scripts that must lie beside the binary."""
    resources: ModuleFiles | None = None
    """Kept under `resources/` with their folders, for the programs that start this one."""
    resource_name: str = ""
    """First part of the names by which `simulation.tools.resource` finds them."""
    companions: tuple[Tool, ...] = ()
    """Other programs that must lie in the same folder as this one."""

    @property
    def digest(self) -> str:
        """Eight hex digits over all that decides what is built, so that a stale build is never used."""
        return _digest(self)

    @property
    def home(self) -> Path:
        """Where the built tool lies; the folder exists only when it is complete."""
        return paths.tools() / f"{self.name}-{self.version}-{self.digest}"

    @property
    def executable(self) -> Path:
        """The built binary; `is_built` says whether it is there."""
        return self.home / self.name

    @property
    def is_built(self) -> bool:
        """Whether this very version has been built on this machine."""
        return self.executable.is_file()


@functools.cache
def _digest(tool: Tool) -> str:
    recipe = hashlib.sha256(f"{tool!r} {BUILD_SETTINGS} {sys.platform} {platform.machine()}".encode())
    for part in (tool, *tool.companions):
        for source in sorted((MODULES / part.folder).iterdir()):
            recipe.update(source.name.encode() + b"\0" + source.read_bytes())
    return recipe.hexdigest()[:8]


BUILD_SETTINGS = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false"}
"""The environment of every build; with -trimpath two clones share one Go build cache."""


def _kubernetes_version_flags() -> str:
    major, minor, _ = KUBERNETES.split(".")
    stamps = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(
        [STRIP, *(f"-X {package}.{key}={value}" for package in packages for key, value in stamps.items())]
    )


def _control_plane(name: str, cold_build: int) -> Tool:
    return Tool(
        name=name,
        version=KUBERNETES,
        group="cluster",
        folder="control-plane",
        package=f"k8s.io/kubernetes/cmd/{name}",
        linker_flags=_kubernetes_version_flags(),
        cold_build=cold_build,
    )


# The last SDK module that still holds the Python language host; engine 3.274.1 speaks its protocol, and
# wants it in its own folder: it warns about one on PATH.
LANGUAGE_HOST = Tool(
    name="pulumi-language-python",
    version="3.68.0",
    group="engine",
    folder="language-host",
    package="github.com/pulumi/pulumi/sdk/v3/python/cmd/pulumi-language-python",
    linker_flags=f"{STRIP} -X {PULUMI_VERSION}=v3.68.0",
    beside=ModuleFiles(
        module="github.com/pulumi/pulumi/sdk/v3", patterns=("python/cmd/pulumi-language-python-exec",)
    ),
    cold_build=27,
)

TOOLS: tuple[Tool, ...] = (
    Tool(
        name="pulumi",
        version="3.274.1",
        group="engine",
        folder="pulumi",
        package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        linker_flags=f"{STRIP} -X {PULUMI_VERSION}=v3.274.1",
        companions=(LANGUAGE_HOST,),
        cold_build=220,
    ),
    # Source of 2026-01-15, the newest served. It calls itself 4.34.2, the version of the Python SDK in
    # requirements.txt, because the engine warns about an older plugin; the build metadata tells the truth.
    Tool(
        name="pulumi-resource-kubernetes",
        version="4.34.2",
        group="engine",
        folder="kubernetes-provider",
        package=".",
        linker_flags=f"{STRIP} -X {KUBERNETES_PROVIDER}/pkg/version.Version=4.34.2+source.20260115",
        embeds=ModuleFiles(
            module=KUBERNETES_PROVIDER,
            patterns=(
                "cmd/pulumi-resource-kubernetes/schema.json",
                "cmd/pulumi-resource-kubernetes/terraform-mapping.json",
            ),
        ),
        cold_build=388,
    ),
    _control_plane("kube-apiserver", 209),
    _control_plane("kube-controller-manager", 47),
    _control_plane("kube-scheduler", 5),
    _control_plane("kubectl", 17),
    Tool(
        name="etcd",
        version="3.6.5",
        group="cluster",
        folder="control-plane",
        package="go.etcd.io/etcd/server/v3",
        cold_build=8,
    ),
    Tool(
        name="lws-manager",
        version="0.8.0",
        group="cluster",
        folder="control-plane",
        package="sigs.k8s.io/lws/cmd",
        linker_flags=f"{STRIP} -X sigs.k8s.io/lws/pkg/version.GitVersion=v0.8.0",
        resource_name="lws",
        resources=ModuleFiles(
            module="sigs.k8s.io/lws",
            patterns=(
                "config/crd/bases/*.yaml",
                "config/rbac/role.yaml",
                "config/rbac/leader_election_role.yaml",
                "config/webhook/manifests.yaml",
            ),
        ),
        cold_build=7,
    ),
    Tool(
        name="kwok",
        version="0.8.0",
        group="cluster",
        folder="kwok",
        package="sigs.k8s.io/kwok/cmd/kwok",
        resource_name="kwok",
        resources=ModuleFiles(
            module="sigs.k8s.io/kwok",
            patterns=(
                "kustomize/crd/bases/*.yaml",
                "kustomize/rbac/role.yaml",
                "kustomize/stage/**/*.yaml",
            ),
        ),
        cold_build=41,
    ),
)
