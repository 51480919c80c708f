"""The provider as the Pulumi engine sees it: translates the engine's calls for the simulated account.

Each call runs in a thread, so that a control plane that is starting holds up nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Protocol

from pulumi.provider.experimental import provider as engine

from simulation import paths
from simulation.aws import diff, faults, invokes, kubernetes, latency, naming, safety, states
from simulation.aws.account import Account
from simulation.aws.resources import resource_type
from simulation.aws.store import Store
from simulation.aws.values import Properties, from_engine, to_engine

_KINDS = {
    diff.Kind.ADD: (engine.PropertyDiffKind.ADD, engine.PropertyDiffKind.ADD_REPLACE),
    diff.Kind.DELETE: (engine.PropertyDiffKind.DELETE, engine.PropertyDiffKind.DELETE_REPLACE),
    diff.Kind.UPDATE: (engine.PropertyDiffKind.UPDATE, engine.PropertyDiffKind.UPDATE_REPLACE),
}


class _Request(Protocol):
    """What all of the engine's requests about one resource have in common."""

    urn: str

    @property
    def type(self) -> str: ...


def _simulated(request: _Request) -> str:
    """The resource's own type, without its parents' that the engine puts in front. Refuses real stacks."""
    safety.require_simulated_stack(request.urn)
    return request.type.rpartition("$")[2]


class SimulatedAws(engine.Provider):
    """Serves one simulated account; `cluster` stands in for the control plane in tests."""

    def __init__(self, cluster: kubernetes.Cluster | None = None) -> None:
        self._cluster = cluster
        self._config: Properties = {}

    @property
    def _account(self) -> Account:
        region = self._config.get("region") or os.environ.get("AWS_REGION")
        tags = self._config.get("defaultTags", {})
        tags = json.loads(tags) if isinstance(tags, str) else tags
        return Account(
            store=Store(paths.aws_store()),
            cluster=self._cluster or kubernetes.from_environment(),
            region=region or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
            default_tags=tags.get("tags", {}),
            faults=faults.parse(os.environ.get(faults.VARIABLE, "")),
            seconds_per_minute=latency.seconds_per_minute(),
        )

    async def check_config(self, request: engine.CheckRequest) -> engine.CheckResponse:
        safety.require_simulated_stack(request.urn)
        return engine.CheckResponse(inputs=request.new_inputs)

    async def diff_config(self, request: engine.DiffRequest) -> engine.DiffResponse:
        old, new = from_engine(request.old_state).get("region"), from_engine(request.new_inputs).get("region")
        return engine.DiffResponse(changes=old != new or None, replaces=["region"] if old != new else [])

    async def configure(self, request: engine.ConfigureRequest) -> engine.ConfigureResponse:
        safety.require_simulated_backend()
        faults.parse(os.environ.get(faults.VARIABLE, ""))  # what cannot be read shows at once
        latency.seconds_per_minute()
        self._config = from_engine(request.args)
        return engine.ConfigureResponse(supports_preview=True)

    async def check(self, request: engine.CheckRequest) -> engine.CheckResponse:
        token = _simulated(request)
        new, old = from_engine(request.new_inputs), from_engine(request.old_inputs)
        inputs = naming.complete(resource_type(token), request.name, new, old, request.random_seed)
        return engine.CheckResponse(inputs=to_engine(inputs))

    async def diff(self, request: engine.DiffRequest) -> engine.DiffResponse:
        kind = resource_type(_simulated(request))
        old, new = from_engine(request.old_state), from_engine(request.new_inputs)
        found = [
            change
            for change in diff.changes(kind, old, new)
            if change.key not in request.ignore_changes and change.path not in request.ignore_changes
        ]
        replaces = sorted({change.key for change in found if change.replace})
        return engine.DiffResponse(
            changes=bool(found),
            replaces=replaces,
            diffs=sorted({change.key for change in found}),
            delete_before_replace=bool(replaces) and naming.chosen_name_stays(kind, old, new),
            detailed_diff={
                change.path: engine.PropertyDiff(_KINDS[change.kind][change.replace], input_diff=False)
                for change in found
            },
        )

    async def create(self, request: engine.CreateRequest) -> engine.CreateResponse:
        token = _simulated(request)
        inputs = from_engine(request.properties)
        if request.preview:
            return engine.CreateResponse(properties=to_engine(self._account.plan(token, inputs, {})))
        row = await asyncio.to_thread(self._account.create, token, request.name, inputs)
        return engine.CreateResponse(resource_id=row.id, properties=to_engine(row.state))

    async def update(self, request: engine.UpdateRequest) -> engine.UpdateResponse:
        token = _simulated(request)
        inputs = from_engine(request.news)
        if request.preview:
            planned = self._account.plan(token, inputs, from_engine(request.olds))
            return engine.UpdateResponse(properties=to_engine(planned))
        row = await asyncio.to_thread(self._account.update, token, request.resource_id, inputs)
        # What only the account knows of an adopted resource stays unknown to the stack, as after a read.
        state = states.as_read(resource_type(token), row.state, from_engine(request.olds) | inputs)
        return engine.UpdateResponse(properties=to_engine(state))

    async def delete(self, request: engine.DeleteRequest) -> None:
        token = _simulated(request)
        await asyncio.to_thread(self._account.delete, token, request.resource_id)

    async def read(self, request: engine.ReadRequest) -> engine.ReadResponse:
        token = _simulated(request)
        row = await asyncio.to_thread(self._account.read, token, request.resource_id)
        if row is None:
            return engine.ReadResponse(resource_id="")
        known = from_engine(request.inputs)
        state = states.as_read(resource_type(token), row.state, from_engine(request.properties))
        inputs = states.inputs_from(known, state) if known else states.imported_inputs(row.inputs, state)
        return engine.ReadResponse(resource_id=row.id, properties=to_engine(state), inputs=to_engine(inputs))

    async def invoke(self, request: engine.InvokeRequest) -> engine.InvokeResponse:
        safety.require_simulated_backend()
        answer = await asyncio.to_thread(invokes.answer, self._account, request.tok, from_engine(request.args))
        return engine.InvokeResponse(return_value=to_engine(answer))
