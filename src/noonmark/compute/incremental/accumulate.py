"""Linear aggregates: those for which sums are enough.

Law: the accumulators of a group at time t are those before the tick plus the sum of the changes'
accumulators at times up to t; a group is there while its number of rows is not 0, without keys
always. Where they change, the old row goes and the new one comes.

Sums of sums are sums: ``accumulate(d)`` is ``merge`` of the `partial_sums` of any parts of d.

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noonmark.compute.incremental.old import Old
from noonmark.compute.kernel.accumulator import (
    accumulator_schema,
    argument,
)
from noonmark.compute.kernel.finish import finished
from noonmark.compute.kernel.scalar import projected
from noonmark.compute.kernel.sums import Bools, Members, added_to, loaded, nothing, stored, sums_of
from noonmark.compute.kernel.updates import (
    Changes,
    Errors,
    Ints,
    Rows,
    concat,
    empty_rows,
    group_ids,
)
from noonmark.compute.scalar import number
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import column


@dataclass
class _Groups:
    """The groups that change: their keys, whether they are there, and their accumulators."""

    keys: list[pa.Array]
    there: Bools
    values: list[number.Values]

    def rows(self, which: Ints, schema: Schema, time: int, diff: int) -> Rows:
        """Some of them as rows of the arrangement."""
        taken = pa.array(which)
        columns = [key.take(taken) for key in self.keys]
        for value, each in zip(self.values, schema.columns[len(self.keys) :], strict=True):
            columns.append(stored(value[which], each.type))
        count = len(which)
        return Rows(tuple(columns), np.full(count, time, np.int64), np.full(count, diff, np.int64))


def accumulate(node: r.Aggregate, source: Changes, old: Old) -> tuple[Changes, Rows]:
    """The changes of the aggregation, and those of its accumulators."""
    errors = Errors(list(source.errors))
    keys, arguments, rows = _given(node, source.rows, errors)

    def sums(now: Ints, given: Members) -> list[number.Values]:
        return sums_of(node, [each.take(pa.array(now)) for each in arguments], given)

    return _evolved(node, keys, rows, sums, errors=errors, old=old)


def partial_sums(node: r.Aggregate, source: Changes) -> Changes:
    """The accumulators of changes, by group and time: what a task sends instead of its rows.

    So a group of very many changes is added up where they are, and is one row from every task.
    """
    errors = Errors(list(source.errors))
    keys, arguments, rows = _given(node, source.rows, errors)
    if not len(rows):
        return Changes(empty_rows(accumulator_schema(node)), tuple(errors.found))
    ids, firsts = group_ids([*keys, pa.array(rows.time)], len(rows))
    added = added_to(node, arguments, Members(rows.diff, ids, len(firsts)))
    columns = [*(key.take(pa.array(firsts)) for key in keys), *added]
    made = Rows(tuple(columns), rows.time[firsts], np.ones(len(firsts), np.int64))
    return Changes(made, tuple(errors.found))


def merge(node: r.Aggregate, partial: Changes, old: Old) -> tuple[Changes, Rows]:
    """As `accumulate`, of the partial sums of changes."""
    columns, width = partial.rows.columns, len(node.keys)
    parts = [loaded(each) for each in columns[width:]]

    def sums(now: Ints, given: Members) -> list[number.Values]:
        return [number.sums(each[now], given.ids, given.count) for each in parts]

    keys, errors = list(columns[:width]), Errors(list(partial.errors))
    return _evolved(node, keys, partial.rows, sums, errors=errors, old=old)


def _given(
    node: r.Aggregate, source: Rows, errors: Errors
) -> tuple[list[pa.Array], list[pa.Array], Rows]:
    """The keys and the arguments of the rows that have them."""
    scalars = [*node.keys, *(argument(call) for call in node.aggregates)]
    arrays, rows = projected(scalars, source, errors)
    return arrays[: len(node.keys)], arrays[len(node.keys) :], rows


def _evolved(
    node: r.Aggregate,
    keys: list[pa.Array],
    rows: Rows,
    sums: Callable[[Ints, Members], list[number.Values]],
    *,
    errors: Errors,
    old: Old,
) -> tuple[Changes, Rows]:
    """The groups of the rows, time by time; `sums` are the accumulators of some of the rows."""
    schema, width = accumulator_schema(node), len(node.keys)
    if not len(rows):
        return Changes(empty_rows(node.schema), tuple(errors.found)), empty_rows(schema)
    ids, firsts = group_ids(keys, len(rows))
    groups = _before(node, old, [key.take(pa.array(firsts)) for key in keys], len(firsts))
    made: list[Rows] = []
    members = Members(rows.diff, ids, len(groups.there))
    for time in np.unique(rows.time).tolist():
        now = np.flatnonzero(rows.time == time)
        given = members.take(now)
        more = sums(now, given)
        made += _step(groups, more, np.unique(given.ids), schema, time, always=not width)
    kept = concat(made, schema)
    shown, _ = finished(node, kept, errors)
    return Changes(shown.consolidated(), tuple(errors.found)), kept.consolidated()


def accumulators(node: r.Aggregate, source: Rows, time: int) -> Rows:
    """The accumulators of rows that are all there is, as they are kept from `time` on."""
    schema, width = accumulator_schema(node), len(node.keys)
    keys, arguments, rows = _given(node, source, Errors())
    if not len(rows) and width:
        return empty_rows(schema)
    if not len(rows):
        return Rows(tuple(nothing(schema)), np.array([time], np.int64), np.ones(1, np.int64))
    ids, firsts = group_ids(keys, len(rows))
    sums = sums_of(node, arguments, Members(rows.diff, ids, len(firsts)))
    there = (sums[0] != 0) if width else np.ones(len(firsts), np.bool_)
    groups = _Groups([key.take(pa.array(firsts)) for key in keys], there, sums)
    return groups.rows(np.flatnonzero(there), schema, time, 1)


def _before(node: r.Aggregate, old: Old, keys: list[pa.Array], count: int) -> _Groups:
    """The groups as they were."""
    schema, width = accumulator_schema(node), len(node.keys)
    everything = set(range(len(schema)))
    if width:
        stored = tuple(column(at, schema.columns[at]) for at in range(width))
        probes, rows = old.traces.find(old.sums[node], stored, keys, everything)
    else:
        rows = old.traces.everything(old.sums[node], everything)
        probes = np.zeros(len(rows), np.int64)
    numbered = Rows((pa.array(probes), *rows.columns[width:]), rows.time, rows.diff).consolidated()
    at = numbered.columns[0].to_numpy()  # type: ignore[union-attr]
    there = np.zeros(count, np.bool_)
    there[at] = True
    values = []
    for array in numbered.columns[1:]:
        found = loaded(array)
        made = np.zeros(count, found.dtype)
        made[at] = found
        values.append(made)
    return _Groups(keys, there, values)


def _step(
    groups: _Groups,
    more: list[number.Values],
    changed: Ints,
    schema: Schema,
    time: int,
    *,
    always: bool,
) -> list[Rows]:
    """The old rows out and the new ones in, where they differ."""
    differ = np.zeros(len(groups.there), np.bool_)
    for each in more:
        differ |= each != 0
    which = changed[differ[changed]]
    gone = groups.rows(which[groups.there[which]], schema, time, -1)
    groups.values = [number.plus(a, b) for a, b in zip(groups.values, more, strict=True)]
    groups.there[which] = True if always else groups.values[0][which] != 0
    come = groups.rows(which[groups.there[which]], schema, time, 1)
    return [gone, come]
