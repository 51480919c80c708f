"""Writes the stack files of the stand-in: a committed stack's configuration plus an overlay.

A file is rewritten only when one of its two sources changes. Encrypted values and their salt outlive that, since
the state refers to them; everything else that a user changed is put aside where the message says. Values are
copied as written, never interpreted: PyYAML and Pulumi read dates, times and `on` differently.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from simulation.tools.errors import SetupError

SALT = "encryptionsalt"
HOME = "$SIMULATION_HOME"
"""What an overlay writes for the simulation home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFile:
    """A generated stack file: the stack that it is of, and what it is made from."""

    stack: str
    source: str
    overlay: Path
    aws: bool
    """Whether it runs on simulated AWS; otherwise in the cluster that exists already."""

    @property
    def name(self) -> str:
        """The name of the generated file."""
        return f"Pulumi.{self.stack}.yaml"

    def sources(self, project: Path) -> tuple[Path, Path]:
        """The committed stack file and the overlay."""
        return project / self.source, self.overlay


_OVERLAYS = Path(__file__).resolve().parent
SIMULATED = StackFile(
    stack="simulated",
    source="Pulumi.dev.yaml",
    overlay=_OVERLAYS / "stack_overlay.yaml",
    aws=True,
)
EXISTING = StackFile(
    stack="simulated-infiniband",
    source="Pulumi.infiniband.yaml",
    overlay=_OVERLAYS / "existing_overlay.yaml",
    aws=False,
)

_MARK = re.compile(r"^# Generated from .* \(sources ([0-9a-f]{12})\)", re.MULTILINE)


def refresh(project: Path, home: Path, say: Callable[[str], None], file: StackFile = SIMULATED) -> bool:
    """Writes the stack file of the project folder if it is missing or older than its sources; True if it did.

    A file that is replaced is kept in `home`, the simulation home, as `put_aside` names it. Raises SetupError if a
    source is missing or not a mapping.
    """
    target, aside = project / file.name, put_aside(home, file)
    sources = file.sources(project)
    texts = [_read(source).replace(HOME, str(home)) for source in sources]
    mark = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
    former = target.read_text() if target.is_file() else None
    if former is not None and (found := _MARK.search(former)) and found[1] == mark:
        return False

    merged, addition = (_mapping(text, source) for text, source in zip(texts, sources, strict=True))
    _drop_encrypted(merged)
    _merge(addition, into=merged)
    if former is not None:
        _merge(_encrypted(_mapping(former, target)), into=merged)
        aside.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(former)
    target.write_text(_header(file, mark) + _dump(merged))
    _report(file, texts[1], say)
    if former is not None:
        say(f"Its sources had changed. The former file, with whatever you had set in it, is {aside}.")
    return True


def put_aside(home: Path, file: StackFile = SIMULATED) -> Path:
    """Where the former stack file is kept."""
    return home / f"{file.name}.former"


def has_value(project: Path, key: str, file: StackFile = SIMULATED) -> bool:
    """Whether the stack's generated configuration holds the key, for example `vllm-multinode:apiKey`."""
    target = project / file.name
    config = _child(_mapping(_read(target), target), "config")
    return isinstance(config, yaml.MappingNode) and _child(config, key) is not None


def _header(file: StackFile, mark: str) -> str:
    return (
        f"# Generated from {file.source} and simulation/{file.overlay.name} (sources {mark}); not committed.\n"
        "# Edits and `pulumi config set` last until one of the two changes; then it is written anew.\n"
    )


def _report(file: StackFile, overlay: str, say: Callable[[str], None]) -> None:
    say(f"Wrote {file.name}: {file.source} with this on top (simulation/{file.overlay.name}):")
    for line in overlay.splitlines():
        if not line.startswith("#"):
            say(f"  {line}")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise SetupError(f"{path} is missing; the simulated stack is made from it. git restore {path.name}") from None


def _mapping(text: str, source: Path) -> yaml.MappingNode:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise SetupError(f"{source} is not valid YAML: {error}") from error
    if not isinstance(node, yaml.MappingNode):
        raise SetupError(f"{source} must hold a mapping with the key `config`, as stack files do.")
    return node


def _dump(node: yaml.Node) -> str:
    _use_block_style(node)
    return str(yaml.serialize(node, Dumper=yaml.SafeDumper, width=110))


def _use_block_style(node: yaml.Node) -> None:
    """Inside `{}` PyYAML quotes what holds a colon; a quoted `18:30` is no longer what was written."""
    if isinstance(node, yaml.MappingNode):
        node.flow_style = False
        for _, value in node.value:
            _use_block_style(value)
    elif isinstance(node, yaml.SequenceNode):
        node.flow_style = False
        for value in node.value:
            _use_block_style(value)


def _child(node: yaml.MappingNode, key: str) -> yaml.Node | None:
    return next((value for name, value in node.value if name.value == key), None)


def _merge(addition: yaml.MappingNode, *, into: yaml.MappingNode) -> None:
    """Mappings are merged key by key; any other value replaces the one that was there."""
    for name, value in addition.value:
        present = _child(into, name.value)
        if isinstance(present, yaml.MappingNode) and isinstance(value, yaml.MappingNode):
            _merge(value, into=present)
        else:
            into.value = [pair for pair in into.value if pair[0].value != name.value] + [(name, value)]


def _encrypted(stack: yaml.MappingNode) -> yaml.MappingNode:
    """The salt and the encrypted values of a stack file, as a stack file of their own."""
    kept = [pair for pair in stack.value if pair[0].value == SALT]
    config = _child(stack, "config")
    if isinstance(config, yaml.MappingNode):
        secrets = [pair for pair in config.value if _is_encrypted(pair[1])]
        name = next(pair[0] for pair in stack.value if pair[1] is config)
        kept.append((name, yaml.MappingNode(config.tag, secrets, flow_style=False)))
    return yaml.MappingNode(stack.tag, kept, flow_style=False)


def _drop_encrypted(stack: yaml.MappingNode) -> None:
    """Secrets of the real stack stay out: they are encrypted with a key that the stand-in does not have."""
    stack.value = [pair for pair in stack.value if pair[0].value not in (SALT, "secretsprovider", "encryptedkey")]
    config = _child(stack, "config")
    if isinstance(config, yaml.MappingNode):
        config.value = [pair for pair in config.value if not _is_encrypted(pair[1])]


def _is_encrypted(value: yaml.Node) -> bool:
    return isinstance(value, yaml.MappingNode) and [name.value for name, _ in value.value] == ["secure"]
