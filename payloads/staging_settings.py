"""What weight staging is told (environment variables), where its result lies, and how it says that it failed.

Owns the names that other parts rely on: `model_directory`, `COMPLETE_MARKER` and the exit codes.
Touches neither the network nor the disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

COMPLETE_MARKER = ".complete"
"""Name of the marker file inside a model's directory; readers trust a directory only when it holds one."""

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


class ExitCode(IntEnum):
    """How staging ended. 10 to 19 are final: run again it would end the same way, a person has to change something
    first. Everything else but 0 may pass, and is tried again in the same pod before staging gives up.
    """

    COMPLETE = 0
    UNEXPECTED = 1  # also what Python itself returns after an unhandled exception
    BAD_CONFIGURATION = 10
    ACCESS_DENIED = 11
    NOT_FOUND = 12
    NO_SPACE = 13
    CHECKSUM_MISMATCH = 14
    NETWORK = 20
    STALLED = 21
    INTERRUPTED = 143  # 128 + SIGTERM, as a shell would say it

    @property
    def final(self) -> bool:
        """True when a retry cannot help."""
        return self in FINAL_EXIT_CODES


FINAL_EXIT_CODES = range(10, 20)


class StagingError(Exception):
    """Staging cannot go on; the message is the verdict that the user reads."""

    def __init__(self, code: ExitCode, reason: str) -> None:
        """Keep the exit code beside the reason."""
        super().__init__(reason)
        self.code = code


def model_directory(repository: str, revision: str) -> str:
    """Return the model's directory name in the cache: `<repository name>-<12 hex digits of the commit>`.

    `model_directory("moonshotai/Kimi-K2.5", "4d01…")` is `Kimi-K2.5-4d01…`. The serving side computes the
    same name from the same two values; a changed revision is staged beside the old one, never mixed with it.
    """
    return f"{repository.rpartition('/')[2]}-{revision[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Configuration of one staging run; `payloads.stage_weights` documents the environment variables."""

    repository: str
    revision: str
    directory: Path
    expected_bytes: int
    stall_seconds: float
    attempts: int
    retry_seconds: float
    report_seconds: float
    progress_configmap: str
    progress_namespace: str
    token: str

    @property
    def final_directory(self) -> Path:
        """Where the complete model lies."""
        return self.directory / model_directory(self.repository, self.revision)

    @property
    def temporary_directory(self) -> Path:
        """Where files are gathered; on the same file system, so that publishing is one rename."""
        return self.directory / f".staging-{self.revision}"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Parse the environment.

        Raises:
            StagingError: BAD_CONFIGURATION with every problem, one a line.
        """
        problems: list[str] = []

        def text(name: str, pattern: re.Pattern[str], wanted: str) -> str:
            value = environment.get(name, "")
            if not pattern.fullmatch(value):
                problems.append(f"{name}={value!r}: want {wanted}")
            return value

        def number(name: str, default: float) -> float:
            value = environment.get(name) or str(default)
            if re.fullmatch(r"\d{1,18}(\.\d{1,3})?", value) and float(value) >= min(default, 0.001):
                return float(value)
            problems.append(f"{name}={value!r}: want a positive number, for example {default or 595e9:g}")
            return default

        repository = text("STAGE_REPOSITORY", _REPOSITORY, "owner/name, for example moonshotai/Kimi-K2.5")
        revision = text(
            "STAGE_REVISION", _COMMIT, "the full commit, 40 lower-case hex digits (a branch or tag can move)"
        )
        directory = text("STAGE_DIRECTORY", re.compile(r"/.*"), "the absolute path where the cache is mounted")
        configmap = environment.get("STAGE_PROGRESS_CONFIGMAP", "")
        namespace = environment.get("STAGE_PROGRESS_NAMESPACE", "")
        if configmap or namespace:
            text("STAGE_PROGRESS_CONFIGMAP", _DNS_NAME, "a ConfigMap's name (or leave out the namespace too)")
            text("STAGE_PROGRESS_NAMESPACE", _DNS_NAME, "that ConfigMap's namespace")
        settings = cls(
            repository=repository,
            revision=revision,
            directory=Path(directory),
            expected_bytes=int(number("STAGE_EXPECTED_BYTES", 0)),
            stall_seconds=number("STAGE_STALL_SECONDS", 300),
            attempts=int(number("STAGE_ATTEMPTS", 6)),
            retry_seconds=number("STAGE_RETRY_SECONDS", 30),
            report_seconds=number("STAGE_REPORT_SECONDS", 15),
            progress_configmap=configmap,
            progress_namespace=namespace,
            token=environment.get("HF_TOKEN", ""),
        )
        if problems:
            raise StagingError(
                ExitCode.BAD_CONFIGURATION,
                "bad configuration of weight staging:\n" + "\n".join(f"  {problem}" for problem in problems),
            )
        return settings
