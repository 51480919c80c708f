"""The programs that run inside pods, as ConfigMaps: each with the modules it imports, and nothing else."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from pathlib import Path

from pulumi import Input, Resource, ResourceOptions
from pulumi_kubernetes.core.v1 import ConfigMap

FOLDER = Path(__file__).parent.parent / "payloads"
MOUNT = "/payload/payloads"
PYTHON_PATH = "/payload"
"""A pod mounts the ConfigMap as the package `payloads` and runs `python -m payloads.<program>`."""

DIGEST_ANNOTATION = "vllm-multinode/payload"
"""On pod templates: a template names its ConfigMap only, and a changed program must run again."""


def sources(program: str, *others: str) -> dict[str, str]:
    """Text by file name: `payloads/<program>.py`, what it imports of the folder, and `others` as they are."""
    found: dict[str, str] = {}
    wanted = ["__init__", program]
    while wanted:
        file = f"{wanted.pop()}.py"
        if file not in found:
            found[file] = (FOLDER / file).read_text(encoding="utf-8")
            wanted += _imported(found[file])
    found |= {name: (FOLDER / name).read_text(encoding="utf-8") for name in others}
    return dict(sorted(found.items()))


def digest(files: Mapping[str, str]) -> str:
    """Changes with any of the files."""
    return hashlib.sha256("\0".join(f"{name}\0{text}" for name, text in sorted(files.items())).encode()).hexdigest()[
        :12
    ]


def config_map(name: str, files: Mapping[str, str], named: str, namespace: Input[str], parent: Resource) -> ConfigMap:
    """The files as a ConfigMap."""
    return ConfigMap(
        name,
        metadata={"name": named, "namespace": namespace},
        data=dict(files) or None,
        opts=ResourceOptions(parent=parent),
    )


def _imported(text: str) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "payloads":
            inner = (node.module or "").partition(".")[2]
            names += [inner] if inner else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("payloads.")]
    return names
