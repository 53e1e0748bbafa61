"""The sums of groups: accumulators of rows that are at hand, exact whatever their order.

Law: ``sums_of(node, arguments, given)`` are, for every group, its number of rows and the
accumulators of each aggregate (`noonmark.compute.kernel.accumulator`) over the rows of the group.

Where it runs: everywhere; pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noonmark.compute.kernel import large_number
from noonmark.compute.kernel.accumulator import Summand, accumulator_schema, summands
from noonmark.compute.kernel.large_number import Floats
from noonmark.compute.kernel.updates import Ints, group_ids, places
from noonmark.compute.scalar import number
from noonmark.rows import types as t
from noonmark.rows.schema import Schema
from noonmark.sql.functions.number.fit import numeric_for
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall

Bools = npt.NDArray[np.bool_]


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


def nothing(schema: Schema) -> list[pa.Array]:
    """The accumulators of no rows, without keys."""
    return [stored(np.zeros(1, np.int64), each.type) for each in schema]


def added(
    node: r.Aggregate, keys: Sequence[pa.Array], arguments: Sequence[pa.Array], diff: Ints
) -> list[pa.Array]:
    """The accumulators of rows: their keys, each once, then the sums in the order of the schema."""
    ids, firsts = group_ids(keys, len(diff))
    sums = sums_of(node, arguments, Members(diff, ids, len(firsts)))
    return _by_key(node, keys, firsts, sums)


def added_to(node: r.Aggregate, arguments: Sequence[pa.Array], given: Members) -> list[pa.Array]:
    """The accumulators of groups that are numbered already, as they are kept, without keys."""
    kinds = [each.type for each in accumulator_schema(node)][len(node.keys) :]
    sums = sums_of(node, arguments, given)
    return [stored(each, kind) for each, kind in zip(sums, kinds, strict=True)]


def added_up(node: r.Aggregate, columns: Sequence[pa.Array], given: Members) -> list[pa.Array]:
    """The accumulators of groups, as `added_to` gives them, of those of parts of their rows."""
    kinds = [each.type for each in accumulator_schema(node)][len(node.keys) :]
    sums = (number.sums(loaded(each), given.ids, given.count) for each in columns)
    return [stored(each, kind) for each, kind in zip(sums, kinds, strict=True)]


def together(
    node: r.Aggregate, keys: Sequence[pa.Array], parts: Sequence[pa.Array]
) -> list[pa.Array]:
    """The accumulators of all parts of each group, as `added` gives them."""
    ids, firsts = group_ids(keys, len(parts[0]))
    return _by_key(
        node, keys, firsts, [number.sums(loaded(each), ids, len(firsts)) for each in parts]
    )


def _by_key(
    node: r.Aggregate, keys: Sequence[pa.Array], firsts: Ints, sums: list[number.Values]
) -> list[pa.Array]:
    kinds = [each.type for each in accumulator_schema(node)][len(node.keys) :]
    taken = [key.take(pa.array(firsts)) for key in keys]
    return taken + [stored(each, kind) for each, kind in zip(sums, kinds, strict=True)]


def stored(values: number.Values, kind: t.SqlType) -> pa.Array:
    """Sums as they are kept."""
    if isinstance(kind, t.Bytea):
        return large_number.to_array(values)
    scale = kind.stored_scale if isinstance(kind, t.Numeric) else 0
    return number.to_array(number.Scaled(values, scale), kind)


def loaded(array: pa.Array) -> number.Values:
    """Sums that were kept."""
    if pa.types.is_binary(array.type):
        return large_number.from_array(array)
    return number.scaled(array).values


def sums_of(
    node: r.Aggregate, arguments: Sequence[pa.Array], given: Members
) -> list[number.Values]:
    """The accumulators of rows, group by group."""
    made = [given.counts()]
    for call, array in zip(node.aggregates, arguments, strict=True):
        used, values = given, array
        if array.null_count:
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
