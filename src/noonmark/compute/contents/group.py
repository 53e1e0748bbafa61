"""Rows by the values that they share: aggregates, DISTINCT, INTERSECT and EXCEPT.

Aggregates are had of parts of the rows, too: what is known of the groups of each is merged
(`noonmark.compute.contents.pieces`).

Sums are those of `noonmark.compute.kernel.accumulator`, exact whatever the order; the least and the
greatest value are had by Arrow, whose order is SQL's for these types.

Where it runs: statement workers; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.contents.order import can_order, told_apart
from noonmark.compute.kernel.accumulator import argument, summands
from noonmark.compute.kernel.finish import finished
from noonmark.compute.kernel.scalar import projected
from noonmark.compute.kernel.sums import Members, added_to, added_up
from noonmark.compute.kernel.updates import Errors, Ints, Rows, concat, group_ids, one_array
from noonmark.compute.scalar import number
from noonmark.rows import types as t
from noonmark.rows.exact import is_exact
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.scalar import Scalar

_EXTREMES = ("min", "max")
_WHOLE = (t.SmallInt, t.Integer, t.BigInt)


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


@dataclass(frozen=True, eq=False)
class Groups:
    """What is known of groups: their keys, and what each of their aggregates follows from.

    That is the least or the greatest value; or sums; or every value once, with its group.
    """

    keys: tuple[pa.Array, ...]
    count: int
    known: tuple[tuple[pa.Array, ...], ...]

    @property
    def size(self) -> int:
        """How many rows that are, with the values that are kept."""
        return self.count + sum(len(each[-1]) for each in self.known if len(each[-1]) > self.count)


def aggregate(node: r.Aggregate, rows: Rows, errors: Errors) -> Rows:
    """The groups, each with its aggregates."""
    return shown(node, partial(node, rows, errors), errors)


def partial(node: r.Aggregate, rows: Rows, errors: Errors) -> Groups:
    """What is known of the groups from some rows."""
    scalars = [*node.keys, *(argument(call) for call in node.aggregates)]
    arrays, rows = projected(scalars, rows, errors)
    width = len(node.keys)
    keys, arguments = arrays[:width], arrays[width:]
    ids, firsts = _groups(keys, len(rows))
    members = Members(rows.diff, ids, len(firsts) if width else 1)
    known = (_known(node, c, a, members) for c, a in zip(node.aggregates, arguments, strict=True))
    taken = tuple(key.take(pa.array(firsts)) for key in keys)
    return Groups(taken, members.count, tuple(known))


def _known(
    node: r.Aggregate, call: AggregateCall, values: pa.Array, given: Members
) -> tuple[pa.Array, ...]:
    if call.entry.name in _EXTREMES:
        return (_extreme(call, values, given),)
    if call.distinct:
        values, given = _once(values, given)
        return pa.array(given.ids), values
    return tuple(added_to(_one(node, call), [values], given))


def merged(node: r.Aggregate, parts: Sequence[Groups]) -> Groups:
    """What is known of the groups from all rows, from parts of them."""
    if len(parts) == 1:
        return parts[0]
    total = sum(part.count for part in parts)
    keys = [pa.concat_arrays([part.keys[at] for part in parts]) for at in range(len(node.keys))]
    ids, firsts = _groups(keys, total)
    count = len(firsts) if keys else 1
    starts = np.cumsum([0, *(part.count for part in parts[:-1])])
    known = []
    for at, call in enumerate(node.aggregates):
        columns = [part.known[at] for part in parts]
        if call.distinct and call.entry.name not in _EXTREMES:
            own = [
                ids[each[0].to_numpy() + start] for each, start in zip(columns, starts, strict=True)
            ]
            columns = [(pa.array(a), each[1]) for a, each in zip(own, columns, strict=True)]
        known.append(_merged(node, call, columns, Members(np.ones(total, np.int64), ids, count)))
    taken = tuple(key.take(pa.array(firsts)) for key in keys)
    return Groups(taken, count, tuple(known))


def _merged(
    node: r.Aggregate, call: AggregateCall, parts: Sequence[tuple[pa.Array, ...]], given: Members
) -> tuple[pa.Array, ...]:
    columns = [pa.concat_arrays(each) for each in zip(*parts, strict=True)]
    if call.entry.name in _EXTREMES:
        return (_extreme(call, columns[0], given),)
    if call.distinct:
        own = columns[0].to_numpy()
        values, some = _once(columns[1], Members(np.ones_like(own), own, given.count))
        return pa.array(some.ids), values
    return tuple(added_up(_one(node, call), columns, given))


def shown(node: r.Aggregate, given: Groups, errors: Errors) -> Rows:
    """The groups, each with its aggregates, of what is known from all rows."""
    made: list[pa.Array] = list(given.keys)
    for call, known in zip(node.aggregates, given.known, strict=True):
        made.append(_shown(node, call, known, given.count, errors))
    none = np.zeros(given.count, np.int64)
    return Rows(tuple(made), none, none + 1)


def _shown(
    node: r.Aggregate,
    call: AggregateCall,
    known: tuple[pa.Array, ...],
    count: int,
    errors: Errors,
) -> pa.Array:
    """One aggregate of every group."""
    if call.entry.name in _EXTREMES:
        return known[0]
    if call.distinct:
        ids = known[0].to_numpy()
        call = AggregateCall(call.function, call.arguments)
        given = Members(np.ones_like(ids), ids, count)
        known = tuple(added_to(_one(node, call), [known[1]], given))
    none = np.zeros(count, np.int64)
    made, _ = finished(_one(node, call), Rows(known, none, none + 1), errors)
    if errors.found:
        return pa.nulls(count)
    (column,) = made.columns
    assert column is not None
    return column


def _one(node: r.Aggregate, call: AggregateCall) -> r.Aggregate:
    """One aggregate alone, without keys: its groups are numbered already."""
    return r.Aggregate(node.input, (), (call,), (node.names[-1],))


def _extreme(call: AggregateCall, values: pa.Array, given: Members) -> pa.Array:
    """The least or the greatest value of every group; NULL where it has none."""
    kind = call.arguments[0].type
    if isinstance(kind, _WHOLE) or (isinstance(kind, t.Numeric) and not t.is_plain(kind)):
        found = _extreme_number(call.entry.name, values, given)
        if found is not None:
            return found
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


def _extreme_number(name: str, values: pa.Array, given: Members) -> pa.Array | None:
    """The same for numbers that are the same where they are equal, if 64 bits hold them."""
    exact, ids = number.scaled(values), given.ids
    found = exact.values
    if found.dtype == object or number.bound(found) >= number.SAFE:
        return None
    if exact.valid is not None:
        found, ids = found[exact.valid], ids[exact.valid]
    end = np.int64(number.SAFE) if name == "min" else -np.int64(number.SAFE)
    made = np.full(given.count, end, np.int64)
    (np.minimum if name == "min" else np.maximum).at(made, ids, found)
    there = made != end
    return number.as_stored(np.where(there, made, 0), values.type, ~there)


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
