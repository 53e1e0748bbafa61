"""Linear aggregates of small changes: `noonmark.compute.delta.aggregate`, for all groups at once.

Law: the accumulators of a group at time t are those before the tick plus the sum of the changes'
accumulators at times up to t; a group is there while its number of rows is not 0, without keys
always. Where they change, the old row goes and the new one comes.

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noonmark.compute import aggregates
from noonmark.compute.walk import number
from noonmark.compute.walk.ask import Old
from noonmark.compute.walk.finish import finished
from noonmark.compute.walk.rows import Changes, Errors, Ints, Rows, concat, empty_rows, group_ids
from noonmark.compute.walk.scalar import projected
from noonmark.rows import types as t
from noonmark.rows.arrow import to_array
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import column

Bools = npt.NDArray[np.bool_]


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
            scale = each.type.stored_scale if isinstance(each.type, t.Numeric) else 0
            columns.append(number.to_array(number.Scaled(value[which], scale), each.type))
        count = len(which)
        return Rows(tuple(columns), np.full(count, time, np.int64), np.full(count, diff, np.int64))


def accumulate(node: r.Aggregate, source: Changes, old: Old) -> tuple[Changes, Rows]:
    """The changes of the aggregation, and those of its accumulators."""
    schema = aggregates.accumulator_schema(node)
    errors = Errors(list(source.errors))
    width = len(node.keys)
    scalars = [*node.keys, *(aggregates.argument(call) for call in node.aggregates)]
    arrays, rows = projected(scalars, source.rows, errors)
    if not len(rows):
        return Changes(empty_rows(node.schema), tuple(errors.found)), empty_rows(schema)
    keys, arguments = arrays[:width], arrays[width:]
    ids, firsts = group_ids(keys, len(rows))
    groups = _before(node, old, [key.take(pa.array(firsts)) for key in keys], len(firsts))
    made: list[Rows] = []
    for time in np.unique(rows.time).tolist():
        now = np.flatnonzero(rows.time == time)
        more = _sums(node, arguments, diff=rows.diff, now=now, ids=ids, count=len(groups.there))
        made += _step(groups, more, np.unique(ids[now]), schema, time, always=not width)
    kept = concat(made, schema)
    shown, _ = finished(node, kept, errors)
    return Changes(shown.consolidated(), tuple(errors.found)), kept.consolidated()


def accumulators(node: r.Aggregate, source: Rows, time: int) -> Rows:
    """The accumulators of rows that are all there is, as they are kept from `time` on."""
    schema, width = aggregates.accumulator_schema(node), len(node.keys)
    scalars = [*node.keys, *(aggregates.argument(call) for call in node.aggregates)]
    arrays, rows = projected(scalars, source, Errors())
    if not len(rows) and width:
        return empty_rows(schema)
    if not len(rows):
        zeros = [to_array([0], each.type) for each in schema]
        return Rows(tuple(zeros), np.array([time], np.int64), np.ones(1, np.int64))
    keys, arguments = arrays[:width], arrays[width:]
    ids, firsts = group_ids(keys, len(rows))
    every = np.arange(len(rows))
    sums = _sums(node, arguments, diff=rows.diff, now=every, ids=ids, count=len(firsts))
    there = (sums[0] != 0) if width else np.ones(len(firsts), np.bool_)
    groups = _Groups([key.take(pa.array(firsts)) for key in keys], there, sums)
    return groups.rows(np.flatnonzero(there), schema, time, 1)


def _before(node: r.Aggregate, old: Old, keys: list[pa.Array], count: int) -> _Groups:
    """The groups as they were."""
    schema, width = aggregates.accumulator_schema(node), len(node.keys)
    everything = set(range(len(schema)))
    if width:
        stored = tuple(column(at, schema.columns[at]) for at in range(width))
        places, rows = old.shelf.find(old.sums[node], stored, keys, everything)
    else:
        rows = old.shelf.everything(old.sums[node], everything)
        places = np.zeros(len(rows), np.int64)
    numbered = Rows((pa.array(places), *rows.columns[width:]), rows.time, rows.diff).consolidated()
    at = numbered.columns[0].to_numpy()  # type: ignore[union-attr]
    there = np.zeros(count, np.bool_)
    there[at] = True
    values = []
    for array in numbered.columns[1:]:
        found = number.scaled(array).values
        made = np.zeros(count, found.dtype)
        made[at] = found
        values.append(made)
    return _Groups(keys, there, values)


def _sums(
    node: r.Aggregate,
    arguments: Sequence[pa.Array],
    *,
    diff: Ints,
    now: Ints,
    ids: Ints,
    count: int,
) -> list[number.Values]:
    """The accumulators of the changes at one time, group by group."""
    made = [number.sums(diff[now], ids[now], count)]
    for call, array in zip(node.aggregates, arguments, strict=True):
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        used = now[valid[now]]
        made.append(number.sums(diff[used], ids[used], count))
        if call.entry.name == "count":
            made.append(np.zeros(count, np.int64))
            continue
        exact = number.scaled(array.take(pa.array(used))).at_scale(
            aggregates.sum_type(call).stored_scale
        )
        made.append(number.sums(number.times(exact.values, diff[used]), ids[used], count))
    return made


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
