"""The program's resource graph, recorded without an engine.

`MockMonitor` answers in the engine's place and keeps every registration with its options, which `Mocks` alone do not
see. It does not prove what a provider or a cluster makes of the inputs: the tests of `simulation` and `stack` do.
"""

from __future__ import annotations

import asyncio
import copy
import json
import runpy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import yaml
from pulumi.runtime import mocks as pulumi_mocks
from pulumi.runtime import rpc, settings, stack

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "vllm-multinode"

COMPUTED: dict[str, dict[str, Any]] = {
    "aws:eks/cluster:Cluster": {
        "arn": "arn:aws:eks:us-east-1:000000000000:cluster/kimi-k25",
        "endpoint": "https://cluster.example",
        "createdAt": "2026-12-01T00:00:00Z",
        "certificateAuthority": {"data": "Q0E="},
    },
    "aws:ec2/launchTemplate:LaunchTemplate": {"latestVersion": 1},
    "aws:fsx/lustreFileSystem:LustreFileSystem": {"dnsName": "fs.example", "mountName": "abcdef"},
}
NOTHING_RETAINED: dict[str, Any] = {"resourceTagMappingLists": [], "id": "none"}
ACCOUNT = "arn:aws:sts::000000000000:assumed-role/deployer/laptop"
DEPLOYER = "arn:aws:iam::000000000000:role/deployer"
CALLS: dict[str, dict[str, Any]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": {"arn": ACCOUNT, "accountId": "000000000000"},
    "aws:iam/getSessionContext:getSessionContext": {"issuerArn": DEPLOYER},
    "aws:resourcegroupstaggingapi/getResources:getResources": NOTHING_RETAINED,
    "aws:index/getAvailabilityZones:getAvailabilityZones": {"names": ["us-east-1b", "us-east-1a", "us-east-1c"]},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One resource as the program registered it. `dependencies` are URNs, what a component depends on expanded."""

    urn: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    parent: str
    provider: str
    providers: Mapping[str, str]
    dependencies: frozenset[str]
    delete_before_replace: bool
    deleted_with: str
    ignore_changes: tuple[str, ...]
    replace_on_changes: tuple[str, ...]
    timeouts: Mapping[str, str]
    protect: bool
    retain_on_delete: bool
    imported: str
    secret_inputs: frozenset[str]


@dataclass(slots=True)
class Graph:
    """Everything a program run registered, in order, the id of what it only read, by name, and its exports."""

    resources: list[Registration] = field(default_factory=list)
    reads: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)

    def all(self, kind: str) -> list[Registration]:
        """Every resource whose type ends in `:kind`."""
        return [resource for resource in self.resources if resource.type.endswith(f":{kind}")]

    def one(self, name: str, kind: str | None = None) -> Registration:
        """The one resource of that name (and kind, where several share the name)."""
        found = [
            resource
            for resource in self.resources
            if resource.name == name and (kind is None or resource.type.endswith(f":{kind}"))
        ]
        assert len(found) == 1, f"{len(found)} resources are called {name}: {[r.type for r in found]}"
        return found[0]

    def after(self, resource: Registration) -> set[str]:
        """URNs of everything that is made before `resource`, at any distance."""
        by_urn = {entry.urn: entry for entry in self.resources}
        seen: set[str] = set()
        waiting = list(resource.dependencies)
        while waiting:
            urn = waiting.pop()
            if urn in by_urn and urn not in seen:
                seen.add(urn)
                waiting += [*by_urn[urn].dependencies, *filter(None, [_urn(by_urn[urn].provider)])]
        return seen


class Recorder(pulumi_mocks.MockMonitor):
    """A monitor that answers like the engine and keeps what it was asked."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(Answers())
        self._graph = graph

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        response = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        if request.type != "pulumi:pulumi:Stack":
            self._graph.resources.append(_registration(response.urn, request))
        return response

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        self._graph.reads[request.name] = request.id
        return super().ReadResource(request)  # type: ignore[no-untyped-call]


class Answers(pulumi_mocks.Mocks):
    """Echoes inputs and adds the computed outputs that the program reads."""

    def new_resource(self, args: pulumi_mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        state = {**args.inputs, **copy.deepcopy(COMPUTED.get(args.typ, {}))}
        if args.typ == "aws:eks/cluster:Cluster":
            state["vpcConfig"] = {**state["vpcConfig"], "clusterSecurityGroupId": "sg-cluster"}
        if args.typ.startswith("kubernetes:"):
            state["metadata"] = {"name": f"{args.name}-0123abc", **args.inputs.get("metadata", {})}
        if args.typ.startswith("aws:"):
            state.setdefault("name", f"{args.name}-0123abc")
            state.setdefault("arn", f"arn:aws:test:::{args.name}")
        return f"{args.name}-id", state

    def call(self, args: pulumi_mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        return {**args.args, **CALLS[args.token]}, []


def stack_file(name: str = "dev") -> dict[str, Any]:
    """The deployment of a committed stack file, to be changed by a test."""
    document = yaml.safe_load((ROOT / f"Pulumi.{name}.yaml").read_text())
    deployment: dict[str, Any] = document["config"][f"{PROJECT}:deployment"]
    return deployment


def record(
    change: Callable[[dict[str, Any]], None] = lambda _: None,
    secrets: Mapping[str, str] | None = None,
    *,
    preview: bool = False,
) -> Graph:
    """Runs `__main__.py` on the default stack file as changed by `change`, and returns the graph.

    Raises what the program raises. `secrets` are the stack's secret keys: an API key unless told otherwise.
    """
    deployment = stack_file()
    change(deployment)
    given = {"apiKey": "a-test-key"} if secrets is None else dict(secrets)
    values = {"deployment": json.dumps(deployment), **given}
    graph = Graph()
    asyncio.set_event_loop(asyncio.new_event_loop())
    settings.reset_options()
    pulumi_mocks.set_mocks(Answers(), project=PROJECT, stack="dev", preview=preview, monitor=Recorder(graph))
    pulumi.runtime.set_all_config(
        {f"{PROJECT}:{key}": value for key, value in values.items()}, [f"{PROJECT}:{key}" for key in given]
    )
    try:
        _run()
        graph.outputs = dict(settings.get_root_resource().outputs)  # type: ignore[union-attr]
    finally:
        settings.reset_options()
    return graph


def _run() -> None:
    """Runs the program and waits until nothing of it is outstanding, so that no work leaks into the next test."""

    async def program() -> None:
        await stack.run_pulumi_func(lambda: _ignore(runpy.run_path(str(ROOT / "__main__.py"))))

    asyncio.get_event_loop().run_until_complete(program())


def _ignore(_: object) -> None:
    return None


def _registration(urn: str, request: Any) -> Registration:
    given = rpc.deserialize_properties(request.object, keep_unknowns=False)
    return Registration(
        urn=urn,
        type=request.type,
        name=request.name,
        inputs={key: _plain(value) for key, value in given.items()},
        parent=request.parent,
        provider=request.provider,
        providers=dict(request.providers),
        dependencies=frozenset(request.dependencies),
        delete_before_replace=request.deleteBeforeReplace,
        deleted_with=request.deletedWith,
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        timeouts={
            verb: getattr(request.customTimeouts, verb)
            for verb in ("create", "update", "delete")
            if getattr(request.customTimeouts, verb)
        },
        protect=request.protect,
        retain_on_delete=request.retainOnDelete,
        imported=request.importId,
        secret_inputs=frozenset(key for key, value in given.items() if rpc.is_rpc_secret(value)),
    )


def _plain(value: Any) -> Any:
    """The value inside a secret, at any depth."""
    if rpc.is_rpc_secret(value):
        return _plain(rpc.unwrap_rpc_secret(value))
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value


def _urn(reference: str) -> str:
    """The URN in a provider reference, which is `<urn>::<id>`."""
    return reference.rpartition("::")[0]
