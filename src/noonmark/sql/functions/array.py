"""Arrays, which are tuples here: operators and functions. Subscripts count from 1."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.rows.order import sort_key
from noonmark.rows.pg.text import format_value
from noonmark.sql.functions.errors import (
    NoSuchSubscript,
    NotHeldHere,
    NullRefused,
    TooManyItems,
)
from noonmark.sql.functions.function import Any_, Function

Types = tuple[t.SqlType, ...]
#: As many as PostgreSQL's arrays have.
_ITEMS_MAX = 134_217_727


def _subscript(array: tuple[Any, ...], at: int) -> Any:
    return array[at - 1] if 1 <= at <= len(array) else None


def _slice(array: tuple[Any, ...], first: int, last: int) -> tuple[Any, ...]:
    return array[max(first - 1, 0) : max(last, 0)]


def _length(array: tuple[Any, ...], dimension: int) -> int | None:
    return len(array) if array and dimension == 1 else None


def _keys(types: Types) -> Callable[[Any], Any]:
    """Equality of elements: NULL equals NULL where PostgreSQL's array functions say so."""
    array = next(kind for kind in types if isinstance(kind, t.Array))
    key = sort_key(array.element)
    return lambda value: None if value is None else (key(value),)


def _position(types: Types, array: tuple[Any, ...] | None, wanted: Any) -> int | None:
    if array is None:
        return None
    key = _keys(types)
    return next((at for at, x in enumerate(array, 1) if key(x) == key(wanted)), None)


def _position_from(
    types: Types, array: tuple[Any, ...] | None, wanted: Any, start: int | None
) -> int | None:
    if not array or (wanted is None and None not in array):
        return None
    if start is None:
        raise NullRefused("initial position must not be null")
    key = _keys(types)
    skipped = max(start - 1, 0)
    found = (at for at, x in enumerate(array[skipped:], 1) if key(x) == key(wanted))
    return None if (at := next(found, None)) is None else at + skipped


def _sorted(
    types: Types, array: tuple[Any, ...], descending: bool = False, first: bool | None = None
) -> tuple[Any, ...]:
    """NULLs behind all others, unless it is told, or goes down."""
    assert isinstance(types[0], t.Array)
    if isinstance(types[0].element, t.Jsonb):
        raise NotHeldHere("documents have no order")
    present = [x for x in array if x is not None]
    nulls = [None] * (len(array) - len(present))
    present.sort(key=sort_key(types[0].element), reverse=descending)
    before = descending if first is None else first
    return (*nulls, *present) if before else (*present, *nulls)


