"""The simulated account's memory: one SQLite file with a row for each resource.

Rows know nothing of AWS; what they mean is in `resources`. Every change is one short transaction, because the
engine creates many resources at a time and each call runs in a thread of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from simulation.aws.values import Properties

_TABLES = """
create table resource (
    type text not null, id text not null, name text not null, owner text,
    inputs text not null, state text not null, primary key (type, id)
);
create table fault (rule text primary key, fired integer not null);
"""
_CONTENT = "create table if not exists content (type text, id text, count integer not null, primary key (type, id))"
"""Made in every transaction: an account of an earlier release of the stand-in has no such table."""
_BUSY_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One simulated resource.

    `owner` is the id of the resource that AWS made this one for (a cluster's security group): it goes with
    its owner.
    """

    type: str
    id: str
    name: str
    inputs: Properties
    state: Properties
    owner: str | None = None

    @property
    def title(self) -> str:
        """How messages name the resource: `eks:NodeGroup gpu (cluster:gpu-0123abc)`."""
        module, _, cls = self.type.removeprefix("aws:").partition("/")
        return f"{module}:{cls.partition(':')[2]} {self.name} ({self.id})"


class View:
    """The account's resources inside one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, resource_type: str | None = None) -> list[Row]:
        """All resources, or those of one type, in the order of their creation."""
        where, values = ("where type = ?", (resource_type,)) if resource_type else ("", ())
        query = f"select type, id, name, owner, inputs, state from resource {where} order by rowid"  # noqa: S608
        return [_row(record) for record in self._connection.execute(query, values)]

    def get(self, resource_type: str, resource_id: str) -> Row | None:
        """The resource of that type and id."""
        query = "select type, id, name, owner, inputs, state from resource where type = ? and id = ?"
        record = self._connection.execute(query, (resource_type, resource_id)).fetchone()
        return _row(record) if record else None

    def put(self, row: Row) -> None:
        """Adds the resource, or replaces the one of the same type and id."""
        self._connection.execute(
            "insert into resource (type, id, name, owner, inputs, state) values (?, ?, ?, ?, ?, ?) "
            "on conflict (type, id) do update set inputs = excluded.inputs, state = excluded.state",
            (row.type, row.id, row.name, row.owner, json.dumps(row.inputs), json.dumps(row.state)),
        )

    def remove(self, row: Row) -> None:
        """Forgets the resource."""
        for table in ("resource", "content"):
            self._connection.execute(f"delete from {table} where type = ? and id = ?", (row.type, row.id))  # noqa: S608

    def content(self, resource_type: str, resource_id: str) -> int:
        """How many things without rows of their own (a bucket's objects) the resource holds."""
        query = "select count from content where type = ? and id = ?"
        record = self._connection.execute(query, (resource_type, resource_id)).fetchone()
        return int(record[0]) if record else 0

    def fill(self, resource_type: str, resource_id: str, count: int) -> None:
        """Has the resource hold `count` such things."""
        self._connection.execute("replace into content values (?, ?, ?)", (resource_type, resource_id, count))

    def fired(self, rule: str) -> int:
        """How often the fault `rule` has failed a call so far."""
        record = self._connection.execute("select fired from fault where rule = ?", (rule,)).fetchone()
        return int(record[0]) if record else 0

    def fire(self, rule: str) -> None:
        """Counts one more failed call of the fault `rule`."""
        self._connection.execute(
            "insert into fault (rule, fired) values (?, 1) on conflict (rule) do update set fired = fired + 1",
            (rule,),
        )


class Store:
    """The SQLite file at `path`, made on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def transaction(self) -> Iterator[View]:
        """One serialised transaction: what is read in it still holds when it is written."""
        if not self._path.exists():
            self._make()
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            connection.execute("begin immediate")
            try:
                connection.execute(_CONTENT)
                yield View(connection)
            except BaseException:
                connection.execute("rollback")
                raise
            connection.execute("commit")
        finally:
            connection.close()

    def _make(self) -> None:
        """Makes the file aside and links it into place whole: the engine may start several plugins at once."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._path.parent) as folder:
            new = Path(folder) / self._path.name
            new.touch(mode=0o600)  # policies and user data may hold what the stack marks as secret
            connection = sqlite3.connect(new)
            connection.execute("pragma journal_mode = wal")
            connection.executescript(_TABLES)
            connection.close()
            with contextlib.suppress(FileExistsError):  # another plugin was first
                os.link(new, self._path)

    def list_resources(self) -> list[Row]:
        """Every resource in the account, those that AWS made for others included."""
        with self.transaction() as view:
            return view.rows()

    def is_empty(self) -> bool:
        """Whether the account holds nothing, as after a complete destroy."""
        return not self.list_resources()


def _row(record: tuple[str, str, str, str | None, str, str]) -> Row:
    resource_type, resource_id, name, owner, inputs, state = record
    return Row(
        type=resource_type,
        id=resource_id,
        name=name,
        owner=owner,
        inputs=json.loads(inputs),
        state=json.loads(state),
    )
