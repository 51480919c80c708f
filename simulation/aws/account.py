"""The simulated account: creates, updates, deletes and reads resources as the tables say.

Time passes and Kubernetes is touched between two transactions, never inside one: starting a control plane takes many
seconds, during which the engine goes on with other resources.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from simulation.aws import faults, kubernetes, latency, states
from simulation.aws.errors import AwsError
from simulation.aws.references import followers_of, require_references, require_unique, users_of
from simulation.aws.resources import resource_type
from simulation.aws.schema import Facts, Request, ResourceType
from simulation.aws.store import Row, Store, View
from simulation.aws.values import Properties, at


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One region of one account, as a configured provider sees it. Raises AwsError where AWS would refuse."""

    store: Store
    cluster: kubernetes.Cluster
    region: str = "us-east-1"
    default_tags: Properties = field(default_factory=dict)
    faults: tuple[faults.Fault, ...] = ()
    seconds_per_minute: float = 0.0
    """How long a minute lasts that AWS takes to create something."""

    def plan(self, token: str, inputs: Properties, old: Properties) -> Properties:
        """The state after a create (`old` empty) or update; what AWS has yet to compute is unknown."""
        kind = resource_type(token)
        return states.add_common(kind, states.planned(kind, inputs, old), self.region, self.default_tags)

    def create(self, token: str, name: str, inputs: Properties) -> Row:
        """Makes the resource and what AWS makes along with it."""
        kind = resource_type(token)
        self._fail_on_demand(kind, name, "create")
        with self.store.transaction() as view:
            _admit(kind, Request(region=self._region(inputs), inputs=inputs, view=view))
            deed = kubernetes.on_create(token, inputs, view)
        time.sleep(latency.creation_minutes(token, inputs) * self.seconds_per_minute)
        told = deed(self.cluster)
        with self.store.transaction() as view:
            row = Row(type=token, id=kind.new_id(inputs), name=name, inputs=inputs, state={})
            if view.get(token, row.id):
                raise AwsError("AlreadyExists", f"{row.title} already exists.")
            row = replace(row, state=self._state(kind, row, {}, view, told))
            view.put(row)
            for owned in self._owned(kind, row, view):
                view.put(owned)
        return row

    def update(self, token: str, resource_id: str, inputs: Properties) -> Row:
        """Changes the resource in place."""
        kind = resource_type(token)
        self._fail_on_demand(kind, self._name(token, resource_id), "update")
        with self.store.transaction() as view:
            old = _require(kind, resource_id, view)
            region = self._region(inputs)
            _admit(kind, Request(region=region, inputs=inputs, view=view, old=old))
            deed = kubernetes.on_update(token, inputs, view)
        deed(self.cluster)
        with self.store.transaction() as view:
            row = replace(old, inputs=_with_unread(kind, inputs, old))
            row = replace(row, state=self._state(kind, row, old.state, view, {}))
            view.put(row)
        return row

    def delete(self, token: str, resource_id: str) -> None:
        """Deletes the resource and what goes with it. One that is already gone is no error."""
        kind = resource_type(token)
        self._fail_on_demand(kind, self._name(token, resource_id), "delete")
        with self.store.transaction() as view:
            row = view.get(token, resource_id)
            if row is None:
                return
            self._release(kind, row, view)
        kubernetes.on_delete(token, row.state)(self.cluster)
        with self.store.transaction() as view:
            for gone in [row, *followers_of([row], view)]:
                view.remove(gone)

    def read(self, token: str, resource_id: str) -> Row | None:
        """The resource as it is now."""
        resource_type(token)
        with self.store.transaction() as view:
            return view.get(token, resource_id)

    def _region(self, inputs: Properties) -> str:
        return str(at(inputs, "region", self.region))

    def _name(self, token: str, resource_id: str) -> str:
        row = self.read(token, resource_id)
        return row.name if row else ""

    def _fail_on_demand(self, kind: ResourceType, name: str, operation: str) -> None:
        with self.store.transaction() as view:  # committed on its own: the count outlives the failure
            error = faults.due(self.faults, kind, name, operation, view)
        if error:
            raise error

    def _release(self, kind: ResourceType, row: Row, view: View) -> None:
        going = [row, *(made for made in view.rows() if made.owner == row.id)]
        users = users_of(going, view)
        if users:
            code, message = kind.in_use
            titles = ", ".join(user.title for user in users)
            raise AwsError(code, f"{message.format(id=row.id)} Still used by: {titles}.")
        for check in kind.delete_checks:
            check(Request(region=self._region(row.state), inputs=row.state, view=view, old=row))

    def _state(self, kind: ResourceType, row: Row, old: Properties, view: View, told: Properties) -> Properties:
        def value_of(path: str, state: Properties) -> object:
            facts = Facts(
                id=row.id,
                region=self._region(row.inputs),
                state=state,
                view=view,
                old=old,
                kubernetes=told,
            )
            return kind.outputs[path](facts)

        state = states.build(kind, row.inputs, old, value_of)
        tags = {} if row.owner else self.default_tags  # the provider tags what it makes itself, AWS makes the rest
        return states.add_common(kind, state, self.region, tags) | {"id": row.id}

    def _owned(self, kind: ResourceType, owner: Row, view: View) -> list[Row]:
        rows = []
        for owned in kind.owned:
            made = resource_type(owned.type)
            inputs = owned.inputs(owner.state)
            row = Row(
                type=made.token,
                id=str(at(owner.state, owned.id_path)),
                name=f"of {owner.name}",
                owner=owner.id,
                inputs=inputs,
                state={},
            )
            rows.append(replace(row, state=self._state(made, row, {}, view, {})))
        return rows


def _with_unread(kind: ResourceType, inputs: Properties, old: Row) -> Properties:
    """What AWS keeps but does not tell: an imported resource's inputs lack it, the resource does not."""
    return {key: old.inputs[key] for key in kind.unread if key in old.inputs} | inputs


def _require(kind: ResourceType, resource_id: str, view: View) -> Row:
    row = view.get(kind.token, resource_id)
    if row is None:
        raise AwsError(
            "ResourceNotFound",
            f"{kind.title} {resource_id} does not exist in the simulated account. "
            "`pulumi refresh` drops it from the stack.",
        )
    return row


def _admit(kind: ResourceType, request: Request) -> None:
    require_references(kind, request.inputs, request.view)
    require_unique(kind, request.inputs, request.view, request.old)
    for check in kind.checks:
        check(request)
