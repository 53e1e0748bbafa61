"""How rows of given keys are read from a collection that has a key.

Law (complete): `look_up(collection, keys, time)` reads every row whose key is equal, in SQL, to one
of `keys`; it may read more.

Persist finds rows by the bits of the first columns of the key. For most types equal values have
equal bits. Of a float there are two zeros, and both are asked for. An interval, a document, a plain
numeric, an array or a record has any number of forms: keys are told apart by the columns before
such a column. A key that begins with one is looked for in the whole collection; with a numeric,
whose equal forms lie side by side, in their range.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product, takewhile
from typing import Any

from noonmark.persist.log.state import Collection
from noonmark.persist.read.plan import Query
from noonmark.rows import types as t
from noonmark.rows.identity import NEGATIVE_ZERO
from noonmark.rows.numeral import encode, equal_range

Row = tuple[Any, ...]

_MANY_FORMS = (t.Interval, t.Jsonb, t.Array, t.Record)


def _has_many_forms(kind: t.SqlType) -> bool:
    if isinstance(kind, t.Coded):
        return not kind.one_form
    return isinstance(kind, _MANY_FORMS) or t.is_plain(kind)


def look_up(collection: Collection, keys: Sequence[Row], time: int) -> Query:
    """The query for the rows of these keys at a time."""
    types = [collection.schema[name].type for name in collection.key]
    known = list(takewhile(lambda kind: not _has_many_forms(kind), types))
    if not known and t.is_plain(types[0]):
        ranges = [equal_range(key[0]) for key in keys]
        lows, highs = ([each[end] for each in ranges] for end in (0, 1))
        return Query(
            time, where={collection.key[0]: (min(lows, key=encode), max(highs, key=encode))}
        )
    if not known:
        return Query(time)
    forms = {
        form
        for key in keys
        for form in product(*(_forms(x, kind) for x, kind in zip(key, known, strict=False)))
    }
    return Query(time, keys=sorted(forms, key=repr))


def _forms(value: Any, kind: t.SqlType) -> tuple[Any, ...]:
    if isinstance(kind, t.Real | t.Double) and value == 0:
        return (0.0, NEGATIVE_ZERO)
    return (value,)
