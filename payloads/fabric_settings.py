"""What the fabric test is told (environment variables) and how it says that it failed.

Touches neither the network nor the disk; `payloads.fabric_test` documents the variables.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

KINDS = ("efa", "infiniband", "none")
BACKENDS = ("nccl", "gloo")
MODES = ("require", "warn")
ELEMENT_BYTES = 4
"""The all-reduce adds float32."""


class ExitCode(IntEnum):
    """How the test ended; each failure has one cause that a person can look for."""

    PASS = 0
    UNEXPECTED = 1  # also what Python itself returns after an unhandled exception
    BAD_CONFIGURATION = 10
    PEERS_MISSING = 11
    GPU_COUNT = 12
    FABRIC_DEVICES = 13
    VERSIONS_DIFFER = 14
    COLLECTIVE_FAILED = 15
    WRONG_SUM = 16
    WRONG_TRANSPORT = 17
    LOW_BANDWIDTH = 18
    INTERRUPTED = 143  # 128 + SIGTERM, as a shell would say it

    @property
    def step(self) -> str:
        """The check that did not pass, `done` when all did."""
        return STEPS[self]


STEPS = {
    ExitCode.PASS: "done",
    ExitCode.UNEXPECTED: "unexpected",
    ExitCode.BAD_CONFIGURATION: "configuration",
    ExitCode.PEERS_MISSING: "peers",
    ExitCode.GPU_COUNT: "gpus",
    ExitCode.FABRIC_DEVICES: "devices",
    ExitCode.VERSIONS_DIFFER: "versions",
    ExitCode.COLLECTIVE_FAILED: "collective",
    ExitCode.WRONG_SUM: "sum",
    ExitCode.WRONG_TRANSPORT: "transport",
    ExitCode.LOW_BANDWIDTH: "bandwidth",
    ExitCode.INTERRUPTED: "interrupted",
}


class FabricError(Exception):
    """The test cannot go on or did not pass; the message is the reason that the user reads."""

    def __init__(self, code: ExitCode, reason: str) -> None:
        """Keep the exit code beside the reason."""
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Configuration of one node's part; bandwidths in GB/s (1e9 bytes), 0 for a threshold that is off."""

    nodes: int
    node_rank: int
    node_name: str
    leader: str
    port: int
    gpus: int
    kind: str
    nics: int
    backend: str
    mode: str
    bytes: int
    warn_below: float
    fail_below: float
    warm_up: int
    iterations: int
    peer_timeout: float
    test_timeout: float
    configmap: str
    namespace: str
    account: str
    termination_log: str
    root: str

    @property
    def ranks(self) -> int:
        """The all-reduce's world size."""
        return self.nodes * self.gpus

    @property
    def is_leader(self) -> bool:
        """Node rank 0 gathers the reports and judges."""
        return self.node_rank == 0

    @property
    def shared(self) -> dict[str, str | int | float]:
        """What has to be the same on all nodes, by the variable's name without its prefix."""
        names = ("nodes", "gpus", "kind", "nics", "backend", "bytes", "warm_up", "iterations")
        return {name.upper(): getattr(self, name) for name in names}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Parse the environment.

        Raises:
            FabricError: BAD_CONFIGURATION with every problem, one a line.
        """
        reader = _Reader(environment)
        nodes = reader.integer("FABRIC_NODES", None, 1, 1024)
        kind = reader.choice("FABRIC_KIND", KINDS, None)
        rank_default = environment.get("JOB_COMPLETION_INDEX") or ("0" if nodes == 1 else None)
        settings = cls(
            nodes=nodes,
            node_rank=reader.integer("FABRIC_NODE_RANK", rank_default, 0, nodes - 1),
            node_name=environment.get("FABRIC_NODE_NAME") or socket.gethostname(),
            leader=reader.text("FABRIC_LEADER", "127.0.0.1" if nodes == 1 else None, "the name or IP of node rank 0"),
            port=reader.integer("FABRIC_PORT", "29400", 1, 65534),
            gpus=reader.integer("FABRIC_GPUS", None, 1, 64),
            kind=kind,
            nics=reader.integer("FABRIC_NICS", "0" if kind == "none" else None, kind != "none", 1024),
            backend=reader.choice("FABRIC_BACKEND", BACKENDS, "nccl"),
            mode=reader.choice("FABRIC_MODE", MODES, "require"),
            bytes=reader.integer("FABRIC_BYTES", str(2 * 1024**3), ELEMENT_BYTES, 2**40)
            // ELEMENT_BYTES
            * ELEMENT_BYTES,
            warn_below=reader.number("FABRIC_WARN_BELOW", "0"),
            fail_below=reader.number("FABRIC_FAIL_BELOW", "0"),
            warm_up=reader.integer("FABRIC_WARM_UP", "5", 0, 1000),
            iterations=reader.integer("FABRIC_ITERATIONS", "20", 1, 10000),
            peer_timeout=reader.number("FABRIC_PEER_TIMEOUT_SECONDS", "900"),
            test_timeout=reader.number("FABRIC_TEST_TIMEOUT_SECONDS", "300"),
            configmap=environment.get("FABRIC_CONFIGMAP", ""),
            namespace=environment.get("FABRIC_CONFIGMAP_NAMESPACE", ""),
            account=environment.get("FABRIC_SERVICE_ACCOUNT", ""),
            termination_log=environment.get("FABRIC_TERMINATION_LOG", ""),
            root=environment.get("FABRIC_ROOT") or "/",
        )
        if bool(settings.configmap) != bool(settings.namespace):
            reader.problems.append("FABRIC_CONFIGMAP and FABRIC_CONFIGMAP_NAMESPACE: want both or neither")
        if reader.problems:
            listed = "\n".join(f"  {problem}" for problem in reader.problems)
            raise FabricError(ExitCode.BAD_CONFIGURATION, f"bad configuration of the fabric test:\n{listed}")
        return settings


class _Reader:
    """Reads variables and gathers what is wrong with them; a default of None makes a variable required."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.problems: list[str] = []

    def text(self, name: str, default: str | None, wanted: str) -> str:
        value = self._environment.get(name) or default or ""
        if not value:
            self.problems.append(f"{name} is not set: want {wanted}")
        return value

    def choice(self, name: str, allowed: tuple[str, ...], default: str | None) -> str:
        value = self._environment.get(name) or default or ""
        if value not in allowed:
            self.problems.append(f"{name}={value!r}: want one of {', '.join(allowed)}")
            return allowed[-1]
        return value

    def integer(self, name: str, default: str | None, least: int, most: int) -> int:
        value = self._environment.get(name) or default or ""
        if re.fullmatch(r"\d{1,15}", value) and least <= int(value) <= most:
            return int(value)
        self.problems.append(f"{name}={value!r}: want a whole number from {int(least)} to {most}")
        return most  # nothing more is demanded of the other variables than with any good value

    def number(self, name: str, default: str) -> float:
        value = self._environment.get(name) or default
        if re.fullmatch(r"\d{1,9}(\.\d{1,6})?", value) and (float(value) > 0 or default == "0"):
            return float(value)
        self.problems.append(f"{name}={value!r}: want a number {'from 0' if default == '0' else 'above 0'}")
        return 1.0
