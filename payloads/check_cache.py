"""Say whether a model's directory may be read: the init container of serving, `python3 -m payloads.check_cache`.

Standard library only, Python 3.11 or newer, so that it runs in the serving image; it writes nothing but the
termination message. `payloads.staging_settings` explains its environment variables.

With STAGE_REPOSITORY and STAGE_REVISION the marker `.complete` has to be there and to name them, and the directory has
to hold as many bytes as it says. Without, the directory is one that staging did not make: `config.json` and every
shard that `model.safetensors.index.json` names have to be there, each as long as its own header says.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from payloads.reporting import log
from payloads.staging_progress import write_termination_message
from payloads.staging_settings import COMPLETE_MARKER, ExitCode, StagingError

INDEX = "model.safetensors.index.json"
SINGLE_SHARD = "model.safetensors"
HEADER_LENGTH_BYTES = 8
LONGEST_HEADER_BYTES = 100_000_000  # the format's own limit
POLL_SECONDS = 2.0


class NotYetError(Exception):
    """Something is missing that staging may still bring."""


def main() -> int:
    """Wait for the directory, and return the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.INTERRUPTED))
    try:
        verdict, code = wait_for_model(os.environ), ExitCode.COMPLETE
    except StagingError as error:
        verdict, code = f"the model cannot be served ({error.code.name.lower()}): {error}", error.code
    write_termination_message(verdict)
    log(verdict)
    return code


def wait_for_model(environment: Mapping[str, str]) -> str:
    """Return a sentence about the model once it is whole.

    Raises:
        StagingError: NOT_FOUND when something is still missing after STAGE_WAIT_SECONDS, BAD_CONFIGURATION when the
            directory holds another model.
    """
    directory = Path(environment.get("STAGE_MODEL_DIRECTORY", ""))
    repository, revision = environment.get("STAGE_REPOSITORY", ""), environment.get("STAGE_REVISION", "")
    if not directory.is_absolute() or bool(repository) != bool(revision):
        raise StagingError(
            ExitCode.BAD_CONFIGURATION,
            "want STAGE_MODEL_DIRECTORY, an absolute path, and STAGE_REPOSITORY and STAGE_REVISION both or neither",
        )
    deadline = time.monotonic() + _seconds(environment, "STAGE_WAIT_SECONDS", 0)
    report_seconds = _seconds(environment, "STAGE_REPORT_SECONDS", 15)
    said_at = -report_seconds
    while True:
        try:
            if repository:
                return check_marker(directory, repository, revision)
            return check_files(directory)
        except NotYetError as missing:
            now = time.monotonic()
            if now >= deadline:
                raise StagingError(ExitCode.NOT_FOUND, str(missing)) from missing
            if now - said_at >= report_seconds:
                said_at = now
                log(f"waiting for {directory}: {missing}")
        time.sleep(max(0.0, min(POLL_SECONDS, report_seconds, deadline - time.monotonic())))


def check_marker(directory: Path, repository: str, revision: str) -> str:
    """Check a directory that staging made."""
    path = directory / COMPLETE_MARKER
    try:
        marker = json.loads(path.read_text())
        named, wanted = (marker["repository"], marker["revision"]), int(marker["bytes"])
    except OSError as error:
        raise NotYetError(f"{path} is not there ({error.strerror}): staging has not ended, or failed") from error
    except (ValueError, KeyError, TypeError) as error:
        raise NotYetError(f"{path} is not staging's marker") from error
    if named != (repository, revision):
        raise StagingError(
            ExitCode.BAD_CONFIGURATION,
            f"{directory} holds {named[0]}@{named[1]}, and {repository}@{revision} is to be served. "
            "Stage that revision, or serve the one that is there",
        )
    stored = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file() and file != path)
    if stored < wanted:
        raise NotYetError(f"{stored} of {wanted} bytes are there: files were removed after staging")
    return f"{directory} holds {repository}@{revision}, {wanted / 1024**3:.1f} GiB"


def check_files(directory: Path) -> str:
    """Check a directory of the user's own."""
    if not (directory / "config.json").is_file():
        raise NotYetError(f"{directory / 'config.json'} is not there: is that the model's directory?")
    shards = _shards(directory)
    total = 0
    for name in shards:
        path = directory / name
        try:
            total += _check_shard(path)
        except FileNotFoundError as error:
            raise NotYetError(f"{path} is not there, one of {len(shards)} shards") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NotYetError(f"{path} cannot be read as safetensors: {error}") from error
    return f"{directory} holds {len(shards)} shards, {total / 1024**3:.1f} GiB"


def _shards(directory: Path) -> list[str]:
    index = directory / INDEX
    try:
        return sorted(map(os.fspath, set(json.loads(index.read_text())["weight_map"].values())))
    except FileNotFoundError:
        if (directory / SINGLE_SHARD).exists():
            return [SINGLE_SHARD]
        raise NotYetError(f"neither {index} nor {SINGLE_SHARD} is there") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotYetError(f"{index} cannot be read: {error}") from error


def _check_shard(path: Path) -> int:
    """Compare the file's size with what its header says of the last tensor's end; return it."""
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        length = int.from_bytes(stream.read(HEADER_LENGTH_BYTES), "little")
        if not 2 <= length <= min(LONGEST_HEADER_BYTES, size - HEADER_LENGTH_BYTES):
            raise ValueError(f"{size} bytes, cut off in the header")
        header = json.loads(stream.read(length))
    end = max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0)
    wanted = HEADER_LENGTH_BYTES + length + end
    if size != wanted:
        raise ValueError(f"{size} bytes instead of {wanted}")
    return size


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    value = environment.get(name) or str(default)
    if not re.fullmatch(r"\d{1,9}(\.\d+)?", value):
        raise StagingError(ExitCode.BAD_CONFIGURATION, f"{name}={value!r}: want seconds, for example 900")
    return float(value)


if __name__ == "__main__":
    sys.exit(main())
