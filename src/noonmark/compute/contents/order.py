"""Rows in the order of SQL, and the first of them.

Law: ``sorted_places(order, rows, schema)`` are the places of the rows by the sort keys, and then by
the whole row, as `noonmark.sql.meaning.relation.in_order` has them.

Where it runs: statement workers; pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.kernel.sorting import sortable, values_of
from noonmark.compute.kernel.updates import Ints, Rows, group_ids
from noonmark.rows import types as t
from noonmark.rows.exact import is_exact, is_ordered
from noonmark.rows.numeral import SCALE_BYTES
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import SortKey

#: From so many rows on, most are left out before the rest is sorted.
_MANY = 10_000
#: What is left out is found by one row of so many.
_EACH = 32


def can_order(kind: t.SqlType) -> bool:
    """Whether `ordered` has an answer for a type; it may refuse single values."""
    return is_ordered(kind) or t.is_plain(kind)


def can_sort(relation: r.Relation, order: Sequence[SortKey]) -> bool:
    """Whether rows can be put in order, also where the keys leave it open."""
    kinds = [*(each.scalar.type for each in order), *(column.type for column in relation.schema)]
    return all(map(can_order, kinds))


def can_top(node: r.TopK) -> bool:
    """Whether the first rows of each partition can be had."""
    parted = all(is_exact(each.type) for each in node.partition)
    return parted and can_sort(node.input, node.order)


def ordered(array: pa.Array, kind: t.SqlType) -> pa.Array:
    """Values that Arrow orders, and takes for equal, as SQL does, of a type that `can_order`."""
    return pc.binary_slice(array, 0, -SCALE_BYTES) if t.is_plain(kind) else sortable(array)


def told_apart(array: pa.Array, kind: t.SqlType) -> pa.Array:
    """Values in the same order, equal only where they are the same (`rows.order.total_key`).

    Of equal numbers the one with fewer digits is the less.
    """
    return array if t.is_plain(kind) else sortable(array)


def sorted_places(
    order: Sequence[SortKey], rows: Rows, schema: Schema, ids: Ints | None = None
) -> Ints:
    """By the number of the partition if there is one, by the keys, and then by the whole row."""
    columns: list[pa.Array] = [] if ids is None else [pa.array(ids)]
    directions = ["ascending"] * len(columns)
    keys = values_of([each.scalar for each in order], rows)
    for each, values in zip(order, keys, strict=True):
        array = ordered(values, each.scalar.type)
        if array.null_count:
            columns.append(pc.is_null(array))
            directions.append("descending" if each.nulls_first else "ascending")
        columns.append(array)
        directions.append("descending" if each.descending else "ascending")
    for column, named in zip(rows.columns, schema, strict=True):
        assert column is not None, "rows are put in order as a whole"
        columns.append(told_apart(column, named.type))
        directions.append("ascending")
    if not columns:
        return np.arange(len(rows))
    names = [str(at) for at in range(len(columns))]
    by = list(zip(names, directions, strict=True))
    found = pc.sort_indices(pa.table(columns, names=names), by)
    return np.asarray(found.to_numpy(), np.int64)


def top(node: r.TopK, rows: Rows) -> Rows:
    """The first rows of each partition."""
    rows = repeated(rows)
    limit = None if node.limit is None else node.limit + node.offset
    if not node.partition:
        if limit is not None:
            rows = _likely(node.order, rows, limit)
        places = sorted_places(node.order, rows, node.input.schema)
        return rows.take(places[node.offset : limit])
    ids, _ = group_ids(values_of(node.partition, rows), len(rows))
    places = sorted_places(node.order, rows, node.input.schema, ids)
    numbers = _numbers(ids[places])
    fits = numbers >= node.offset
    if limit is not None:
        fits &= numbers < limit
    return rows.take(places[fits])


def _numbers(ids: Ints) -> Ints:
    """How many rows of the same partition are before each; partitions follow each other."""
    begins = np.flatnonzero(np.diff(ids, prepend=-1))
    sizes = np.diff(np.append(begins, len(ids)))
    return np.arange(len(ids)) - np.repeat(begins, sizes)


def _likely(order: Sequence[SortKey], rows: Rows, limit: int) -> Rows:
    """The rows that may be among the first `limit`, by the first key alone."""
    if not order or len(rows) < _MANY or limit > len(rows) // 4:
        return rows
    first = order[0]
    array = ordered(values_of([first.scalar], rows)[0], first.scalar.type)
    missing = array.null_count
    if first.nulls_first and missing >= limit:
        return rows.take(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)))
    wanted = limit - missing if first.nulls_first else limit
    if wanted > len(array) - missing:
        return rows
    way = "descending" if first.descending else "ascending"
    # What is behind the best of some rows is behind the best of all. Some are enough for that.
    some = array.take(pa.array(np.arange(0, len(array), _EACH))).drop_null()
    if len(some) < wanted:
        some = array
    table = pa.table([some], names=["key"])
    best = pc.select_k_unstable(table, k=wanted, sort_keys=[("key", way)])
    bound = some[int(best[-1].as_py())]
    near = (pc.greater_equal if first.descending else pc.less_equal)(array, bound)
    near = pc.fill_null(near, first.nulls_first)
    return rows.take(np.flatnonzero(near.to_numpy(zero_copy_only=False)))


def repeated(rows: Rows) -> Rows:
    """The same multiset with every row as often as it is there."""
    if (rows.diff == 1).all():
        return rows
    made = rows.take(np.repeat(np.arange(len(rows)), rows.diff))
    return Rows(made.columns, made.time, np.ones(len(made), np.int64))
