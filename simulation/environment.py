"""The environment in which plain `pulumi` commands run the program on the stand-in, and how it is made.

It owns the variables, the Pulumi file backend and the stacks in it: `simulated` on simulated AWS, and
`simulated-infiniband` on a cluster that exists already, where there is no AWS at all. `simulation.tools` builds
programs, `simulation.stackfile` writes the configuration. No credential of the user's reaches a simulated run.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from simulation import control_plane, existing, paths, stackfile
from simulation.aws.safety import mark_backend
from simulation.control_plane.access import kubeconfig_of
from simulation.stackfile import SIMULATED, StackFile
from simulation.tools.build import build, missing
from simulation.tools.catalogue import TOOLS
from simulation.tools.errors import SetupError

Say = Callable[[str], None]

PLUGIN = next(tool for tool in TOOLS if tool.name == "pulumi-resource-kubernetes")

PASSPHRASE = "simulated, protects nothing"  # noqa: S105
"""Encrypts the generated API key of a stack that exists on one machine only: no secret, nor need it be."""

API_KEY = "vllm-multinode:apiKey"

WITHHELD = (
    "AWS_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_CONFIG_PASSPHRASE_FILE",
    "PULUMI_IGNORE_AMBIENT_PLUGINS",
    "PULUMI_PYTHON_CMD",
)
"""Variables that would lead a simulated run to real accounts, or past the stand-in's own programs."""


SIMULATED_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "SIMULATED",
    "AWS_SECRET_ACCESS_KEY": "SIMULATED",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def installed_pulumi() -> Path | None:
    """The user's own `pulumi` on PATH, if there is one; the stand-in's built one does not count."""
    found = shutil.which("pulumi", path=os.pathsep.join(_foreign_path(os.environ)))
    return Path(found) if found else None


def variables(base: Mapping[str, str] | None = None, stack: StackFile = SIMULATED) -> dict[str, str]:
    """The prepared environment on top of `base` (the process's own if not given).

    `kubectl` and the program's Kubernetes clients see the local control plane only, `aws` is the stand-in's. For the
    existing cluster there is no AWS: no plugin, no `aws` of the stand-in's, no variable.
    """
    base = os.environ if base is None else base
    kept = {name: value for name, value in base.items() if name not in WITHHELD}
    home = paths.home().resolve()
    kubeconfig = kubeconfig_of("admin")
    if not stack.aws:
        kept = {name: value for name, value in kept.items() if not name.startswith("AWS_")}
        kubeconfig = paths.existing_kubeconfig()
    prepared = {
        **kept,
        "PATH": os.pathsep.join(dict.fromkeys([*map(str, _own_path(stack)), *_foreign_path(base)])),
        "PYTHONPATH": str(paths.ROOT),
        "SIMULATION_HOME": str(home),
        "KUBECONFIG": str(kubeconfig.resolve()),
        "PULUMI_HOME": str(_pulumi_home()),
        "PULUMI_BACKEND_URL": f"file://{paths.backend().resolve()}",
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_STACK": stack.stack,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    if stack.aws:
        prepared |= SIMULATED_CREDENTIALS
    if not installed_pulumi():
        prepared["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
    return prepared


def build_tools(*, cluster: bool, say: Say) -> None:
    """Builds the programs that are missing: the engine unless installed, on request the control plane."""
    if not installed_pulumi():
        reason = "No `pulumi` is on PATH; installing it (https://www.pulumi.com/docs/install/) saves this."
        build(missing("engine"), reason, say)
    if cluster:
        build(missing("cluster"), "They are the local control plane; `make preview` does without.", say)


def prepare_home() -> None:
    """Makes the file backend and lets the engine find the Kubernetes plugin, which must have been built.

    Where Pulumi is installed it fetches that plugin itself: once, into the user's own plugin cache.
    """
    mark_backend(paths.backend())
    plugins = _pulumi_home() / "plugins"
    if not installed_pulumi():
        if plugins.is_symlink():
            plugins.unlink()
        _link(plugins / f"resource-kubernetes-v{PLUGIN.version}" / PLUGIN.name, PLUGIN.executable)
        return
    users = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    if users.resolve() != _pulumi_home().resolve():
        (users / "plugins").mkdir(parents=True, exist_ok=True)
        _link(plugins, users / "plugins")


def prepare(*, cluster: bool, say: Say, project: Path = paths.ROOT, stack: StackFile = SIMULATED) -> None:
    """Makes whatever is missing: programs, backend, stack file, stack, API key. Says only what it did.

    `cluster`: with the control plane's programs; an existing cluster is started too. Raises SetupError if a part cannot
    be made; the message says what to do.
    """
    build_tools(cluster=cluster or not stack.aws, say=say)
    prepare_home()
    stackfile.refresh(project, paths.home(), say, stack)
    if not stack.aws:
        if existing.ensure():
            say("Started the existing cluster: 2 GPU nodes, 2 CPU nodes, the LeaderWorkerSet operator.")
    elif cluster:
        control_plane.resume()
    if not _stack_exists(project, stack):
        _pulumi(stack, project, "stack", "init", stack.stack)
        say(f"Made the stack {stack.stack} in {paths.backend()}.")
    if not stackfile.has_value(project, API_KEY, stack):
        _pulumi(stack, project, "config", "set", "--secret", API_KEY, stdin=secrets.token_urlsafe(24))
        say(f"Generated the secret {API_KEY}; see it with `pulumi config get apiKey` in `make shell`.")


def _own_path(stack: StackFile) -> list[Path]:
    own = [Path(sys.executable).parent]
    if stack.aws:
        own.append(paths.ROOT / "simulation" / "bin")
    programs = ["kubectl"] if installed_pulumi() else ["pulumi", "kubectl"]
    return [*own, *(tool.home for tool in TOOLS if tool.name in programs)]


def _foreign_path(base: Mapping[str, str]) -> list[str]:
    """PATH without what an outer prepared environment put there."""
    entries = base.get("PATH", os.defpath).split(os.pathsep)
    return [entry for entry in entries if not _is_ours(Path(entry))]


def _is_ours(folder: Path) -> bool:
    return folder == paths.ROOT / "simulation" / "bin" or paths.tools() in folder.parents


def _link(link: Path, target: Path) -> None:
    if link.resolve() == target.resolve():
        return
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


def _pulumi_home() -> Path:
    return paths.home().resolve() / "pulumi-home"


def _stack_exists(project: Path, stack: StackFile) -> bool:
    name: str = yaml.safe_load((project / "Pulumi.yaml").read_text())["name"]
    return (paths.backend() / ".pulumi" / "stacks" / name / f"{stack.stack}.json").is_file()


def _pulumi(stack: StackFile, project: Path, *arguments: str, stdin: str = "") -> None:
    answer = subprocess.run(
        ["pulumi", *arguments, "--non-interactive"],
        cwd=project,
        env=variables(stack=stack),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise SetupError(f"`pulumi {' '.join(arguments)}` failed: {answer.stderr.strip() or answer.stdout.strip()}")
