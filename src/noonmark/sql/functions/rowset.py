"""Table functions: any number of rows for one list of arguments; none if an argument is NULL.

The meaning gives the rows in order, as tuples of the columns. A function of several columns has a
record as its result type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from noonmark.errors import InvalidArgument, OutOfRange
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.order import interval_micros
from noonmark.sql.functions import json
from noonmark.sql.functions.array import from_string
from noonmark.sql.functions.function import Any_, Function
from noonmark.sql.functions.jsonb import as_text, jsonb_of, parse
from noonmark.sql.functions.number.fit import WIDE
from noonmark.sql.functions.text import regexp
from noonmark.sql.functions.time.calendar import stamp_add, stamptz_add

ROWS_MAX = 10_000_000

Rows = Iterator[tuple[Any, ...]]


def _series(first: Any, last: Any, step: Any = 1) -> Rows:
    if step == 0:
        raise InvalidArgument("step size cannot equal zero")
    if (last - first) / step > ROWS_MAX:
        raise OutOfRange(f"generate_series gives more than {ROWS_MAX} rows")
    at = first
    while at <= last if step > 0 else at >= last:
        yield (at,)
        at += step


def _decimal_series(first: Decimal, last: Decimal, step: Decimal = Decimal(1)) -> Rows:
    for name, number in (("start value", first), ("stop value", last), ("step size", step)):
        if not number.is_finite():
            raise InvalidArgument(f"{name} cannot be {'NaN' if number.is_nan() else 'infinity'}")
    if not step:
        raise InvalidArgument("step size cannot equal zero")
    if step.adjusted() < (WIDE.subtract(last, first).adjusted() - len(str(ROWS_MAX))):
        raise OutOfRange(f"generate_series gives more than {ROWS_MAX} rows")
    at = Decimal(first)
    while at <= last if step > 0 else at >= last:
        yield (at,)
        at = WIDE.add(at, step)


def _stamp_series(add: Callable[[Any, v.Interval], Any]) -> Callable[..., Rows]:
    def series(first: Any, last: Any, step: v.Interval) -> Rows:
        size = interval_micros(step)
        if size == 0:
            raise InvalidArgument("step size cannot equal zero")
        at, count = first, 0
        while at <= last if size > 0 else at >= last:
            yield (at,)
            count += 1
            if count > ROWS_MAX:
                raise OutOfRange(f"generate_series gives more than {ROWS_MAX} rows")
            at = add(at, step)

    return series


def _items(document: str) -> list[Any]:
    data = parse(document)
    if not isinstance(data, list):
        kind = "an object" if isinstance(data, dict) else "a scalar"
        raise InvalidArgument(f"cannot extract elements from {kind}")
    return data


def _members(document: str) -> dict[str, Any]:
    data = parse(document)
    if not isinstance(data, dict):
        raise InvalidArgument("cannot deconstruct a value that is not an object")
    return data


def _subscripts(
    array: tuple[Any, ...], dimension: int, backwards: bool = False
) -> Iterator[tuple[int]]:
    found = range(1, len(array) + 1) if dimension == 1 else range(0)
    return ((at,) for at in (reversed(found) if backwards else found))


#: Of vectors of the catalog, whose subscripts begin at 0; SQL cannot call it by this name.
VECTOR_SUBSCRIPTS = "generate_subscripts of a vector"


def _from_zero(array: tuple[Any, ...], dimension: int) -> Iterator[tuple[int]]:
    return ((at - 1,) for (at,) in _subscripts(array, dimension))


#: Words that a client must quote to use them as names.
_RESERVED = (
    *("all", "and", "any", "array", "as", "asc", "case", "cast", "check", "collate", "column"),
    *("create", "current_date", "current_timestamp", "current_user", "default", "desc", "distinct"),
    *("do", "else", "end", "except", "false", "fetch", "for", "foreign", "from", "grant", "group"),
    *("having", "in", "initially", "intersect", "into", "lateral", "leading", "limit", "not"),
    *("null", "offset", "on", "only", "or", "order", "placing", "primary", "references"),
    *("returning", "select", "session_user", "some", "symmetric", "table", "then", "to"),
    *("trailing", "true", "union", "unique", "user", "using", "values", "when", "where", "window"),
    "with",
)
_KEYWORD = t.Record(tuple(t.Field(name, t.Text()) for name in ("word", "catcode", "catdesc")))
_EXTENSION = t.Record(
    tuple(t.Field(name, t.Text()) for name in ("name", "default_version", "comment"))
)


_OPTION = t.Record(tuple(t.Field(name, t.Text()) for name in ("option_name", "option_value")))


def _options(options: tuple[str, ...]) -> Rows:
    for each in options:
        name, mark, value = str(each).partition("=")
        yield name, value if mark else None


def _keywords() -> Rows:
    return ((word, "R", "reserved") for word in _RESERVED)


def _numbered(types: tuple[t.SqlType, ...]) -> t.SqlType:
    return t.Record((t.Field("x", _element(types)), t.Field("n", t.Integer())))


def _expanded(array: tuple[Any, ...]) -> Iterator[tuple[Any, int]]:
    return ((x, at) for at, x in enumerate(array, 1))


def _element(types: tuple[t.SqlType, ...]) -> t.SqlType:
    assert isinstance(types[0], t.Array)
    return types[0].element


def _pair(value: t.SqlType) -> t.Record:
    return t.Record((t.Field("key", t.Text()), t.Field("value", value)))


def _split(text: str | None, separator: str | None, null: str | None = None) -> Rows:
    return ((part,) for part in from_string(text, separator, null) or ())


_J, _TEXT = (t.Jsonb,), t.Text()


def _series_rows() -> list[Function]:
    rows = []
    for kind in (t.Integer, t.BigInt):
        rows += [
            Function("generate_series", (kind, kind), kind(), _series),
            Function("generate_series", (kind, kind, kind), kind(), _series),
        ]
    number = t.Numeric
    rows += [
        Function("generate_series", (number,) * 2, number(), _decimal_series),
        Function("generate_series", (number,) * 3, number(), _decimal_series),
    ]
    for stamp, add in ((t.Timestamp, stamp_add), (t.TimestampTz, stamptz_add)):
        parameters = (stamp, stamp, t.Interval)
        rows.append(Function("generate_series", parameters, stamp(), _stamp_series(add)))
    return rows


def _of_json() -> list[Function]:
    """What a json has, as the pieces of its text."""
    json_, one = t.Json(), (t.Json,)
    return [
        Function("json_array_elements", one, json_, lambda d: ((x,) for x in json.items(d))),
        Function(
            "json_array_elements_text",
            one,
            _TEXT,
            lambda d: ((x,) for x in json.plain_items(d)),
        ),
        Function("json_object_keys", one, _TEXT, lambda d: ((k,) for k, _ in json.members(d))),
        Function("json_each", one, _pair(json_), json.members),
        Function(
            "json_each_text",
            one,
            _pair(_TEXT),
            lambda d: ((k, json.plain(x)) for k, x in json.members(d)),
        ),
    ]


def _expressions() -> list[Function]:
    return [
        Function(name, (t.Text,) * count, gives, act, steps=regexp.steps)
        for name, gives, act in (
            ("regexp_split_to_table", _TEXT, regexp.split_rows),
            ("regexp_matches", t.Array(_TEXT), regexp.every_match),
        )
        for count in (2, 3)
    ]


TABLE = (
    *_series_rows(),
    Function("generate_subscripts", (Any_.ARRAY, t.Integer), t.Integer(), _subscripts),
    Function("generate_subscripts", (Any_.ARRAY, t.Integer, t.Boolean), t.Integer(), _subscripts),
    Function(VECTOR_SUBSCRIPTS, (Any_.ARRAY, t.Integer), t.Integer(), _from_zero),
    Function("pg_get_keywords", (), _KEYWORD, _keywords),
    Function("pg_available_extensions", (), _EXTENSION, lambda: iter(())),
    Function("pg_options_to_table", (t.Array,), _OPTION, _options),
    Function("_pg_expandarray", (Any_.ARRAY,), _numbered, _expanded),
    Function("unnest", (Any_.ARRAY,), _element, lambda array: ((x,) for x in array), scalar=True),
    Function("jsonb_array_elements", _J, t.Jsonb(), lambda d: ((jsonb_of(x),) for x in _items(d))),
    Function("jsonb_array_elements_text", _J, _TEXT, lambda d: ((as_text(x),) for x in _items(d))),
    Function("jsonb_object_keys", _J, _TEXT, lambda d: ((k,) for k in _members(d))),
    Function(
        "jsonb_each",
        _J,
        _pair(t.Jsonb()),
        lambda d: ((k, jsonb_of(x)) for k, x in _members(d).items()),
    ),
    Function(
        "jsonb_each_text",
        _J,
        _pair(_TEXT),
        lambda d: ((k, as_text(x)) for k, x in _members(d).items()),
    ),
    *_of_json(),
    *_expressions(),
    *(
        Function("string_to_table", (t.Text,) * n, _TEXT, _split, strict=False, gives_null=True)
        for n in (2, 3)
    ),
)
