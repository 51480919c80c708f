"""Two network namespaces joined by one cable of a given speed, made and removed by the test.

The namespaces share no interface, address or route with anything outside them. Each finds the other by name in an
/etc/hosts of its own. A token bucket on both ends shapes each direction for itself, as a full-duplex link does.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ADDRESSES = ("10.99.0.1", "10.99.0.2")
NAMES = ("node-0", "node-1")
IPERF_SECONDS = 4
IPERF_START_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Cable:
    """The two namespaces, by index 0 and 1; each one's only other interface is `cable`."""

    namespaces: tuple[str, str]

    def command(self, side: int, *program: str) -> list[str]:
        """The command line that runs a program on one side."""
        return ["ip", "netns", "exec", self.namespaces[side], *program]

    def set_speed(self, megabits: int) -> None:
        """Shape both directions to so many Mbit/s."""
        for namespace in self.namespaces:
            rate = ["rate", f"{megabits}mbit", "burst", "256kb", "latency", "400ms"]
            _run("tc", "-n", namespace, "qdisc", "replace", "dev", "cable", "root", "tbf", *rate)

    def plug(self) -> None:
        """Let packets through, as they do from the start."""
        _run("ip", "-n", self.namespaces[1], "link", "set", "cable", "up")

    def unplug(self) -> None:
        """Cut the cable: connections stay open, and nothing comes through any more."""
        _run("ip", "-n", self.namespaces[1], "link", "set", "cable", "down")

    def sent_bytes(self, side: int) -> int:
        """Bytes that this side has put on the cable."""
        shown = json.loads(_run("ip", "-n", self.namespaces[side], "-s", "-j", "link", "show", "dev", "cable"))
        return int(shown[0]["stats64"]["tx"]["bytes"])

    def pids(self, side: int) -> list[int]:
        """Processes on this side."""
        return [int(pid) for pid in _run("ip", "netns", "pids", self.namespaces[side]).split()]

    def iperf3(self) -> float:
        """Bytes a second that iperf3 gets over the cable, both directions loaded at once: the mean of the two."""
        server = subprocess.Popen(self.command(0, "iperf3", "-s", "-1"), stdout=subprocess.PIPE, text=True)
        try:
            _wait_for_listener(self.namespaces[0], 5201)
            client = self.command(1, "iperf3", "-c", ADDRESSES[0], "-t", str(IPERF_SECONDS), "--bidir", "-J")
            end = json.loads(_run(*client))["end"]
        finally:
            server.kill()
            server.communicate()
        received = ("sum_received", "sum_received_bidir_reverse")
        return sum(float(end[direction]["bits_per_second"]) for direction in received) / len(received) / 8


@contextmanager
def cable() -> Iterator[Cable]:
    """Make both namespaces and the cable between them; whatever still runs inside is ended afterwards."""
    names = (f"fabric-{os.getpid()}-0", f"fabric-{os.getpid()}-1")
    with ExitStack() as stack:
        for name in names:
            stack.callback(_remove, name)
            _run("ip", "netns", "add", name)
            folder = Path("/etc/netns") / name
            folder.mkdir(parents=True)
            hosts = "".join(f"{address} {host}\n" for address, host in zip(ADDRESSES, NAMES, strict=True))
            (folder / "hosts").write_text(f"127.0.0.1 localhost\n{hosts}")
        _run("ip", "-n", names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", names[1])
        for name, address in zip(names, ADDRESSES, strict=True):
            _run("ip", "-n", name, "address", "add", f"{address}/24", "dev", "cable")
            _run("ip", "-n", name, "link", "set", "lo", "up")
            _run("ip", "-n", name, "link", "set", "cable", "up")
        yield Cable(names)


def _remove(name: str) -> None:
    listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
    for pid in listed.stdout.split():
        os.kill(int(pid), signal.SIGKILL)
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    shutil.rmtree(Path("/etc/netns") / name, ignore_errors=True)


def _wait_for_listener(namespace: str, port: int) -> None:
    until = time.monotonic() + IPERF_START_SECONDS
    while not _run("ip", "netns", "exec", namespace, "ss", "-Hltn", f"sport = :{port}"):
        if time.monotonic() > until:
            raise TimeoutError(f"nothing listens on port {port} in {namespace}")
        time.sleep(0.02)


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
