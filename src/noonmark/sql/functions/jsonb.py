"""jsonb and arrays: operators and functions.

A jsonb value is its canonical text. Numbers are compared by value: 1.0 equals 1.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.rows.jsonb import canonical
from noonmark.rows.pg.text import format_value
from noonmark.sql.functions.function import Any_, Function

_MISSING = object()
_NUMBERS = (t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Real, t.Double)


def parse(document: str) -> Any:
    """The document as Python data, numbers as Decimal."""
    return json.loads(document, parse_int=Decimal, parse_float=Decimal)


def jsonb_of(value: Any, sql_type: t.SqlType | None = None) -> str:
    """A SQL value as jsonb; without a type, Python data."""
    return _write(value if sql_type is None else data_of(value, sql_type))


def _write(data: Any) -> str:
    # A text alone would be read as a document: it goes in as the one item of a list.
    return canonical([data])[1:-1]


def data_of(value: Any, sql_type: t.SqlType) -> Any:
    """A SQL value as JSON data, as to_jsonb makes it."""
    if value is None:
        return None
    match sql_type:
        case t.Boolean():
            return value
        case t.Jsonb() | t.Json():
            return parse(value)
        case t.Array(element):
            return [data_of(item, element) for item in value]
        case t.Record(fields):
            return {f.name: data_of(x, f.type) for f, x in zip(fields, value, strict=True)}
        case t.Timestamp() | t.TimestampTz():
            day, _, clock = format_value(value, sql_type).partition(" ")
            if not clock:
                return day  # an infinity
            clock, _, era = clock.partition(" ")
            zone = ":00" if isinstance(sql_type, t.TimestampTz) else ""
            return f"{day}T{clock}{zone}{era and f' {era}'}"
    text = format_value(value, sql_type)
    if isinstance(sql_type, _NUMBERS) and text not in ("NaN", "Infinity", "-Infinity"):
        return Decimal(text)
    return text


def _child(data: Any, key: str | int) -> Any:
    if isinstance(data, dict) and isinstance(key, str):
        return data.get(key, _MISSING)
    if isinstance(data, list) and isinstance(key, int) and -len(data) <= key < len(data):
        return data[key]
    # A scalar is, for a number, an array of itself.
    is_scalar = not isinstance(data, dict | list) and isinstance(key, int)
    return data if is_scalar and key in (0, -1) else _MISSING


def _descend(data: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        if step is None:
            return _MISSING
        key: str | int = step
        if isinstance(data, list):
            try:
                key = int(step)
            except ValueError:
                return _MISSING
        data = _child(data, key)
        if data is _MISSING:
            return _MISSING
    return data


def descend(document: str, path: tuple[Any, ...]) -> str | None:
    """What is at the path, as a document; None where nothing is."""
    return _as_jsonb(_descend(parse(document), path))


def as_text(data: Any) -> str | None:
    """What ->> gives: a string without quotes, null as NULL."""
    if data is _MISSING or data is None:
        return None
    return data if isinstance(data, str) else _write(data)


def _as_jsonb(data: Any) -> str | None:
    return None if data is _MISSING else _write(data)


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _contains(a: Any, b: Any, top: bool = True) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return all(k in a and _contains(a[k], x, False) for k, x in b.items())
    if isinstance(a, list) and isinstance(b, list):
        return all(any(_contains(x, y, False) for x in a) for y in b)
    if top and isinstance(a, list) and not isinstance(b, dict):
        return any(_equal(x, b) for x in a)
    return _equal(a, b)


def _has(document: str, key: str) -> bool:
    data = parse(document)
    if isinstance(data, dict | list):
        return key in data
    return isinstance(data, str) and data == key


def _keys(document: str, keys: tuple[str | None, ...]) -> list[bool]:
    """Whether the document has each of the keys; NULL is none."""
    return [_has(document, key) for key in keys if key is not None]


def _typeof(document: str) -> str:
    data = parse(document)
    for kind, name in ((bool, "boolean"), (Decimal, "number"), (str, "string"), (list, "array")):
        if isinstance(data, kind):
            return name
    return "null" if data is None else "object"


def _array_length(document: str) -> int:
    data = parse(document)
    if not isinstance(data, list):
        kind = "an object" if isinstance(data, dict) else "a scalar"
        raise InvalidArgument(f"cannot get array length of {kind}")
    return len(data)


def _concat(a: str, b: str) -> str:
    left, right = parse(a), parse(b)
    if isinstance(left, dict) and isinstance(right, dict):
        return _write({**left, **right})
    as_list = [x if isinstance(x, list) else [x] for x in (left, right)]
    return _write(as_list[0] + as_list[1])


def _delete_key(document: str, key: str) -> str:
    data = parse(document)
    if isinstance(data, dict):
        return _write({k: x for k, x in data.items() if k != key})
    if isinstance(data, list):
        return _write([x for x in data if x != key])
    raise InvalidArgument("cannot delete from scalar")


def _delete_keys(document: str, keys: tuple[str | None, ...]) -> str:
    data, unwanted = parse(document), set(keys) - {None}
    if isinstance(data, dict):
        return _write({k: x for k, x in data.items() if k not in unwanted})
    if isinstance(data, list):
        return _write([x for x in data if not (isinstance(x, str) and x in unwanted)])
    raise InvalidArgument("cannot delete from scalar")


def _delete_at(document: str, at: int) -> str:
    data = parse(document)
    if not isinstance(data, list):
        kind = "object using integer index" if isinstance(data, dict) else "scalar"
        raise InvalidArgument(f"cannot delete from {kind}")
    if -len(data) <= at < len(data):
        del data[at]
    return _write(data)


def _to_jsonb(types: tuple[t.SqlType, ...], value: Any) -> str:
    return jsonb_of(value, types[0])


def _build_array(types: tuple[t.SqlType, ...], *values: Any) -> str:
    return _write([data_of(x, kind) for x, kind in zip(values, types, strict=True)])


def _build_object(types: tuple[t.SqlType, ...], *values: Any) -> str:
    if len(values) % 2:
        raise InvalidArgument("argument list must have even number of elements")
    result = {}
    for at in range(0, len(values), 2):
        if values[at] is None:
            raise InvalidArgument(f"argument {at + 1}: key must not be null")
        result[name_of(values[at], types[at])] = data_of(values[at + 1], types[at + 1])
    return _write(result)


def name_of(value: Any, sql_type: t.SqlType) -> str:
    """A scalar as the name of a member."""
    if isinstance(sql_type, t.Array | t.Record | t.Jsonb | t.Json):
        raise InvalidArgument("key value must be scalar, not array, composite, or json")
    data = data_of(value, sql_type)
    return data if isinstance(data, str) else _write(data)


def _strip_nulls(document: str, in_arrays: bool = False) -> str:
    def strip(node: Any) -> Any:
        if isinstance(node, dict):
            return {k: strip(x) for k, x in node.items() if x is not None}
        if isinstance(node, list):
            return [strip(x) for x in node if not in_arrays or x is not None]
        return node

    return _write(strip(parse(document)))


_J, _X, _TEXTS = t.Jsonb, t.Text, t.Array(t.Text())
_ANY = (Any_.ANY,)


def _get(name: str, parameters: tuple[Any, ...], text: bool, walk: Any) -> Function:
    give = as_text if text else _as_jsonb
    result = t.Text() if text else t.Jsonb()
    return Function(name, parameters, result, lambda a, b: give(walk(parse(a), b)), gives_null=True)


TABLE = (
    _get("->", (_J, _X), False, _child),
    _get("->", (_J, t.Integer), False, _child),
    _get("->>", (_J, _X), True, _child),
    _get("->>", (_J, t.Integer), True, _child),
    _get("#>", (_J, t.Array), False, _descend),
    _get("#>>", (_J, t.Array), True, _descend),
    Function("@>", (_J, _J), t.Boolean(), lambda a, b: _contains(parse(a), parse(b))),
    Function("<@", (_J, _J), t.Boolean(), lambda a, b: _contains(parse(b), parse(a))),
    Function("?", (_J, _X), t.Boolean(), _has),
    Function("?|", (_J, t.Array), t.Boolean(), lambda a, b: any(_keys(a, b))),
    Function("?&", (_J, t.Array), t.Boolean(), lambda a, b: all(_keys(a, b))),
    Function("||", (_J, _J), t.Jsonb(), _concat),
    Function("-", (_J, _X), t.Jsonb(), _delete_key, fallible=True),
    Function("-", (_J, t.Integer), t.Jsonb(), _delete_at, fallible=True),
    Function("jsonb_typeof", (_J,), t.Text(), _typeof),
    Function("jsonb_array_length", (_J,), t.Integer(), _array_length, fallible=True),
    Function("-", (_J, t.Array), t.Jsonb(), _delete_keys, fallible=True),
    Function("jsonb_strip_nulls", (_J,), t.Jsonb(), _strip_nulls),
    Function("jsonb_strip_nulls", (_J, t.Boolean), t.Jsonb(), _strip_nulls),
    Function("jsonb_build_array", (), t.Jsonb(), lambda: "[]"),
    Function("jsonb_build_object", (), t.Jsonb(), lambda: "{}"),
    Function("to_jsonb", _ANY, t.Jsonb(), _to_jsonb, typed=True),
    Function(
        "jsonb_build_array", _ANY, t.Jsonb(), _build_array, strict=False, variadic=True, typed=True
    ),
    Function(
        "jsonb_build_object",
        _ANY,
        t.Jsonb(),
        _build_object,
        strict=False,
        variadic=True,
        typed=True,
        fallible=True,
    ),
)
