"""The nodes' talk beside the measured one: one TCP connection from each node to the leader, JSON lines both ways.

Torch's own store is not used for it: it waits without an end when a link is cut, and knows no node by name.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Mapping
from typing import Any

from payloads.fabric_settings import ExitCode, FabricError
from payloads.reporting import log

Message = dict[str, Any]

CONNECT_SECONDS = 5.0
RETRY_SECONDS = 1.0
LINE_BYTES = 1024**2
"""More than any message here; who sends more is no node of this test."""


class PeerLostError(Exception):
    """The other side closed the connection, sent rubbish, or did not answer in time."""


class Channel:
    """One connection; a message is one line of JSON."""

    def __init__(self, connection: socket.socket) -> None:
        """Take the connection over."""
        self._connection = connection
        self._received = b""

    def fileno(self) -> int:
        """For `select`."""
        return self._connection.fileno()

    def send(self, message: Message) -> None:
        """Send, for at most CONNECT_SECONDS. Raises PeerLostError."""
        try:
            self._connection.settimeout(CONNECT_SECONDS)
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise PeerLostError(str(error)) from error

    def receive(self, seconds: float) -> Message:
        """Wait for one message. Raises PeerLostError."""
        until = time.monotonic() + seconds
        try:
            while b"\n" not in self._received:
                self._connection.settimeout(max(until - time.monotonic(), 0.001))
                part = self._connection.recv(65536)
                self._received += part
                if not part or len(self._received) > LINE_BYTES:
                    raise PeerLostError("the connection was closed")
            line, _, self._received = self._received.partition(b"\n")
            message = json.loads(line)
        except TimeoutError:
            raise PeerLostError(f"no answer within {seconds:.0f} s") from None
        except (OSError, ValueError) as error:
            raise PeerLostError(str(error)) from error
        if not isinstance(message, dict):
            raise PeerLostError("not a message of this test")
        return message

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


def listen(port: int) -> socket.socket:
    """Accept nodes over IPv4 and IPv6. Raises FabricError: BAD_CONFIGURATION when the port is taken."""
    try:
        if socket.has_dualstack_ipv6():
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(("", port))
    except OSError as error:
        raise FabricError(ExitCode.BAD_CONFIGURATION, f"FABRIC_PORT={port} cannot be used: {error.strerror}") from error


def gather(server: socket.socket, nodes: int, seconds: float) -> dict[int, tuple[Channel, Message]]:
    """Wait until nodes 1 to `nodes` - 1 have said hello, and return those that have.

    A node that says it twice was started anew. Whatever else connects is ignored.
    """
    found: dict[int, tuple[Channel, Message]] = {}
    until = time.monotonic() + seconds
    while len(found) < nodes - 1:
        server.settimeout(max(until - time.monotonic(), 0.001))
        try:
            connection, _ = server.accept()
        except TimeoutError:
            break
        channel = Channel(connection)
        try:
            hello = channel.receive(CONNECT_SECONDS)
        except PeerLostError:
            hello = {}
        if hello.get("rank") in range(1, nodes):
            found[hello["rank"]] = (channel, hello)
            log(f"node rank {hello['rank']} ({hello.get('name')}) is there")
        else:
            channel.close()
    return found


def connect(leader: str, port: int, seconds: float) -> Channel:
    """Reach the leader, which may start later than this node.

    Raises:
        FabricError: PEERS_MISSING, with the last reason.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return Channel(socket.create_connection((leader, port), timeout=CONNECT_SECONDS))
        except socket.gaierror as error:
            reason = (
                f"the leader's name {leader} does not resolve ({error.strerror}). Is there a headless Service "
                "with publishNotReadyAddresses, and does the leader's pod exist?"
            )
        except OSError as error:
            reason = (
                f"the leader does not answer at {leader} port {port} ({error.strerror or error}). "
                "Is its pod running, and does no NetworkPolicy or security group stand between?"
            )
        if time.monotonic() + RETRY_SECONDS > until:
            raise FabricError(ExitCode.PEERS_MISSING, f"{reason} Tried for {seconds:g} s")
        time.sleep(RETRY_SECONDS)


def readable(channels: Mapping[int, Channel], seconds: float) -> list[int]:
    """Node ranks that have said something, or are gone, within `seconds`."""
    by_channel = {channel: rank for rank, channel in channels.items()}
    ready, _, _ = select.select(list(by_channel), [], [], seconds)
    return [by_channel[channel] for channel in ready]
