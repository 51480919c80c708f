"""Where things stand in the recorded manifest of the gang."""

from __future__ import annotations

from typing import Any

from tests.components.graph import Graph

ROLES = ("leaderTemplate", "workerTemplate")


def gang(graph: Graph) -> dict[str, Any]:
    inputs: dict[str, Any] = dict(graph.one("serving-gang", "LeaderWorkerSet").inputs)
    return inputs


def template(graph: Graph, role: str) -> dict[str, Any]:
    spec: dict[str, Any] = gang(graph)["spec"]["leaderWorkerTemplate"][role]["spec"]
    return spec


def container(graph: Graph, role: str) -> dict[str, Any]:
    made: dict[str, Any] = template(graph, role)["containers"][0]
    return made


def variables(graph: Graph, role: str) -> dict[str, Any]:
    return {entry["name"]: entry for entry in container(graph, role)["env"]}


def options(graph: Graph, role: str) -> dict[str, str]:
    """Options of the command line with the word that follows; a switch has the next option there."""
    arguments = container(graph, role)["args"]
    return dict(zip(arguments, [*arguments[1:], ""], strict=True))
