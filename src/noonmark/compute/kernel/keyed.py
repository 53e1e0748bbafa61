"""Operators with keys, of all rows of some keys at once.

Law: each kernel gives the multiset that `ir.relation` says the operator is of its inputs, for any
rows that hold whole keys, where its ``can_...`` holds; or it raises one of `NO_KERNEL`.

Inputs are contents: diffs are how often a row is there, and no row is there twice.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.kernel import index as ix
from noonmark.compute.kernel.scalar import kept
from noonmark.compute.kernel.sorting import in_order, sortable, values_of
from noonmark.compute.kernel.updates import (
    BEFORE,
    Errors,
    Ints,
    Rows,
    concat,
    group_ids,
    places,
)
from noonmark.compute.kernel.windows import has_window_kernel
from noonmark.compute.scalar import number
from noonmark.compute.scalar.number import NoKernel
from noonmark.rows import types as t
from noonmark.rows.arrow import arrow_type
from noonmark.rows.exact import has_extremes, is_exact, is_ordered
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall, SortKey
from noonmark.sql.ir.scalar import TRUE, Scalar, may_fail

_EARLY = (r.JoinKind.SEMI, r.JoinKind.ANTI)


def can_join(node: r.Join) -> bool:
    """Whether `join` has an answer."""
    sides = (r.JoinKind.SEMI, r.JoinKind.ANTI, r.JoinKind.LEFT)
    keys = [part for key in node.keys for part in (key.left, key.right)]
    return node.kind in sides and bool(keys) and _plain(keys) and not may_fail(node.on)


def can_aggregate(node: r.Aggregate) -> bool:
    """Whether `aggregate` has an answer."""
    return _plain(node.keys) and all(_known(call) for call in node.aggregates)


def can_top_k(node: r.TopK) -> bool:
    """Whether `top_k` has an answer."""
    ordered = all(has_extremes(each.type) for each in node.schema)
    return _plain(node.partition) and ordered and has_order(node.order)


def can_window(node: r.Window) -> bool:
    """Whether `noonmark.compute.kernel.windows.window` has an answer."""
    ordered = all(has_extremes(each.type) for each in node.input.schema)
    known = all(has_window_kernel(call, _plain, _has_ends) for call in node.calls)
    return known and _plain(node.partition) and ordered and has_order(node.order)


def _plain(scalars: Sequence[Scalar], fits: Callable[[t.SqlType], bool] = is_exact) -> bool:
    return all(fits(each.type) and not may_fail(each) for each in scalars)


def _has_ends(scalars: Sequence[Scalar]) -> bool:
    return _plain(scalars, has_extremes)


def has_order(order: Sequence[SortKey]) -> bool:
    """Whether rows can be put in the order, all at once."""
    return _plain([each.scalar for each in order], is_ordered)


def _known(call: AggregateCall) -> bool:
    if call.order or (call.filter is not None and not _plain([call.filter])):
        return False
    if call.entry.name == "count":
        return _plain(call.arguments)
    return call.entry.name in ("min", "max") and _plain(call.arguments, has_extremes)


# -- joins --------------------------------------------------------------------------------------


def join(node: r.Join, left: Rows, right: Rows) -> Rows:
    """Pairs, or left rows with or without a partner; a left join has the rest beside NULLs."""
    given, found = partners(node, left, right)
    if node.kind in _EARLY:
        met = np.zeros(len(left), np.bool_)
        met[given] = True
        return left.take(np.flatnonzero(met if node.kind is r.JoinKind.SEMI else ~met))
    a, b = left.take(given), right.take(found)
    pairs = Rows(a.columns + b.columns, a.time, a.diff * b.diff)
    alone = np.ones(len(left), np.bool_)
    alone[given] = False
    rest = left.take(np.flatnonzero(alone))
    nulls = tuple(pa.nulls(len(rest), arrow_type(c.type)) for c in node.right.schema)
    return concat([pairs, rest.with_columns(rest.columns + nulls)], node.schema)


def partners(node: r.Join, left: Rows, right: Rows) -> tuple[Ints, Ints]:
    """The pairs of places whose keys are equal and for which `on` is TRUE."""
    keys = [key.left for key in node.keys], [key.right for key in node.keys]
    a, b = values_of(keys[0], left), values_of(keys[1], right)
    b = [_as(array, like.type) for array, like in zip(b, a, strict=True)]
    given, found = ix.matches(ix.build(b, len(right)), ix.hashes_of(a, len(left)))
    taken = [[x.take(pa.array(at)) for x in y] for y, at in ((a, given), (b, found))]
    fine = ix.same(taken[0], taken[1], len(given))
    for key, array in zip(node.keys, taken[0], strict=True):
        if not key.null_equal and array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
            fine = fine[valid[fine]]
    given, found = given[fine], found[fine]
    if node.on == TRUE:
        return given, found
    both = Rows(left.take(given).columns + right.take(found).columns, given, given)
    errors = Errors()
    passed = kept(node.on, both, errors)
    if errors.found:
        raise NoKernel
    return given[passed], found[passed]


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)


# -- groups -------------------------------------------------------------------------------------


def aggregate(node: r.Aggregate, rows: Rows) -> Rows:
    """The groups of rows."""
    keys = values_of(node.keys, rows)
    ids, firsts = group_ids(keys, len(rows))
    count = len(firsts)
    if not node.keys:
        count = 1
    columns = [key.take(pa.array(firsts)) for key in keys]
    for call in node.aggregates:
        columns.append(_fold(call, rows, ids, count))
    once = np.ones(count, np.int64)
    return Rows(tuple(columns), np.full(count, BEFORE, np.int64), once)


def merged(node: r.Aggregate, rows: Rows) -> Rows:
    """The groups of all rows, of those of parts of them: of counts, minima and maxima."""
    width = len(node.keys)
    columns = [column for column in rows.columns if column is not None]
    ids, firsts = group_ids(columns[:width], len(rows))
    count = len(firsts)
    made = [key.take(pa.array(firsts)) for key in columns[:width]]
    for call, column in zip(node.aggregates, columns[width:], strict=True):
        if call.entry.name == "count":
            made.append(pa.array(number.sums(column.to_numpy(), ids, count), pa.int64()))
            continue
        there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        made.append(_extreme(call, column.take(pa.array(there)), ids[there], count))
    return Rows(tuple(made), np.full(count, BEFORE, np.int64), np.ones(count, np.int64))


def _fold(call: AggregateCall, rows: Rows, ids: Ints, count: int) -> pa.Array:
    used = np.arange(len(rows))
    if call.filter is not None:
        used = kept(call.filter, rows, Errors())
    if not call.arguments:
        return pa.array(number.sums(rows.diff[used], ids[used], count), pa.int64())
    (values,) = values_of(call.arguments, rows)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    used = used[valid[used]]
    if call.entry.name != "count":
        return _extreme(call, values.take(pa.array(used)), ids[used], count)
    if not call.distinct:
        return pa.array(number.sums(rows.diff[used], ids[used], count), pa.int64())
    groups = pa.array(ids[used])
    _, firsts = group_ids([groups, values.take(pa.array(used))], len(used))
    return pa.array(np.bincount(ids[used][firsts], minlength=count), pa.int64())


def _extreme(call: AggregateCall, values: pa.Array, ids: Ints, count: int) -> pa.Array:
    """The first of each group, once its values are in order; integers need no order."""
    descending = call.entry.name == "max"
    if pa.types.is_integer(values.type):
        return _extreme_integer(values, ids, count, descending=descending)
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # there is one zero
    table = pa.table([ids, sortable(values)], names=["id", "value"])
    order = pc.sort_indices(
        table, [("id", "ascending"), ("value", "descending" if descending else "ascending")]
    ).to_numpy()
    sorted_ids = ids[order]
    first = np.flatnonzero(np.diff(sorted_ids, prepend=-1))
    made = np.full(count, -1, np.int64)
    made[sorted_ids[first]] = order[first]
    return values.take(pa.array(made, mask=made < 0))


def _extreme_integer(values: pa.Array, ids: Ints, count: int, *, descending: bool) -> pa.Array:
    ends = np.iinfo(np.int64)
    made = np.full(count, ends.min if descending else ends.max, np.int64)
    given = values.to_numpy(zero_copy_only=False).astype(np.int64)
    (np.maximum if descending else np.minimum).at(made, ids, given)
    there = np.zeros(count, np.bool_)
    there[ids] = True
    return pa.array(np.where(there, made, 0), mask=~there).cast(values.type)


def distinct(node: r.Distinct, rows: Rows) -> Rows:
    """Each row once."""
    columns = [column for column in rows.columns[: len(node.schema)] if column is not None]
    _, firsts = group_ids(columns, len(rows))
    taken = rows.take(firsts if len(rows) else np.zeros(0, np.int64))
    return Rows(taken.columns, taken.time, np.ones(len(taken), np.int64))


# -- order --------------------------------------------------------------------------------------


def ahead(node: r.TopK, first: Rows, more: Rows) -> Rows:
    """Of more rows those that may be among the first, when these are known, of all without them.

    Where as many are there as are shown, whatever is behind all of them by the first sort key alone
    stays behind.
    """
    if not node.order or not len(first) or int(first.diff.sum()) < (node.limit or 0):
        return more
    key = node.order[0]
    (was,), (now,) = values_of([key.scalar], first), values_of([key.scalar], more)
    if not pa.types.is_integer(now.type) or was.null_count or now.null_count:
        return more
    ends = pc.min_max(was).as_py()
    near = pc.greater_equal(now, ends["min"]) if key.descending else pc.less_equal(now, ends["max"])
    return more.take(places(near))


def top_k(node: r.TopK, rows: Rows) -> Rows:
    """The first rows of each partition."""
    ids, _ = group_ids(values_of(node.partition, rows), len(rows))
    order = in_order(node.order, rows, ids)
    ids, counts = ids[order], rows.diff[order]
    ends = np.cumsum(counts)
    starts = ends - counts
    firsts = np.flatnonzero(np.diff(ids, prepend=-1))
    base = np.repeat(starts[firsts], np.diff(np.append(firsts, len(ids))))
    low = np.maximum(starts - base, node.offset)
    high = ends - base
    if node.limit is not None:
        high = np.minimum(high, node.offset + node.limit)
    there = np.flatnonzero(high > low)
    taken = rows.take(order[there])
    return Rows(taken.columns, taken.time, (high - low)[there])
