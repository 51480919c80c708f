"""The readers' check, run as the serving image runs it: the interpreter alone, no packages, a read-only look."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from payloads.staging_settings import COMPLETE_MARKER, ExitCode
from tests.payloads.conftest import PAYLOADS

REPOSITORY, REVISION = "example/tiny-model", "0123456789abcdef0123456789abcdef01234567"
INTERPRETERS = [
    name
    for name in ("python3.11", "python3.12", "python3.13")
    if shutil.which(name) and subprocess.run([name, "-c", ""], check=False, capture_output=True).returncode == 0
] or [sys.executable]


class Check:
    """The check with its environment; -I and -S keep packages and the project out of reach."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.model = root / "weights" / "model"
        self.environment = {
            "STAGE_MODEL_DIRECTORY": str(self.model),
            "STAGE_REPOSITORY": REPOSITORY,
            "STAGE_REVISION": REVISION,
            "STAGE_TERMINATION_LOG": str(root / "termination-log"),
        }

    def start(self, interpreter: str = sys.executable) -> subprocess.Popen[str]:
        code = f"import sys, runpy; sys.path.insert(0, {str(PAYLOADS.parent)!r}); "
        code += "runpy.run_module('payloads.check_cache', run_name='__main__')"
        return subprocess.Popen(
            [interpreter, "-I", "-S", "-c", code],
            env={"PATH": os.environ["PATH"], **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, interpreter: str = sys.executable) -> tuple[int, str]:
        process = self.start(interpreter)
        output, _ = process.communicate(timeout=30)
        return process.returncode, output


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """A check of a model that staging left."""
    check = Check(tmp_path)
    check.model.mkdir(parents=True)
    (check.model / "model.safetensors").write_bytes(b"x" * 1000)
    write_marker(check)
    return check


def write_marker(check: Check, **changes: object) -> None:
    """What staging writes last."""
    marker = {"repository": REPOSITORY, "revision": REVISION, "files": 1, "bytes": 1000}
    (check.model / COMPLETE_MARKER).write_text(json.dumps(marker | changes))


@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_whole_model(check: Check, interpreter: str) -> None:
    code, output = check.run(interpreter)
    assert code == ExitCode.COMPLETE, output
    assert f"holds {REPOSITORY}@{REVISION}" in output
    assert (check.root / "termination-log").read_text() == output.splitlines()[-1]


def test_another_revision_is_said_at_once(check: Check) -> None:
    write_marker(check, revision="f" * 40)
    check.environment["STAGE_WAIT_SECONDS"] = "600"
    code, output = check.run()
    assert code == ExitCode.BAD_CONFIGURATION
    assert f"holds {REPOSITORY}@{'f' * 40}, and {REPOSITORY}@{REVISION} is to be served" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("missing", [COMPLETE_MARKER, "model.safetensors"])
def test_what_is_missing_is_waited_for(check: Check, missing: str) -> None:
    content = (check.model / missing).read_bytes()
    (check.model / missing).unlink()
    check.environment |= {"STAGE_WAIT_SECONDS": "20", "STAGE_REPORT_SECONDS": "0.1"}
    process = check.start()
    assert process.stdout
    assert process.stdout.readline().startswith(f"waiting for {check.model}: ")
    (check.model / "draft").write_bytes(content)
    (check.model / "draft").rename(check.model / missing)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == ExitCode.COMPLETE, output


def test_waiting_ends(check: Check) -> None:
    shutil.rmtree(check.model)
    check.environment |= {"STAGE_WAIT_SECONDS": "0.5", "STAGE_REPORT_SECONDS": "0.2"}
    started = time.monotonic()
    code, output = check.run()
    assert code == ExitCode.NOT_FOUND, output
    assert time.monotonic() - started < 5
    assert 1 <= output.count("waiting for") <= 3
    assert ".complete is not there" in output.splitlines()[-1]


def test_waiting_can_be_ended(check: Check) -> None:
    shutil.rmtree(check.model)
    check.environment["STAGE_WAIT_SECONDS"] = "600"
    process = check.start()
    assert process.stdout
    assert "waiting for" in process.stdout.readline()
    process.terminate()
    process.communicate(timeout=5)
    assert process.returncode == ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    "change",
    [
        {"STAGE_MODEL_DIRECTORY": "relative"},
        {"STAGE_MODEL_DIRECTORY": ""},
        {"STAGE_REVISION": ""},
        {"STAGE_WAIT_SECONDS": "soon"},
        {"STAGE_WAIT_SECONDS": "nan"},
    ],
)
def test_bad_configuration(check: Check, change: dict[str, str]) -> None:
    check.environment |= change
    code, output = check.run()
    assert code == ExitCode.BAD_CONFIGURATION
    assert "Traceback" not in output


@pytest.fixture
def own(check: Check) -> Check:
    """A check of a directory that staging did not make: two shards and their index."""
    (check.model / COMPLETE_MARKER).unlink()
    (check.model / "model.safetensors").unlink()
    del check.environment["STAGE_REPOSITORY"], check.environment["STAGE_REVISION"]
    (check.model / "config.json").write_text("{}")
    names = ["model-1.safetensors", "model-2.safetensors"]
    for name in names:
        header = json.dumps({"weight": {"dtype": "U8", "shape": [100], "data_offsets": [0, 100]}}).encode()
        (check.model / name).write_bytes(len(header).to_bytes(8, "little") + header + b"x" * 100)
    index = {"weight_map": {f"layer.{number}": name for number, name in enumerate(names)}}
    (check.model / "model.safetensors.index.json").write_text(json.dumps(index))
    return check


def test_directory_of_the_users_own(own: Check) -> None:
    code, output = own.run()
    assert code == ExitCode.COMPLETE, output
    assert "holds 2 shards" in output


@pytest.mark.parametrize("interpreter", INTERPRETERS)
@pytest.mark.parametrize("name", ["config.json", "model-2.safetensors", "model.safetensors.index.json"])
def test_own_directory_that_lacks_something(own: Check, name: str, interpreter: str) -> None:
    (own.model / name).unlink()
    code, output = own.run(interpreter)
    assert code == ExitCode.NOT_FOUND, output
    assert name in output
    assert "Traceback" not in output


@pytest.mark.parametrize("size", [0, 7, 30, 150])
def test_own_shard_that_was_cut_off(own: Check, size: int) -> None:
    shard = own.model / "model-2.safetensors"
    shard.write_bytes(shard.read_bytes()[:size])
    code, output = own.run()
    assert code == ExitCode.NOT_FOUND, output
    assert "model-2.safetensors cannot be read as safetensors" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("index", ["", "[]", '{"weight_map": []}', '{"weight_map": {"layer": 7}}'])
def test_own_index_that_is_none(own: Check, index: str) -> None:
    (own.model / "model.safetensors.index.json").write_text(index)
    code, output = own.run()
    assert code == ExitCode.NOT_FOUND, output
    assert "Traceback" not in output


def test_one_shard_needs_no_index(own: Check) -> None:
    (own.model / "model.safetensors.index.json").unlink()
    (own.model / "model-1.safetensors").rename(own.model / "model.safetensors")
    code, output = own.run()
    assert code == ExitCode.COMPLETE, output
    assert "holds 1 shards" in output
