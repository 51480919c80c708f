"""Programs that the stand-in runs: built once from Go modules, kept by version in the user's cache directory.

`binary` and `resource` find what has been built and never build: `python -m simulation tools` does that.
"""

from __future__ import annotations

from pathlib import Path

from simulation.tools.catalogue import TOOLS, Tool
from simulation.tools.errors import SetupError

__all__ = ["SetupError", "binary", "resource"]


def binary(name: str) -> Path:
    """The built program `name`, for example `kube-apiserver` or `pulumi`.

    Raises SetupError if no such program is known, or if it has not been built yet.
    """
    tool = next((tool for tool in TOOLS if tool.name == name), None)
    if tool is None:
        known = ", ".join(tool.name for tool in TOOLS)
        raise SetupError(f"{name!r} is not a program of the stand-in. Known are: {known}.")
    return _built(tool).executable


def resource(name: str) -> Path:
    """A file that came with a built program, named by program and path inside its Go module.

    For example `lws/config/rbac/role.yaml` or `kwok/kustomize/stage/pod/fast/pod-ready.yaml`.
    Raises SetupError if the program keeps no such file, or if it has not been built yet.
    """
    owner, _, inside = name.partition("/")
    tool = next((tool for tool in TOOLS if tool.resource_name == owner), None)
    if tool is None:
        known = ", ".join(tool.resource_name for tool in TOOLS if tool.resource_name)
        raise SetupError(f"{name!r}: {owner!r} keeps no files. Those that do are: {known}.")
    kept = _built(tool).home / "resources"
    path = kept / inside
    if not path.is_file():
        raise SetupError(f"{name!r} is not among the files kept of {owner} {tool.version}. They lie in {kept}.")
    return path


def _built(tool: Tool) -> Tool:
    if tool.is_built:
        return tool
    option = " --cluster" if tool.group == "cluster" else ""
    raise SetupError(
        f"{tool.name} {tool.version} has not been built on this machine (looked for {tool.executable}). "
        f"Build it with: python -m simulation tools{option}"
    )
