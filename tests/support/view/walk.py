"""Views maintained by walks alone, in this process: what a task does, without Spark.

A `Walker` has a location with collections and views over them. To create a view hydrates it; that
and every tick performs the work that a task would, and commits what it made.
"""

from __future__ import annotations

import math
import pickle
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from noonmark import persist
from noonmark.compute.plan.definition import Definition, errors_name
from noonmark.compute.runner.job import perform
from noonmark.compute.runner.large import LargeTick, Made, Piece, Stage, gathered, last_level
from noonmark.compute.trace.by_key import TraceReader
from noonmark.compute.view.cost import Costs
from noonmark.compute.view.tick import NO_OUTPUT, output_of_large
from noonmark.compute.view.view import View
from noonmark.errors import NoonmarkError
from noonmark.persist.client import Client, Options
from noonmark.rows.schema import Schema
from noonmark.storage.transaction import Transaction
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
        self,
        path: Path,
        schemas: Mapping[str, Schema],
        keys: Mapping[str, tuple[str, ...]],
        *,
        tasks: int = 0,
    ) -> None:
        """`tasks` is over how many tasks every tick is cut, as if it were large; 0 for none."""
        self.tasks = tasks
        self.cut = 0
        self.client: Client = persist.open(path / "data", options=Options(notify_host=None))
        self.traces = TraceReader(path / "cache")
        self.views: dict[str, View] = {}
        self.inputs = dict(schemas)
        for name, schema in schemas.items():
            handle = self.client.create_or_load(name, schema, key=keys.get(name, ()))[0]
            if self.client.state.collection(name).upper.only() == 0:
                handle.compare_and_append([], 0, 1).result()

    @classmethod
    def found(cls, path: Path, schemas: Mapping[str, Schema]) -> Walker:
        """A location that is there already, without its views."""
        return cls(path, schemas, {})

    @staticmethod
    def no_spark() -> NoReturn:
        """What a walk asks for when it is none."""
        raise AssertionError("a walk needs no session")

    def create(self, definition: Definition) -> int:
        """Begin a view at the latest time that is known of its inputs, which is returned."""
        view = View(self.client, self.no_spark, definition).start()
        view.task_bytes_max = 1 << 60
        self.views[view.name] = view
        self.tick(view.name)
        if self.tasks:
            view.task_bytes_max, view.costs = 0, Costs(share=math.inf)
        return view.hydrated_at

    def take_up(self, definition: Definition) -> View:
        """A view that is there already."""
        view = View(self.client, self.no_spark, definition).start()
        view.task_bytes_max = 1 << 60
        self.views[view.name] = view
        return view

    def write(self, updates: Mapping[str, list[Update[Row, int]]], upper: int) -> None:
        """The updates of the collections below `upper`, where each of them is not yet."""
        for name in self.inputs:
            handle = self.client.create_or_load(name)[0]
            lower = self.client.state.collection(name).upper.only()
            assert lower is not None
            given = [u for u in updates.get(name, []) if lower <= u.time < upper]
            handle.compare_and_append(given, lower, upper).result()

    def tick(self, name: str) -> None:
        """Bring a view up to its inputs, or to what it shares with one that is further."""
        txn = Transaction(self.client)
        self._tick(txn, name)
        txn.commit().result()

    def tick_all(self, names: Iterable[str] = ()) -> dict[str, str]:
        """Tick views, which do not read each other, all by default, in one commit.

        Returns:
            What went wrong where: such a view is let go.
        """
        txn, failures = Transaction(self.client), {}
        for name in tuple(names or self.views):
            try:
                self._tick(txn, name)
            except DEFECTS as error:
                failures[name] = repr(error)
                del self.views[name]
        txn.commit().result()
        return failures

    def _tick(self, txn: Transaction, name: str) -> None:
        view = self.views[name]
        begun = view.begin()
        if begun is None:
            return
        output = NO_OUTPUT
        if begun.strategy == "tasks":
            self.cut += 1
            output = output_of_large(
                name, cut_over(self.traces, view.large_tick(begun, self.tasks))
            )
        elif begun.strategy != "idle":
            assert begun.work is not None, "every tick is a walk"
            output = view.output(begun, perform(self.traces, name, begun.work))
        view.add_to(txn, begun, output)

    def upper(self, name: str) -> int:
        """How far a view is known."""
        time = self.client.state.collection(name).upper.only()
        assert time is not None
        return time

    def shared(self) -> int:
        """How many arrangements are of several views."""
        names = Counter(k.name for view in self.views.values() for k in view.by_spec.values())
        return sum(count > 1 for count in names.values())

    def at(self, name: str, time: int) -> Any:
        """What a view says at a time: its rows, or "error"."""
        failed = self._contents(errors_name(name), time)
        assert all(count > 0 for count in failed.values())
        return "error" if failed else dict(self._contents(name, time))

    def stored(self, name: str, time: int) -> tuple[dict[Any, int], dict[str, int]]:
        """The rows of a view at a time, and its errors."""
        failed = self._contents(errors_name(name), time)
        errors = {f"{state} {message}": count for (state, message), count in failed.items()}
        return dict(self._contents(name, time)), errors

    def _contents(self, name: str, time: int) -> Counter[Any]:
        return self.client.create_or_load(name)[1].snapshot(time).result().counts()

    def stop(self) -> None:
        """Close the location."""
        self.client.stop()


def cut_over(traces: TraceReader, tick: LargeTick) -> Made:
    """A tick that is cut over tasks, which are done here one after another, level by level."""
    tick = pickle.loads(pickle.dumps(tick))
    sent: dict[int, list[Piece]] = {}
    for level in range(last_level(tick) + 1):
        next_level: dict[int, list[Piece]] = defaultdict(list)
        for index in range(tick.tasks):
            for to, piece in Stage(traces, tick, level, index, sent.get(index, [])).run():
                next_level[to].append(pickle.loads(pickle.dumps(piece)))
        sent = next_level
    return gathered(piece for pieces in sent.values() for piece in pieces)
