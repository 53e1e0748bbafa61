"""Views maintained by walks alone, in this process: what a task does, without Spark.

A `Walker` has a location with collections and views over them. The views begin at time -1, when
everything is empty; every tick performs the work that a task would, and commits what it made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from noonmark import persist
from noonmark.compute import aggregates
from noonmark.compute.definition import ERRORS_SCHEMA, Definition, errors_name
from noonmark.compute.reference import outcome
from noonmark.compute.tick import Inputs, output_of, work_of
from noonmark.compute.walk.job import Program, perform
from noonmark.compute.walk.state import Shelf
from noonmark.errors import EvaluationError
from noonmark.persist.client import Client, Options
from noonmark.persist.run import DIFF, TIME
from noonmark.persist.spark import Staged
from noonmark.rows.arrow import to_table
from noonmark.rows.schema import Schema
from noonmark.tvc import Update

Row = tuple[Any, ...]


class Walker:
    """A location, its collections and its views; times begin at 1, and 0 is before everything."""

    def __init__(
        self, path: Path, schemas: Mapping[str, Schema], keys: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.client: Client = persist.open(path / "data", options=Options(notify_host=None))
        self.shelf = Shelf(path / "cache")
        self.keys = dict(keys)
        self.views: dict[str, Definition] = {}
        self.inputs = dict(schemas)
        for name, schema in schemas.items():
            handle = self.client.create_or_load(name, schema, key=self.keys.get(name, ()))[0]
            handle.compare_and_append([], 0, 1).result()

    def create(self, definition: Definition) -> None:
        """Begin a view, when all inputs are empty."""
        empty = {name: {} for name in definition.inputs}
        first = outcome(definition.plan, empty)
        rows = {} if isinstance(first, EvaluationError) else first
        failed = [first] if isinstance(first, EvaluationError) else []
        texts = {(error.sqlstate, error.message): 1 for error in failed}
        self._begin(definition.name, definition.plan.schema, (), rows)
        self._begin(errors_name(definition.name), ERRORS_SCHEMA, (), texts)
        for keeper in definition.keepers(self.keys).values():
            relation = keeper.need.relation
            kept = outcome(relation, empty)
            contents = {} if isinstance(kept, EvaluationError) else dict(kept)
            if keeper.need.sums:
                schema = aggregates.accumulator_schema(relation)  # type: ignore[arg-type]
                zeros = tuple(0 for _ in schema)
                contents = {} if relation.keys else {zeros: 1}  # type: ignore[attr-defined]
            self._begin(keeper.name, keeper.schema, keeper.key, contents)
        self.views[definition.name] = definition

    def _begin(self, name: str, schema: Schema, key: tuple[str, ...], rows: dict[Row, int]) -> None:
        free = Schema(tuple(schema))
        handle = self.client.create_or_load(name, free, key=key)[0]
        table = to_table(list(rows), free)
        counts = pa.array(list(rows.values()), pa.int64())
        table = table.append_column(TIME, pa.array([0] * len(rows), pa.int64()))
        table = table.append_column(DIFF, counts)
        txn = self.client.atomic().append(handle, table if rows else None, 0, 1)
        txn.commit().result()

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
        definition, client = self.views[name], self.client
        keepers = tuple(definition.keepers(self.keys).values())
        lower = client.state.collection(name).upper.only()
        assert lower is not None
        names = [
            n for x in definition.inputs for n in (x, errors_name(x)) if n in client.state.names
        ]
        upper = min(client.state.collection(n).upper.only() or 0 for n in names)
        if upper <= lower:
            return
        tables = Inputs.of(client, tuple(names), lower, upper).read(client)
        own = [name, errors_name(name), *(keeper.name for keeper in keepers)]
        program = Program(definition.plan, keepers, self.keys).packed
        work = work_of(client, program, tables, (*definition.inputs, *own), lower)
        stored = output_of(perform(self.shelf, name, work)).of(name)
        txn = client.atomic()
        for each in own:
            handle, what = client.create_or_load(each)[0], stored.get(each)
            if isinstance(what, Staged):
                what.append_to(txn, handle, lower, upper)
            else:
                txn.append(handle, what, lower, upper)
        txn.commit().result()

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
