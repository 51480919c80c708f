"""Say whether the GPU nodes are there, whole and in one zone: `python -m payloads.node_check`, before the fabric test.

Reads the nodes through the Kubernetes API and waits for device plugins that are still registering. A pod that asks for
8 GPUs would wait for ever on a node that offers 7, without a word; this names the node.

Environment variables:
    NODES_SELECTOR         labels of the GPU nodes, as `key=value,key=value`
    NODES_COUNT            how many there must be
    NODES_RESOURCES        JSON object: how much of each resource a node must offer, at least
    NODES_TOLERATIONS      JSON array: the tolerations of the pods that are to run there ([])
    NODES_TIMEOUT_SECONDS  how long to wait for them (900)
    NODES_TERMINATION_LOG  default /dev/termination-log
    NODES_SERVICE_ACCOUNT  folder with token and ca.crt; default: where Kubernetes mounts them

Exit codes: 0 all there; 1 unexpected; 10 bad configuration; 11 access denied; 20 still not there after the time.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import sys
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from payloads.reporting import API_TIMEOUT_SECONDS, SERVICE_ACCOUNT, log, write_termination_message

ZONE_LABEL = "topology.kubernetes.io/zone"
POLL_SECONDS = 5.0


class ExitCode(IntEnum):
    """How the check ended."""

    COMPLETE = 0
    UNEXPECTED = 1
    BAD_CONFIGURATION = 10
    ACCESS_DENIED = 11
    NOT_THERE = 20


class NodeCheckError(Exception):
    """A check that cannot go on, with its exit code."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """`resources`: how much of each a node must offer, at least. `tolerations`: those of the pods to come."""

    selector: str
    count: int
    resources: dict[str, int]
    tolerations: list[dict[str, str]]
    timeout_seconds: float
    account: Path


def main() -> int:
    """Wait for the nodes, and return the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        verdict, code = wait_for_nodes(read(os.environ)), ExitCode.COMPLETE
    except NodeCheckError as error:
        verdict, code = f"GPU nodes are not ready: {error}", error.code
    log(verdict)
    write_termination_message(verdict, os.environ.get("NODES_TERMINATION_LOG", ""))
    return code


def read(environment: Mapping[str, str]) -> Wanted:
    """The settings. Raises NodeCheckError with BAD_CONFIGURATION."""
    try:
        return Wanted(
            selector=environment["NODES_SELECTOR"],
            count=int(environment["NODES_COUNT"]),
            resources={name: int(amount) for name, amount in json.loads(environment["NODES_RESOURCES"]).items()},
            tolerations=[dict(item) for item in json.loads(environment.get("NODES_TOLERATIONS", "[]"))],
            timeout_seconds=float(environment.get("NODES_TIMEOUT_SECONDS", "900")),
            account=Path(environment.get("NODES_SERVICE_ACCOUNT", "") or SERVICE_ACCOUNT),
        )
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise NodeCheckError(ExitCode.BAD_CONFIGURATION, f"NODES_ variables: {error!r}") from error


def wait_for_nodes(wanted: Wanted) -> str:
    """Return a sentence about the nodes once nothing is missing. Raises NodeCheckError when the time is over."""
    end, said = time.monotonic() + wanted.timeout_seconds, ""
    while True:
        try:
            nodes = fetch(wanted)
            missing = problems(wanted, nodes)
        except (OSError, http.client.HTTPException, ValueError) as error:
            nodes, missing = [], [f"the Kubernetes API cannot be asked: {error!r}"]
        if not missing:
            return f"{len(nodes)} GPU nodes are ready, each with " + ", ".join(
                f"{amount} {name}" for name, amount in wanted.resources.items()
            )
        text = "; ".join(missing)
        if time.monotonic() >= end:
            raise NodeCheckError(ExitCode.NOT_THERE, f"{text} (waited {wanted.timeout_seconds:.0f} s)")
        if text != said:
            log(f"waiting: {text}")
            said = text
        time.sleep(min(POLL_SECONDS, max(0.0, end - time.monotonic())))


