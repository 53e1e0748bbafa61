"""Linear aggregates of small changes: `noonmark.compute.delta.aggregate`, for all groups at once.

Law: the accumulators of a group at time t are those before the tick plus the sum of the changes'
accumulators at times up to t; a group is there while its number of rows is not 0, without keys
always. Where they change, the old row goes and the new one comes.

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noonmark.compute.accumulator import (
    Summand,
    accumulator_schema,
    argument,
    summands,
)
from noonmark.compute.walk import large_number, number
from noonmark.compute.walk.ask import Old
from noonmark.compute.walk.finish import finished
from noonmark.compute.walk.large_number import Floats
from noonmark.compute.walk.rows import (
    Changes,
    Errors,
    Ints,
    Rows,
    concat,
    empty_rows,
    group_ids,
    places,
)
from noonmark.compute.walk.scalar import projected
from noonmark.rows import types as t
from noonmark.rows.schema import Schema
from noonmark.sql.functions.fit import numeric_for
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
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
            columns.append(_stored(value[which], each.type))
        count = len(which)
        return Rows(tuple(columns), np.full(count, time, np.int64), np.full(count, diff, np.int64))


@dataclass(frozen=True, eq=False)
class Members:
    """Rows by group: how often each is there, the number of its group; and how many those are."""

    diff: Ints
    ids: Ints
    count: int

    def take(self, places: Ints) -> Members:
        """Some of the rows."""
        return Members(self.diff[places], self.ids[places], self.count)

    def counts(self) -> number.Values:
        """How many rows each group has."""
        return number.sums(self.diff, self.ids, self.count)


def accumulate(node: r.Aggregate, source: Changes, old: Old) -> tuple[Changes, Rows]:
    """The changes of the aggregation, and those of its accumulators."""
    schema = accumulator_schema(node)
    errors = Errors(list(source.errors))
    width = len(node.keys)
    scalars = [*node.keys, *(argument(call) for call in node.aggregates)]
    arrays, rows = projected(scalars, source.rows, errors)
    if not len(rows):
        return Changes(empty_rows(node.schema), tuple(errors.found)), empty_rows(schema)
    keys, arguments = arrays[:width], arrays[width:]
    ids, firsts = group_ids(keys, len(rows))
    groups = _before(node, old, [key.take(pa.array(firsts)) for key in keys], len(firsts))
    made: list[Rows] = []
    members = Members(rows.diff, ids, len(groups.there))
    for time in np.unique(rows.time).tolist():
        now = np.flatnonzero(rows.time == time)
        given = members.take(now)
        more = _sums(node, [each.take(pa.array(now)) for each in arguments], given)
        made += _step(groups, more, np.unique(given.ids), schema, time, always=not width)
    kept = concat(made, schema)
    shown, _ = finished(node, kept, errors)
    return Changes(shown.consolidated(), tuple(errors.found)), kept.consolidated()


def accumulators(node: r.Aggregate, source: Rows, time: int) -> Rows:
    """The accumulators of rows that are all there is, as they are kept from `time` on."""
    schema, width = accumulator_schema(node), len(node.keys)
    scalars = [*node.keys, *(argument(call) for call in node.aggregates)]
    arrays, rows = projected(scalars, source, Errors())
    if not len(rows) and width:
        return empty_rows(schema)
    if not len(rows):
        return Rows(tuple(nothing(schema)), np.array([time], np.int64), np.ones(1, np.int64))
    keys, arguments = arrays[:width], arrays[width:]
    ids, firsts = group_ids(keys, len(rows))
    sums = _sums(node, arguments, Members(rows.diff, ids, len(firsts)))
    there = (sums[0] != 0) if width else np.ones(len(firsts), np.bool_)
    groups = _Groups([key.take(pa.array(firsts)) for key in keys], there, sums)
    return groups.rows(np.flatnonzero(there), schema, time, 1)


def _before(node: r.Aggregate, old: Old, keys: list[pa.Array], count: int) -> _Groups:
    """The groups as they were."""
    schema, width = accumulator_schema(node), len(node.keys)
    everything = set(range(len(schema)))
    if width:
        stored = tuple(column(at, schema.columns[at]) for at in range(width))
        probes, rows = old.shelf.find(old.sums[node], stored, keys, everything)
    else:
        rows = old.shelf.everything(old.sums[node], everything)
        probes = np.zeros(len(rows), np.int64)
    numbered = Rows((pa.array(probes), *rows.columns[width:]), rows.time, rows.diff).consolidated()
    at = numbered.columns[0].to_numpy()  # type: ignore[union-attr]
    there = np.zeros(count, np.bool_)
    there[at] = True
    values = []
    for array in numbered.columns[1:]:
        found = _loaded(array)
        made = np.zeros(count, found.dtype)
        made[at] = found
        values.append(made)
    return _Groups(keys, there, values)


def nothing(schema: Schema) -> list[pa.Array]:
    """The accumulators of no rows, without keys."""
    return [_stored(np.zeros(1, np.int64), each.type) for each in schema]


def added(
    node: r.Aggregate, keys: Sequence[pa.Array], arguments: Sequence[pa.Array], diff: Ints
) -> list[pa.Array]:
    """The accumulators of rows: their keys, each once, then the sums in the order of the schema."""
    ids, firsts = group_ids(keys, len(diff))
    sums = _sums(node, arguments, Members(diff, ids, len(firsts)))
    return _by_key(node, keys, firsts, sums)


def together(
    node: r.Aggregate, keys: Sequence[pa.Array], parts: Sequence[pa.Array]
) -> list[pa.Array]:
    """The accumulators of all parts of each group, as `added` gives them."""
    ids, firsts = group_ids(keys, len(parts[0]))
    return _by_key(
        node, keys, firsts, [number.sums(_loaded(each), ids, len(firsts)) for each in parts]
    )


def _by_key(
    node: r.Aggregate, keys: Sequence[pa.Array], firsts: Ints, sums: list[number.Values]
) -> list[pa.Array]:
    kinds = [each.type for each in accumulator_schema(node)][len(node.keys) :]
    taken = [key.take(pa.array(firsts)) for key in keys]
    return taken + [_stored(each, kind) for each, kind in zip(sums, kinds, strict=True)]


def _stored(values: number.Values, kind: t.SqlType) -> pa.Array:
    """Sums as they are kept."""
    if isinstance(kind, t.Bytea):
        return large_number.to_array(values)
    scale = kind.stored_scale if isinstance(kind, t.Numeric) else 0
    return number.to_array(number.Scaled(values, scale), kind)


def _loaded(array: pa.Array) -> number.Values:
    """Sums that were kept."""
    if pa.types.is_binary(array.type):
        return large_number.from_array(array)
    return number.scaled(array).values


def _sums(node: r.Aggregate, arguments: Sequence[pa.Array], given: Members) -> list[number.Values]:
    """The accumulators of rows, group by group."""
    made = [given.counts()]
    for call, array in zip(node.aggregates, arguments, strict=True):
        there = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        used, values = given.take(there), array.take(pa.array(there))
        made.append(used.counts())
        made += [_sum(call, each, values, used) for each in summands(call)]
    return made


def _sum(call: AggregateCall, summand: Summand, values: pa.Array, given: Members) -> number.Values:
    """One sum over values, none of which is NULL, group by group."""
    if summand is Summand.NOTHING:
        return np.zeros(given.count, np.int64)
    if summand is Summand.TRUE:
        return given.take(places(values)).counts()
    if pa.types.is_floating(values.type):
        return _sum_of_floats(summand, values.cast(pa.float64()).to_numpy(), given)
    scale = numeric_for(call.arguments[0].type).stored_scale
    exact = number.scaled(values).at_scale(scale).values
    if summand is Summand.SQUARE:
        exact = number.times(exact, exact)
    return number.sums(number.times(exact, given.diff), given.ids, given.count)


#: Which floats are added up, or counted.
_AMONG_FLOATS: dict[Summand, Callable[[Floats], Bools]] = {
    Summand.WHOLE: np.isfinite,
    Summand.SQUARE: np.isfinite,
    Summand.ODD: lambda values: ~np.isfinite(values),
    Summand.NAN: np.isnan,
    Summand.UP: np.isposinf,
    Summand.DOWN: np.isneginf,
}


def _sum_of_floats(summand: Summand, values: Floats, given: Members) -> number.Values:
    used = np.flatnonzero(_AMONG_FLOATS[summand](values))
    some = given.take(used)
    if summand is Summand.WHOLE:
        return large_number.sums(values[used], some.diff, some.ids, some.count)
    if summand is Summand.SQUARE:
        return large_number.sums_of_squares(values[used], some.diff, some.ids, some.count)
    return some.counts()


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
