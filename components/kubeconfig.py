"""Whether the kubeconfig holds the context that the stack file names, asked before the first resource.

The Kubernetes provider previews without complaint where it cannot load one, and fails afterwards with each resource.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from pulumi import RunError

from planner.checks import nearest
from planner.platform_settings import ExistingPlatform
from planner.problems import Mend, Problem, render

FILE = ("platform", "kubeconfig")
CONTEXT = ("platform", "context")


def check_context(platform: ExistingPlatform, environment: Mapping[str, str]) -> None:
    """Raises RunError where the file is missing or has no such context; without any file the provider knows more."""
    files = _files(platform, environment)
    if platform.kubeconfig and not files[0].is_file():
        allowed = "a file that is there; left out, the one that kubectl uses"
        raise RunError(
            render([Problem(path=FILE, given=platform.kubeconfig, allowed=allowed, mends=(Mend(FILE, None),))])
        )
    there = [file for file in files if file.is_file()]
    names = [name for file in there for name in _contexts(file)]
    if there and platform.context not in names:
        where = ", ".join(map(str, there))
        allowed = f"a context of {where}: {', '.join(names) or 'it has none'}"
        mends = (Mend(CONTEXT, nearest(platform.context, names)),) if names else (Mend(FILE, "~/.kube/config"),)
        raise RunError(render([Problem(path=CONTEXT, given=platform.context, allowed=allowed, mends=mends)]))


def _files(platform: ExistingPlatform, environment: Mapping[str, str]) -> Sequence[Path]:
    """Where kubectl looks."""
    if platform.kubeconfig:
        return [Path(platform.kubeconfig).expanduser()]
    named = [Path(name) for name in environment.get("KUBECONFIG", "").split(os.pathsep) if name]
    return named or [Path.home() / ".kube" / "config"]


def _contexts(file: Path) -> Sequence[str]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        return [str(entry["name"]) for entry in content["contexts"]]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):
        return []