def problems(wanted: Wanted, nodes: list[dict[str, Any]]) -> list[str]:
    """What is missing, each with the node's name; an empty list when all is there."""
    found = []
    if len(nodes) < wanted.count:
        names = ", ".join(node["metadata"]["name"] for node in nodes) or "none"
        found.append(f"{len(nodes)} of {wanted.count} nodes carry {wanted.selector} ({names})")
    lacking = {node["metadata"]["name"]: _lacks(wanted, node) for node in nodes}
    whole = [node for node in nodes if not lacking[node["metadata"]["name"]]]
    # More nodes than are needed may be there: the rest does not matter as long as enough are whole.
    found = [] if len(whole) >= wanted.count else [*found, *filter(None, lacking.values())]
    zones = sorted({node["metadata"].get("labels", {}).get(ZONE_LABEL, "") for node in whole})
    if len(zones) > 1 and wanted.count > 1:
        found.append(f"the nodes stand in several zones, where no fabric joins them: {', '.join(zones)}")
    return found


def _lacks(wanted: Wanted, node: dict[str, Any]) -> str:
    """What one node does not offer, as a sentence; empty when it is whole."""
    name, status = node["metadata"]["name"], node.get("status", {})
    ready = {entry["type"]: entry["status"] for entry in status.get("conditions", ())}.get("Ready")
    if ready != "True":
        return f"{name} is not Ready"
    if node.get("spec", {}).get("unschedulable"):
        return f"{name} is cordoned"
    if taints := [_taint(item) for item in node.get("spec", {}).get("taints", ()) if not _tolerated(wanted, item)]:
        return f"{name} has taints that the stack's pods do not tolerate: {', '.join(taints)}"
    offered = status.get("allocatable", {})
    few = [
        f"{offered.get(resource, 0)} of {amount} {resource}"
        for resource, amount in wanted.resources.items()
        if quantity(str(offered.get(resource, 0))) < amount
    ]
    return f"{name} offers {', '.join(few)}: is the device plugin running there?" if few else ""


def quantity(text: str) -> float:
    """A count as Kubernetes writes it: a thousand slots of an RDMA plugin are `1k`. Raises ValueError."""
    digits = text.rstrip("kMGTPE")
    return float(digits) * 1000.0 ** " kMGTPE".index(text[len(digits) :] or " ")


def _tolerated(wanted: Wanted, taint: dict[str, str]) -> bool:
    """Whether a pod with the tolerations may be placed on a node with the taint, as Kubernetes decides it."""
    return taint["effect"] == "PreferNoSchedule" or any(
        item.get("effect", taint["effect"]) == taint["effect"]
        and item.get("key", taint["key"]) == taint["key"]
        and (item.get("operator") == "Exists" or item.get("value", "") == taint.get("value", ""))
        for item in wanted.tolerations
    )


def _taint(taint: dict[str, str]) -> str:
    return f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"


def fetch(wanted: Wanted) -> list[dict[str, Any]]:
    """The nodes with the labels. Raises NodeCheckError with ACCESS_DENIED, OSError when the API does not answer."""
    connection = http.client.HTTPSConnection(
        os.environ["KUBERNETES_SERVICE_HOST"],
        int(os.environ["KUBERNETES_SERVICE_PORT"]),
        timeout=API_TIMEOUT_SECONDS,
        context=ssl.create_default_context(cafile=str(wanted.account / "ca.crt")),
    )
    query = urllib.parse.urlencode({"labelSelector": wanted.selector})
    token = (wanted.account / "token").read_text().strip()
    try:
        connection.request("GET", f"/api/v1/nodes?{query}", headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status in (401, 403):
        raise NodeCheckError(ExitCode.ACCESS_DENIED, f"the service account may not list nodes (HTTP {response.status})")
    if response.status >= 300:
        raise OSError(f"HTTP {response.status} {response.reason}")
    items: list[dict[str, Any]] = json.loads(body)["items"]
    return items


if __name__ == "__main__":
    sys.exit(main())
