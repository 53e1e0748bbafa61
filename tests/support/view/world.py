"""A location with two collections that change and many views over it, as one process sees them.

A `World` writes the history time by time, maintains the views on a session, and says where they
differ from their definitions: at any time, in any process, the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noonmark import persist
from noonmark.compute.plan.definition import Definition, errors_name
from noonmark.compute.view.dataflow import Dataflow
from noonmark.compute.view.view import View
from noonmark.errors import EvaluationError
from noonmark.persist.client import Options
from noonmark.rows.schema import Schema
from noonmark.sql.meaning.relation import outcome
from support.view.views import SCHEMAS, History, answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "linear": "SELECT k, v + 1 AS v1, s || 'x' AS sx FROM l WHERE v > 0 OR s IS NULL",
    "fails": "SELECT k, 6 / v AS ratio FROM l",
    "pairs": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k WHERE v < 2",
    "totals": "SELECT l.k, count(*) AS n, sum(v * w) AS total, avg(w) AS mean "
    "FROM l JOIN r ON l.k = r.k GROUP BY l.k",
    "everything": "SELECT count(*) AS n, sum(v) AS total FROM l",
    "spread": "SELECT k, avg(6 / v::float8) AS mean, stddev(v) AS s, bool_or(v > 1) AS any_large "
    "FROM l GROUP BY k",
    "all_spread": "SELECT sum(v / 3.0::float8) AS total, var_pop(v::real) AS s FROM l",
    "no_spread": "SELECT sum(v / 3.0::float8) AS total FROM l WHERE v > 99",
    "float_ends": "SELECT k, min(v::float8) AS low, max(-v::float8) AS high FROM l GROUP BY k",
    "mixed": "SELECT k, count(*) AS n, max(v) AS high, avg(v) AS mean FROM l GROUP BY k",
    "latest": "SELECT DISTINCT ON (k) k, v::float8 AS x, s FROM l ORDER BY k, 2 DESC, s",
    "missing": "SELECT l.k, v, w FROM l LEFT JOIN r ON l.k = r.k AND v <= w",
    "extremes": "SELECT k, min(v) AS low, max(s) AS high, count(DISTINCT v) AS n FROM l GROUP BY k",
    "keys": "SELECT DISTINCT k FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.w = l.v)",
    "best": "SELECT k, v, s FROM l ORDER BY v DESC LIMIT 3",
    "less": "SELECT k, v FROM l EXCEPT ALL SELECT k, w FROM r",
    "both": "SELECT k, v FROM l UNION ALL SELECT k, w FROM r",
    "doubled": "SELECT l.k FROM l CROSS JOIN (VALUES (1), (2)) x(n)",
    "of_pairs": "SELECT v, sum(w) AS w FROM pairs GROUP BY v",
    "of_fails": "SELECT count(*) AS n FROM fails",
}


class World:
    """A location, its inputs and its views, as one process sees them."""

    def __init__(self, path: Path, spark: SparkSession | None, history: History) -> None:
        """Open a location; without a session, to look at it alone."""
        self.client = persist.open(path, options=Options(notify_host=None))
        self.spark = spark
        self.history = history
        self.handles = {
            name: self.client.create_or_load(name, schema)[0] for name, schema in SCHEMAS.items()
        }
        self.flow = Dataflow()

    def write(self, lower: int, upper: int) -> None:
        for name, handle in self.handles.items():
            updates = [u for u in self.history[name] if lower <= u.time < upper]
            handle.compare_and_append(updates, lower, upper).result()

    def advance(self, upper: int) -> None:
        """Write on, from wherever each collection is: also after a process that was killed."""
        for name, handle in self.handles.items():
            lower = self.client.state.collection(name).upper.only()
            assert lower is not None
            updates = [u for u in self.history[name] if lower <= u.time < upper]
            if lower < upper:
                handle.compare_and_append(updates, lower, upper).result()

    def start_views(self, names: dict[str, str]) -> None:
        schemas = dict(SCHEMAS)
        for name, sql in names.items():
            definition = Definition.of_sql(name, sql, schemas)
            schemas[name] = definition.plan.schema
            self.flow.add(View(self.client, self.session, definition).start())

    def session(self) -> SparkSession:
        """The one that the views run on."""
        assert self.spark is not None
        return self.spark

    def tick(self) -> None:
        self.flow.tick()
        assert self.flow.failures == {}

    def stored(self, name: str, time: int) -> Any:
        """What a view says at a time: its rows, or "error"."""
        failed = self.client.create_or_load(errors_name(name))[1].snapshot(time).result().counts()
        assert all(count > 0 for count in failed.values())
        if failed:
            return "error"
        return dict(self.client.create_or_load(name)[1].snapshot(time).result().counts())

    def wrong(self, names: Iterable[str], times: Iterable[int]) -> list[tuple[Any, ...]]:
        """Where views differ from their definitions: view, time, what it is, what it should be."""
        expected, listed = plans(), list(times)
        found = []
        for name in names:
            for time in listed:
                want = self._wanted(expected, name, time)
                got = self.stored(name, time)
                if got != want:
                    found.append((name, time, got, want))
        return found

    def _wanted(self, expected: dict[str, Any], name: str, time: int) -> Any:
        if not name.startswith("of_"):
            return answer(expected[name], self.history, time)
        below = name.removeprefix("of_")
        contents = answer(expected[below], self.history, time)
        return "error" if contents == "error" else over(expected[name], below, contents)


def plans() -> dict[str, Any]:
    """The plan of every view over the two collections alone, as its text is written."""
    made, schemas = {}, dict(SCHEMAS)
    for name, sql in VIEWS.items():
        made[name] = Definition.of_sql(name, sql, schemas).written
        schemas[name] = Schema(made[name].schema.columns)
    return made


def over(plan: Any, name: str, contents: dict[Any, int]) -> Any:
    """What a view over a view is, of what that is."""
    found = outcome(plan, {name: contents})
    return "error" if isinstance(found, EvaluationError) else found
