"""Filters of Spark's planner, as a narrower read.

Law (wider): the narrowed query returns every row of the query that passes all the filters. It may
return more, because Spark evaluates the filters again; so whatever is not understood is left out.

NULL and NaN: a comparison with a value never passes NULL, but it passes NaN, which Spark holds to
be above every number; ranges of a query leave NaN out, hence no range is made for floats. Where it
runs: driver.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from noonmark.errors import NoonmarkError
from noonmark.persist.log.state import Collection
from noonmark.persist.read.plan import Query
from noonmark.rows import arrow
from noonmark.rows import types as t

Pushed = tuple[str, tuple[str, ...], Any]

#: Types whose values are the same in Spark's filters and here.
_TYPES = (
    t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Text, t.Varchar, t.Bytea, t.Date
)  # fmt: skip
#: More keys than this are looked up as a range.
KEYS_MAX = 1000


def narrowed(query: Query, collection: Collection, filters: Iterable[Pushed]) -> Query:
    """The query, with what the filters say about columns."""
    where: dict[str, tuple[Any, Any]] = dict(query.where)
    keys = query.keys
    for name, attribute, value in filters:
        column = attribute[0]
        if column not in collection.schema or not _usable(collection, column, name, value):
            continue
        low, high = _range(name, value)
        if name in ("EqualTo", "In") and collection.key and column == collection.key[0]:
            values = list(value) if name == "In" else [value]
            if keys is None and len(values) <= KEYS_MAX:
                keys = values
        where[column] = _meet(where.get(column, (None, None)), (low, high))
    return replace(query, where=where, keys=keys)


def _usable(collection: Collection, column: str, name: str, value: Any) -> bool:
    kind = collection.schema[column].type
    if not isinstance(kind, _TYPES) or name not in _RANGES or t.is_plain(kind):
        return False
    values = list(value) if name == "In" else [value]
    if not values or any(each is None for each in values):
        return False
    try:
        arrow.to_array(values, kind)
    except NoonmarkError:
        return False
    return True


_RANGES = frozenset(
    {"EqualTo", "In", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"}
)


def _range(name: str, value: Any) -> tuple[Any, Any]:
    if name == "In":
        return min(value), max(value)
    low = value if name in ("EqualTo", "GreaterThan", "GreaterThanOrEqual") else None
    high = value if name in ("EqualTo", "LessThan", "LessThanOrEqual") else None
    return low, high


def _meet(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    lows = [low for low in (one[0], other[0]) if low is not None]
    highs = [high for high in (one[1], other[1]) if high is not None]
    return (max(lows) if lows else None, min(highs) if highs else None)
