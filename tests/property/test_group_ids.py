"""The numbers of groups, and the pairs of joins: laws of `kernel.updates` and `contents.join`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from noonmark.compute.contents.join import join
from noonmark.compute.kernel.updates import Errors, Rows, group_ids
from noonmark.rows import types as t
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import TRUE, column

_ENDS = (-(1 << 63), -(1 << 63) + 1, (1 << 63) - 2, (1 << 63) - 1)
_KINDS = {
    pa.int64(): st.sampled_from((*_ENDS, -1, 0, 1, 2, 5_000)) | st.integers(-3, 3),
    pa.int16(): st.sampled_from((-(1 << 15), (1 << 15) - 1)) | st.integers(0, 2),
    pa.int32(): st.integers(100, 104),
    pa.string(): st.sampled_from(("", "a", "b")),
}


@st.composite
def _columns(draw: st.DrawFn) -> tuple[int, list[list[Any]], list[pa.DataType]]:
    count = draw(st.integers(0, 30))
    kinds = draw(st.lists(st.sampled_from(list(_KINDS)), max_size=3))
    each = [draw(st.lists(st.none() | _KINDS[k], min_size=count, max_size=count)) for k in kinds]
    return count, each, kinds


@given(_columns())
def test_a_group_is_the_rows_that_share_their_values(
    given: tuple[int, list[list[Any]], list[pa.DataType]],
) -> None:
    count, columns, kinds = given
    arrays = [pa.array(each, kind) for each, kind in zip(columns, kinds, strict=True)]
    ids, firsts = group_ids(arrays, count)
    rows = list(zip(*columns, strict=True)) if columns else [()] * count
    assert sorted(set(ids.tolist())) == list(range(len(firsts))), "without gaps"
    assert len(firsts) == len(set(rows))
    for place, number in enumerate(ids.tolist()):
        assert rows.index(rows[place]) == firsts[number], "the first row of its group"


_KEYS = st.lists(st.none() | st.integers(0, 8) | st.sampled_from(_ENDS), max_size=12)


@given(_KEYS, _KEYS, st.booleans(), st.sampled_from(list(r.JoinKind)), st.booleans())
def test_the_pairs_of_a_join_are_those_with_equal_keys(
    lefts: list[int | None],
    rights: list[int | None],
    once: bool,
    kind: r.JoinKind,
    null_equal: bool,
) -> None:
    if once:
        rights = list(dict.fromkeys(rights))
    sides = [Schema((Column("key", t.BigInt()), Column("row", t.BigInt()))) for _ in range(2)]
    key = r.JoinKey(column(0, sides[0].columns[0]), column(0, sides[1].columns[0]), null_equal)
    node = r.Join(kind, r.Scan("l", sides[0]), r.Scan("r", sides[1]), (key,), TRUE)
    found = join(node, _rows(lefts), _rows(rights), Errors())
    shown = [each.to_pylist() for each in found.columns if each is not None]
    rows = sorted(zip(*shown, strict=True), key=repr)
    assert rows == sorted(_meant(kind, lefts, rights, null_equal=null_equal), key=repr)


def _rows(keys: list[int | None]) -> Rows:
    count = len(keys)
    places = pa.array(np.arange(count), pa.int64())
    once = np.ones(count, np.int64)
    return Rows((pa.array(keys, pa.int64()), places), np.zeros(count, np.int64), once)


def _meant(
    kind: r.JoinKind, lefts: list[int | None], rights: list[int | None], *, null_equal: bool
) -> list[tuple[Any, ...]]:
    pairs = [
        (i, j)
        for i, a in enumerate(lefts)
        for j, b in enumerate(rights)
        if a == b and (a is not None or null_equal)
    ]
    met, partners = {i for i, _ in pairs}, {j for _, j in pairs}
    if kind in (r.JoinKind.SEMI, r.JoinKind.ANTI):
        return [(a, i) for i, a in enumerate(lefts) if (i in met) == (kind is r.JoinKind.SEMI)]
    rows: list[tuple[Any, ...]] = [(lefts[i], i, rights[j], j) for i, j in pairs]
    if kind in (r.JoinKind.LEFT, r.JoinKind.FULL):
        rows += [(a, i, None, None) for i, a in enumerate(lefts) if i not in met]
    if kind in (r.JoinKind.RIGHT, r.JoinKind.FULL):
        rows += [(None, None, b, j) for j, b in enumerate(rights) if j not in partners]
    return rows