def _trimmed(array: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    if not 0 <= count <= len(array):
        message = f"number of elements to trim must be between 0 and {len(array)}"
        raise NoSuchSubscript(message)
    return array[: len(array) - count]


def _filled(value: Any, sizes: tuple[int | None, ...] | None, *given: Any) -> tuple[Any, ...]:
    starts = given[0] if given else (1,) * len(sizes or ())
    if sizes is None or starts is None:
        raise NullRefused("dimension array or low bound array cannot be null")
    if None in sizes or None in starts:
        raise NullRefused("dimension values cannot be null")
    if len(starts) != len(sizes):
        raise NoSuchSubscript(
            "wrong number of array subscripts",
            detail="Low bound array has different size than dimensions array.",
        )
    whole = [size or 0 for size in sizes]
    if min(whole, default=0) < 0 or math.prod(whole) > _ITEMS_MAX:
        raise TooManyItems(f"array size exceeds the maximum allowed ({_ITEMS_MAX})")
    if not whole or 0 in whole:
        return ()
    if len(whole) > 1 or starts != (1,):
        raise NotHeldHere("an array of several dimensions, or one that starts elsewhere than at 1")
    return (value,) * whole[0]


def _remove(types: Types, array: tuple[Any, ...] | None, unwanted: Any) -> Any:
    key = _keys(types)
    return None if array is None else tuple(x for x in array if key(x) != key(unwanted))


def _replace(types: Types, array: tuple[Any, ...] | None, old: Any, new: Any) -> Any:
    key = _keys(types)
    return None if array is None else tuple(new if key(x) == key(old) else x for x in array)


def _positions(types: Types, array: tuple[Any, ...] | None, wanted: Any) -> Any:
    key = _keys(types)
    if array is None:
        return None
    return tuple(at for at, x in enumerate(array, 1) if key(x) == key(wanted))


def _contains(types: Types, a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    key = _keys(types)
    have = {key(x) for x in a if x is not None}
    return all(x is not None and key(x) in have for x in b)


def _overlaps(types: Types, a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    key = _keys(types)
    return bool({key(x) for x in a if x is not None} & {key(x) for x in b if x is not None})


def _lower(array: tuple[Any, ...], dimension: int) -> int | None:
    return 1 if array and dimension == 1 else None


def _to_string(types: Types, array: tuple[Any, ...], separator: str, null: Any = None) -> str:
    element = types[0].element if isinstance(types[0], t.Array) else types[0]
    texts = [null if x is None else format_value(x, element) for x in array]
    return separator.join(text for text in texts if text is not None)


def _to_string_with(
    types: Types, array: tuple[Any, ...] | None, separator: str | None, null: str | None
) -> str | None:
    """Without a text for NULL, NULLs are left out; without an array or a separator it is NULL."""
    if array is None or separator is None:
        return None
    return _to_string(types, array, separator, null)


def from_string(
    text: str | None, separator: str | None, null: str | None = None
) -> tuple[str | None, ...] | None:
    """The parts of a text between separators, or its characters; NULL where one is as told."""
    if text is None:
        return None
    if not text:
        return ()
    parts = list(text) if separator is None else text.split(separator) if separator else [text]
    return tuple(None if null is not None and part == null else part for part in parts)


class Quantified:
    """``x op ANY (array)`` and ``x op ALL (array)``: the comparisons OR-ed or AND-ed."""

    def __init__(self, compare: Callable[[Any, Any], bool], stop: bool) -> None:
        self.compare = compare
        self.stop = stop

    def __call__(self, types: Types, x: Any, array: tuple[Any, ...] | None) -> bool | None:
        """Three-valued: an element that decides ends it; else a NULL makes it NULL."""
        if array is None:
            return None
        key, unknown = sort_key(types[0]), False
        for item in array:
            if x is None or item is None:
                unknown = True
            elif self.compare(key(x), key(item)) is self.stop:
                return self.stop
        return None if unknown else not self.stop


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _quantified() -> list[Function]:
    return [
        Function(
            f"{sign} {word}",
            (Any_.ELEMENT, Any_.ARRAY),
            t.Boolean(),
            Quantified(compare, stop),
            strict=False,
            gives_null=True,
            typed=True,
        )
        for sign, compare in OPERATORS.items()
        for word, stop in (("any", True), ("all", False))
    ]


def _first(types: Types) -> t.SqlType:
    return types[0]


def _second(types: Types) -> t.SqlType:
    return types[1]


def _element(types: Types) -> t.SqlType:
    if not isinstance(types[0], t.Array):
        raise InvalidArgument(f"{types[0]} has no elements")
    return types[0].element


_A, _E, _INT = Any_.ARRAY, Any_.ELEMENT, t.Integer()
_TEXTS = t.Array(t.Text())


def _cat(a: tuple[Any, ...] | None, b: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return a if b is None else b if a is None else a + b


TABLE = (
    Function("subscript", (_A, t.Integer), _element, _subscript, gives_null=True),
    Function("slice", (_A, t.Integer, t.Integer), _first, _slice),
    Function("array_length", (_A, t.Integer), _INT, _length, gives_null=True),
    Function("array_upper", (_A, t.Integer), _INT, _length, gives_null=True),
    Function("array_lower", (_A, t.Integer), _INT, _lower, gives_null=True),
    Function("cardinality", (_A,), _INT, len),
    Function("||", (_A, _A), _first, _cat, strict=False, gives_null=True),
    Function("||", (_A, _E), _first, lambda a, x: (*(a or ()), x), strict=False),
    Function("||", (_E, _A), _second, lambda x, a: (x, *(a or ())), strict=False),
    Function("array_cat", (_A, _A), _first, _cat, strict=False, gives_null=True),
    Function("array_append", (_A, _E), _first, lambda a, x: (*(a or ()), x), strict=False),
    Function("array_prepend", (_E, _A), _second, lambda x, a: (x, *(a or ())), strict=False),
    Function(
        "array_position", (_A, _E), _INT, _position, strict=False, gives_null=True, typed=True
    ),
    Function("array_remove", (_A, _E), _first, _remove, strict=False, gives_null=True, typed=True),
    Function(
        "array_replace",
        (_A, _E, _E),
        _first,
        _replace,
        strict=False,
        gives_null=True,
        typed=True,
    ),
    Function(
        "array_positions",
        (_A, _E),
        t.Array(_INT),
        _positions,
        strict=False,
        gives_null=True,
        typed=True,
    ),
    Function("array_ndims", (_A,), _INT, lambda a: 1 if a else None, gives_null=True),
    Function("@>", (_A, _A), t.Boolean(), _contains, typed=True),
    Function("<@", (_A, _A), t.Boolean(), lambda k, a, b: _contains(k, b, a), typed=True),
    Function("&&", (_A, _A), t.Boolean(), _overlaps, typed=True),
    Function("array_to_string", (_A, t.Text), t.Text(), _to_string, typed=True),
    Function(
        "array_to_string",
        (_A, t.Text, t.Text),
        t.Text(),
        _to_string_with,
        strict=False,
        gives_null=True,
        typed=True,
    ),
    *(
        Function(
            "string_to_array", (t.Text,) * n, _TEXTS, from_string, strict=False, gives_null=True
        )
        for n in (2, 3)
    ),
    Function(
        "array_position",
        (_A, _E, t.Integer),
        _INT,
        _position_from,
        strict=False,
        gives_null=True,
        typed=True,
        fallible=True,
        edition=2,
    ),
    Function(
        "array_dims", (_A,), t.Text(), lambda a: f"[1:{len(a)}]" if a else None, gives_null=True
    ),
    Function("array_reverse", (_A,), _first, lambda a: a[::-1]),
    *(
        Function("array_sort", (_A, *more), _first, _sorted, typed=True, fallible=True)
        for more in ((), (t.Boolean,), (t.Boolean, t.Boolean))
    ),
    Function("trim_array", (_A, t.Integer), _first, _trimmed, fallible=True),
    *(
        Function(
            "array_fill",
            (_E, *(t.Array,) * n),
            lambda types: t.Array(types[0]),
            _filled,
            element=t.Integer,
            strict=False,
            fallible=True,
            size=lambda _, sizes, *__: 8 * (sizes[0] or 0) if sizes else 0,
        )
        for n in (1, 2)
    ),
    *_quantified(),
)
