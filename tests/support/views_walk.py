"""Views maintained by walks alone, in this process: what a task does, without Spark.

A `Walker` has a location with collections and views over them. To create a view hydrates it; that
and every tick performs the work that a task would, and commits what it made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from noonmark import persist
from noonmark.compute.arrangement import Keeper
from noonmark.compute.definition import ERRORS_SCHEMA, Definition, errors_name
from noonmark.compute.tick import Inputs, contents_of, output_of, work_of
from noonmark.compute.turns import Turns
from noonmark.compute.used import used
from noonmark.compute.walk.job import Program, perform
from noonmark.compute.walk.state import Shelf
from noonmark.errors import NoonmarkError
from noonmark.persist.client import Client, Options
from noonmark.persist.spark import Staged
from noonmark.persist.write import MultiWriteHandle
from noonmark.rows.schema import Schema
from noonmark.tvc import Update

Row = tuple[Any, ...]
#: What a walk raises only when it is wrong: an expression without a value is data.
DEFECTS = (
    NoonmarkError,
    pa.ArrowException,
    AssertionError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


class Walker:
    """A location, its collections and its views; times begin at 1, and 0 is before everything."""

    def __init__(
        self, path: Path, schemas: Mapping[str, Schema], keys: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.client: Client = persist.open(path / "data", options=Options(notify_host=None))
        self.shelf = Shelf(path / "cache")
        self.keys = dict(keys)
        self.views: dict[str, Definition] = {}
        self.programs: dict[str, tuple[tuple[Keeper, ...], bytes]] = {}
        self.inputs = dict(schemas)
        for name, schema in schemas.items():
            handle = self.client.create_or_load(name, schema, key=self.keys.get(name, ()))[0]
            handle.compare_and_append([], 0, 1).result()

    def create(self, definition: Definition) -> None:
        """Begin a view at the latest time that is known of its inputs."""
        name, client = definition.name, self.client
        as_of = min(client.state.collection(n).upper.only() or 0 for n in definition.inputs) - 1
        keepers = tuple(definition.keepers(self.keys).values())
        self.programs[name] = keepers, Program(definition.plan, keepers, self.keys).packed
        created = {name: (definition.plan.schema, ()), errors_name(name): (ERRORS_SCHEMA, ())}
        created |= {keeper.name: (keeper.schema, keeper.key) for keeper in keepers}
        for each, (schema, key) in created.items():
            client.create_or_load(each, schema, key=key)[0].compare_and_append(
                [], 0, as_of
            ).result()
        self.views[name] = definition
        tables = contents_of(client, self._read(definition), as_of)
        txn = client.atomic()
        self._perform(txn, definition, tables, (as_of, as_of + 1), hydrates=True)
        txn.commit().result()

    def _read(self, definition: Definition) -> tuple[str, ...]:
        """The inputs of a view, and the errors of those that are views."""
        both = [n for x in definition.inputs for n in (x, errors_name(x))]
        return tuple(name for name in both if name in self.client.state.names)

    def write(self, updates: Mapping[str, list[Update[Row, int]]], upper: int) -> None:
        """The updates of the collections below `upper`, where each of them is not yet."""
        for name in self.inputs:
            handle = self.client.create_or_load(name)[0]
            lower = self.client.state.collection(name).upper.only()
            assert lower is not None
            given = [u for u in updates.get(name, []) if lower <= u.time < upper]
            handle.compare_and_append(given, lower, upper).result()

    def tick(self, name: str) -> None:
        """Bring a view up to its inputs."""
        txn = self.client.atomic()
        self._tick(txn, name)
        txn.commit().result()

    def tick_all(self) -> dict[str, str]:
        """Bring all views, which do not read each other, up to their inputs, in one commit.

        Returns:
            What went wrong where: such a view is let go.
        """
        txn, failures = self.client.atomic(), {}
        for name in tuple(self.views):
            try:
                self._tick(txn, name)
            except DEFECTS as error:
                failures[name] = repr(error)
                del self.views[name]
        txn.commit().result()
        return failures

    def _tick(self, txn: MultiWriteHandle, name: str) -> None:
        definition, client = self.views[name], self.client
        lower = client.state.collection(name).upper.only()
        assert lower is not None
        names = self._read(definition)
        upper = min(client.state.collection(n).upper.only() or 0 for n in names)
        if upper > lower:
            tables = Inputs.of(client, names, lower, upper, used(definition.plan)).read(client)
            self._perform(txn, definition, tables, (lower, upper))

    def _perform(
        self,
        txn: MultiWriteHandle,
        definition: Definition,
        tables: Mapping[str, pa.Table],
        times: tuple[int, int],
        *,
        hydrates: bool = False,
    ) -> None:
        client, name = self.client, definition.name
        keepers, program = self.programs[name]
        own = [name, errors_name(name), *(keeper.name for keeper in keepers)]
        turning = [keeper.name for keeper in keepers if keeper.need.turns]
        names = (*self._read(definition), *own)
        due = {} if hydrates else Turns(client, turning).due(*times).read(client)
        work = work_of(client, program, tables, names, times, due=due, hydrates=hydrates)
        idle = not (tables or due or hydrates)
        stored = {} if idle else output_of(perform(self.shelf, name, work)).of(name)
        for each in own:
            handle, what = client.create_or_load(each)[0], stored.get(each)
            if isinstance(what, Staged):
                what.append_to(txn, handle, *times)
            else:
                txn.append(handle, what, *times)

    def at(self, name: str, time: int) -> Any:
        """What a view says at a time: its rows, or "error"."""
        failed = self._contents(errors_name(name), time)
        assert all(count > 0 for count in failed.values())
        return "error" if failed else dict(self._contents(name, time))

    def _contents(self, name: str, time: int) -> Counter[Any]:
        return self.client.create_or_load(name)[1].snapshot(time).result().counts()

    def stop(self) -> None:
        """Close the location."""
        self.client.stop()
