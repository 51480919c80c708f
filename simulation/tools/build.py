"""Builds the programs of the catalogue that are missing: the Go calls and the cache folders, no versions.

A tool appears in the cache in one step (rename), so whoever finds it finds all of it; a lock lets two clones
that build at once share the work.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from simulation import paths
from simulation.tools.catalogue import BUILD_SETTINGS, MODULES, TOOLS, Group, ModuleFiles, Tool
from simulation.tools.errors import SetupError

Say = Callable[[str], None]

PROGRESS_SECONDS = 20
GO_NEEDED = "1.26"


def missing(group: Group) -> list[Tool]:
    """The tools of a group that have not been built on this machine."""
    return [tool for tool in TOOLS if tool.group == group and not tool.is_built]


def build(tools: Iterable[Tool], reason: str, say: Say) -> None:
    """Builds each tool that is missing; `reason` says why, and how to do without, where that is possible.

    Raises SetupError if Go is missing, or with the compiler's last lines if a build fails.
    """
    tools = list(tools)
    if not tools:
        return
    if not shutil.which("go"):
        raise SetupError(
            f"{', '.join(tool.name for tool in tools)} must be built, but there is no `go` on PATH. {reason} "
            f"Install Go {GO_NEEDED} or newer (https://go.dev/dl/) and run this again."
        )
    parts = [part for tool in tools for part in (tool, *tool.companions)]
    longest = duration(sum(part.cold_build for part in parts))
    say(f"Building {', '.join(tool.name for tool in tools)} from Go modules, once for this machine. {reason}")
    say(f"This takes about {longest} on 2 cores with an empty Go build cache, and seconds with a warm one.")
    for tool in tools:
        with _locked(tool):
            if not tool.is_built:
                _build_one(tool, say)


def duration(seconds: float) -> str:
    """`388` as `6 m 28 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} m {rest:02d} s" if minutes else f"{rest} s"


@contextmanager
def _locked(tool: Tool) -> Iterator[None]:
    paths.tools().mkdir(parents=True, exist_ok=True)
    with (paths.tools() / f".{tool.home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_one(tool: Tool, say: Say) -> None:
    started = time.monotonic()
    partial = tool.home.with_name(f".{tool.home.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        for part in (tool, *tool.companions):
            _build_into(partial / "ready", part, partial / "source" / part.folder, say)
        (partial / "ready").rename(tool.home)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    size = tool.executable.stat().st_size / 1e6
    say(f"  {tool.name} {tool.version}: {size:.0f} MB in {duration(time.monotonic() - started)}")


def _build_into(folder: Path, tool: Tool, source: Path, say: Say) -> None:
    shutil.copytree(MODULES / tool.folder, source)
    _copy(tool.embeds, source, into=source)
    _compile(tool, source, folder / tool.name, say)
    for script in _copy(tool.beside, source, into=folder):
        script.chmod(0o755)
    _copy(tool.resources, source, into=folder / "resources", keep_folders=True)


def _compile(tool: Tool, source: Path, target: Path, say: Say) -> None:
    command = ["go", "build", "-v", "-ldflags", tool.linker_flags, "-o", str(target), tool.package]
    log = source / "build.log"
    started = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=source, env=_go_environment(), stdout=output, stderr=output)
        try:
            while True:
                try:
                    process.wait(timeout=PROGRESS_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    compiled = len(log.read_text().splitlines())
                    say(f"  {tool.name}: {duration(time.monotonic() - started)}, {compiled} packages so far")
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode:
        last = "\n".join(log.read_text().splitlines()[-15:])
        raise SetupError(
            f"{tool.name} {tool.version} does not build. `{' '.join(command[:3])} …` said last:\n{last}"
        )


def _copy(files: ModuleFiles | None, source: Path, *, into: Path, keep_folders: bool = False) -> list[Path]:
    if files is None:
        return []
    root = _module_folder(files.module, source)
    copies = []
    for pattern in files.patterns:
        found = sorted(root.glob(pattern))
        if not found:
            raise SetupError(f"module {files.module} holds nothing that matches {pattern}; looked in {root}.")
        for path in found:
            copy = into / (path.relative_to(root) if keep_folders else path.name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            copies.append(copy)
    return copies


def _module_folder(module: str, source: Path) -> Path:
    """Downloads a module that `source` pins, if need be, and says where it lies."""
    answer = subprocess.run(
        ["go", "mod", "download", "-json", module],
        cwd=source,
        env=_go_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise SetupError(f"Go cannot download {module}: {answer.stderr.strip() or answer.stdout.strip()}")
    return Path(json.loads(answer.stdout)["Dir"])


def _go_environment() -> dict[str, str]:
    return {**os.environ, **BUILD_SETTINGS, "GOWORK": "off"}
