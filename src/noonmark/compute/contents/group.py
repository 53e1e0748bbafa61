"""Rows by the values that they share: aggregates, DISTINCT, INTERSECT and EXCEPT.

Sums are those of `noonmark.compute.kernel.accumulator`, exact whatever the order; the least and the
greatest value are had by Arrow, whose order is SQL's for these types.

Where it runs: statement workers; pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.contents.order import can_order, told_apart
from noonmark.compute.kernel.accumulator import argument, summands
from noonmark.compute.kernel.finish import finished
from noonmark.compute.kernel.scalar import projected
from noonmark.compute.kernel.sums import Members, added_to
from noonmark.compute.kernel.updates import Errors, Ints, Rows, concat, group_ids, one_array
from noonmark.rows.exact import is_exact
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.scalar import Scalar

_EXTREMES = ("min", "max")


def can_aggregate(node: r.Aggregate) -> bool:
    """Whether there are kernels for every aggregate, and keys that are equal as they are stored."""
    return _are_exact(node.keys) and all(map(_can, node.aggregates))


def _can(call: AggregateCall) -> bool:
    if call.entry.name in _EXTREMES:
        return can_order(call.arguments[0].type)
    if call.distinct and not _are_exact(call.arguments):
        return False
    return not call.order and bool(summands(AggregateCall(call.function, call.arguments)))


def can_be_same(relation: r.Relation) -> bool:
    """Whether equal rows of a relation are the same."""
    return all(is_exact(column.type) for column in relation.schema)


def aggregate(node: r.Aggregate, rows: Rows, errors: Errors) -> Rows:
    """The groups, each with its aggregates."""
    scalars = [*node.keys, *(argument(call) for call in node.aggregates)]
    arrays, rows = projected(scalars, rows, errors)
    width = len(node.keys)
    keys, arguments = arrays[:width], arrays[width:]
    ids, firsts = _groups(keys, len(rows))
    members = Members(rows.diff, ids, len(firsts) if width else 1)
    shown: list[pa.Array] = [key.take(pa.array(firsts)) for key in keys]
    for call, values in zip(node.aggregates, arguments, strict=True):
        shown.append(_aggregated(node, call, values, members, errors))
    count = members.count
    return Rows(tuple(shown), np.zeros(count, np.int64), np.ones(count, np.int64))


def _aggregated(
    node: r.Aggregate, call: AggregateCall, values: pa.Array, given: Members, errors: Errors
) -> pa.Array:
    """One aggregate of every group."""
    if call.entry.name in _EXTREMES:
        return _extreme(call, values, given)
    if call.distinct:
        values, given = _once(values, given)
        call = AggregateCall(call.function, call.arguments)
    one = r.Aggregate(node.input, (), (call,), (node.names[-1],))
    stored = tuple(added_to(one, [values], given))
    none = np.zeros(given.count, np.int64)
    made, _ = finished(one, Rows(stored, none, none + 1), errors)
    if errors.found:
        return pa.nulls(given.count)
    (column,) = made.columns
    assert column is not None
    return column


def _extreme(call: AggregateCall, values: pa.Array, given: Members) -> pa.Array:
    """The least or the greatest value of every group; NULL where it has none."""
    kind = call.arguments[0].type
    keys = told_apart(values, kind)
    places = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
    made = np.full(given.count, -1, np.int64)
    if len(places):
        taken, ids = keys.take(pa.array(places)), given.ids[places]
        direction = "ascending" if call.entry.name == "min" else "descending"
        if given.count == 1:
            table = pa.table([taken], names=["key"])
            best = pc.select_k_unstable(table, k=1, sort_keys=[("key", direction)])
            made[0] = places[best[0].as_py()]
        else:
            made[:] = _best(taken, ids, places, given.count, call.entry.name)
    return values.take(pa.array(made, mask=made < 0))


def _best(keys: pa.Array, ids: Ints, places: Ints, count: int, name: str) -> Ints:
    """Of each group the place of a row with the least or the greatest key; -1 without rows."""
    table = pa.table([pa.array(ids), keys], names=["id", "key"])
    found = table.group_by("id", use_threads=False).aggregate([("key", name)])
    by_group = np.full(count, -1, np.int64)
    by_group[one_array(found.column("id")).to_numpy()] = np.arange(len(found))
    bests = one_array(found.column(f"key_{name}"))
    same = pc.equal(keys, bests.take(pa.array(by_group[ids])))
    at = np.flatnonzero(same.to_numpy(zero_copy_only=False))
    made = np.full(count, -1, np.int64)
    made[ids[at]] = places[at]
    return made


def _once(values: pa.Array, given: Members) -> tuple[pa.Array, Members]:
    """Each value of a group once."""
    _, firsts = group_ids([pa.array(given.ids), values], len(values))
    some = given.take(firsts)
    return values.take(pa.array(firsts)), Members(np.ones_like(firsts), some.ids, some.count)


def distinct(rows: Rows) -> Rows:
    """Every row once."""
    _, firsts = _row_ids(rows)
    found = rows.take(firsts)
    return Rows(found.columns, found.time, np.ones(len(found), np.int64))


def intersect(node: r.Intersect, left: Rows, right: Rows) -> Rows:
    """Rows of both sides: each as often as on both, or once."""
    found, lefts, rights = _sides(node.schema, left, right)
    counts = np.minimum(lefts, rights)
    return _times(found, counts if node.all else np.minimum(counts, 1))


def without(node: r.Except, left: Rows, right: Rows) -> Rows:
    """Rows of the left side that are not on the right: as often as there are more, or once."""
    found, lefts, rights = _sides(node.schema, left, right)
    if node.all:
        return _times(found, np.maximum(lefts - rights, 0))
    return _times(found, ((lefts > 0) & (rights == 0)).astype(np.int64))


def _sides(schema: Schema, left: Rows, right: Rows) -> tuple[Rows, Ints, Ints]:
    """Every row of two sides once, and how often it is there on each."""
    both = concat([left, right], schema)
    ids, firsts = _row_ids(both)
    lefts, rights = np.zeros(len(firsts), np.int64), np.zeros(len(firsts), np.int64)
    np.add.at(lefts, ids[: len(left)], left.diff)
    np.add.at(rights, ids[len(left) :], right.diff)
    return both.take(firsts), lefts, rights


def _times(rows: Rows, counts: Ints) -> Rows:
    there = np.flatnonzero(counts)
    found = rows.take(there)
    return Rows(found.columns, found.time, counts[there])


def _row_ids(rows: Rows) -> tuple[Ints, Ints]:
    return _groups([column for column in rows.columns if column is not None], len(rows))


def _groups(keys: Sequence[pa.Array], count: int) -> tuple[Ints, Ints]:
    if not count:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return group_ids(keys, count)


def _are_exact(scalars: Sequence[Scalar]) -> bool:
    """Whether equal values are the same."""
    return all(is_exact(each.type) for each in scalars)
