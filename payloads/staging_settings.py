"""What weight staging is told (environment variables), where its result lies, and how it says that it failed.

| `python -m payloads.stage_weights` | STAGE_SOURCE | STAGE_TARGET | STAGE_DIRECTORY |
|---|---|---|---|
| Hub to a directory | unset or `hub` | unset | where the weight cache is mounted |
| Hub to S3 | unset or `hub` | `s3://bucket/prefix` | scratch space |
| S3 to a directory (a node's disk) | `s3://bucket/prefix` | unset | where the disk is mounted |

In a directory and under a prefix alike the model lies under `model_directory(repository, revision)`.

Environment variables (default in brackets):
    STAGE_REPOSITORY      Hub repository, owner/name; an S3 source must hold that one (needed)
    STAGE_REVISION        full commit, 40 hex digits (needed)
    STAGE_DIRECTORY       absolute path, read-write (needed)
    STAGE_SOURCE          `hub` or s3://bucket/prefix (hub)
    STAGE_TARGET          s3://bucket/prefix (STAGE_DIRECTORY is the target)
    STAGE_SCRATCH_BYTES   S3 target: most bytes in the scratch space at once, at least twice the largest file (100e9)
    STAGE_EXPECTED_BYTES  least bytes that the free-space check plans for (what the source reports)
    STAGE_WAIT_SECONDS    S3 source: how long to wait for a model that is not whole yet (0)
    STAGE_LOCK_SECONDS    a writer without a sign of life for so long is taken for dead (60)
    STAGE_STALL_SECONDS   no byte written for so long: the download is restarted (360: more than the 300 s that the
                          Hub's rate limit may ask to wait)
    STAGE_ATTEMPTS        how often what may pass is tried in all (6)
    STAGE_RETRY_SECONDS   wait before the second attempt, doubled before each further one (30: six attempts span a
                          quarter of an hour)
    STAGE_REPORT_SECONDS  time between progress reports (15)
    STAGE_PROGRESS_CONFIGMAP, STAGE_PROGRESS_NAMESPACE
                          an existing ConfigMap that the pod's service account may patch (log only). Keys: phase
                          (waiting, downloading, verifying, uploading, complete, failed), percent,
                          gigabytesPerSecond, secondsLeft, message, updated
    STAGE_TERMINATION_LOG where the verdict goes (/dev/termination-log)
    STAGE_SERVICE_ACCOUNT folder with the files token and ca.crt (where Kubernetes mounts them)
    HF_TOKEN              read token for gated models; never printed (none)
    HF_ENDPOINT, HF_XET_HIGH_PERFORMANCE and the Hub client's other variables are passed on to it; its bookkeeping
                          (HF_HOME) goes to STAGE_DIRECTORY unless it is set
    AWS_REGION, AWS_ENDPOINT_URL_S3 and botocore's other variables: S3; credentials by its ordinary chain, Pod
                          Identity included

`python -m payloads.check_cache` is told by:
    STAGE_MODEL_DIRECTORY absolute path of the model to be served (needed)
    STAGE_REPOSITORY, STAGE_REVISION
                          what the marker there must name (both unset: a directory that staging did not make)
    STAGE_WAIT_SECONDS    how long to wait for what is missing (0)
    STAGE_REPORT_SECONDS, STAGE_TERMINATION_LOG as above

Owns the names that other parts rely on: these, `model_directory`, `COMPLETE_MARKER` and the exit codes.
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
_S3_LOCATION = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([A-Za-z0-9!_.*'()/-]*))?")
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
    OTHER_WRITER = 22
    INTERRUPTED = 143  # 128 + SIGTERM, as a shell would say it

    @property
    def final(self) -> bool:
        """True when a retry cannot help."""
        return self in FINAL_EXIT_CODES


FINAL_EXIT_CODES = range(10, 20)


class StagingError(Exception):
    """Staging cannot go on; the message is the verdict that the user reads."""

    def __init__(self, code: ExitCode, reason: str, retry_after: float = 0) -> None:
        """Keep the exit code beside the reason, and the seconds that the source asked to wait."""
        super().__init__(reason)
        self.code = code
        self.retry_after = retry_after


def model_directory(repository: str, revision: str) -> str:
    """Return the model's directory name in the cache: `<repository name>-<12 hex digits of the commit>`.

    `model_directory("moonshotai/Kimi-K2.5", "4d01…")` is `Kimi-K2.5-4d01…`. The serving side computes the
    same name from the same two values; a changed revision is staged beside the old one, never mixed with it.
    """
    return f"{repository.rpartition('/')[2]}-{revision[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Location:
    """A bucket, and a prefix without slashes around it; the prefix may be empty."""

    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"

    @classmethod
    def parse(cls, url: str) -> S3Location | None:
        """Read `s3://bucket/prefix`; None when it is not of that form."""
        match = _S3_LOCATION.fullmatch(url)
        return cls(bucket=match[1], prefix=(match[2] or "").strip("/")) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Configuration of one staging run; the module's docstring explains the environment variables."""

    repository: str
    revision: str
    directory: Path
    source: S3Location | None
    """None: the Hub."""
    target: S3Location | None
    """None: the directory."""
    scratch_bytes: int
    expected_bytes: int
    wait_seconds: float
    lock_seconds: float
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
            if re.fullmatch(r"\d{1,18}(\.\d{1,3})?(e\d{1,2})?", value) and float(value) >= min(default, 0.001):
                return float(value)
            problems.append(f"{name}={value!r}: want a positive number, for example {default or 595e9:g}")
            return default

        def location(name: str) -> S3Location | None:
            value = environment.get(name, "")
            found = S3Location.parse(value)
            if found is None and value not in ("", *(("hub",) if name == "STAGE_SOURCE" else ())):
                problems.append(f"{name}={value!r}: want s3://bucket/prefix, or leave it out")
            return found

        repository = text("STAGE_REPOSITORY", _REPOSITORY, "owner/name, for example moonshotai/Kimi-K2.5")
        revision = text(
            "STAGE_REVISION", _COMMIT, "the full commit, 40 lower-case hex digits (a branch or tag can move)"
        )
        directory = text("STAGE_DIRECTORY", re.compile(r"/.*"), "the absolute path where the cache is mounted")
        source, target = location("STAGE_SOURCE"), location("STAGE_TARGET")
        if source and target:
            problems.append("STAGE_SOURCE and STAGE_TARGET both name S3: leave one out")
        configmap = environment.get("STAGE_PROGRESS_CONFIGMAP", "")
        namespace = environment.get("STAGE_PROGRESS_NAMESPACE", "")
        if configmap or namespace:
            text("STAGE_PROGRESS_CONFIGMAP", _DNS_NAME, "a ConfigMap's name (or leave out the namespace too)")
            text("STAGE_PROGRESS_NAMESPACE", _DNS_NAME, "that ConfigMap's namespace")
        settings = cls(
            repository=repository,
            revision=revision,
            directory=Path(directory),
            source=source,
            target=target,
            scratch_bytes=int(number("STAGE_SCRATCH_BYTES", 100e9)),
            expected_bytes=int(number("STAGE_EXPECTED_BYTES", 0)),
            wait_seconds=number("STAGE_WAIT_SECONDS", 0),
            lock_seconds=number("STAGE_LOCK_SECONDS", 60),
            stall_seconds=number("STAGE_STALL_SECONDS", 360),
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
