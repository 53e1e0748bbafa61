r"""json: documents that stay as they were written, and what is taken from them.

A json value is its text. What `->` and its kin give is a piece of that text; of equal keys the last
one counts for a step, and all of them are there for `json_each` and `json_object_keys`. What is
made of SQL values has the blanks that PostgreSQL puts there, which differ by function.

An escape that is no text (`\u0000`, half of a pair) may stand in a document. Whoever takes the
document apart refuses it, wherever in it that escape stands; its kind and its length can be asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from noonmark.errors import InvalidArgument, InvalidText
from noonmark.rows import types as t
from noonmark.rows.jsonb import quoted
from noonmark.rows.pg.text import format_value
from noonmark.sql.functions.errors import NoSuchSubscript, NullRefused, UntranslatableText
from noonmark.sql.functions.function import Any_, Function, Result
from noonmark.sql.functions.jsonb import data_of

_BLANKS = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(parse_int=len, parse_float=len)
_TYPES = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
_NUMBERS = (t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Real, t.Double)

Types = tuple[t.SqlType, ...]
Path = tuple[str | None, ...]


# --- taken apart

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def _readable(text: str) -> str:
    """The document, all of whose escapes are text."""
    low_at = None  # where the second half of a pair has to stand
    for found in _ESCAPE.finditer(text) if "\\u" in text else ():
        code = int(found[1], 16) if found[1] else -1
        is_low = 0xDC00 <= code < 0xE000
        if is_low != (low_at is not None) or (is_low and found.start() != low_at):
            raise InvalidText("invalid input syntax for type json")
        if code == 0:
            raise UntranslatableText("unsupported Unicode escape sequence")
        low_at = found.end() if 0xD800 <= code < 0xDC00 else None
    if low_at is not None:
        raise InvalidText("invalid input syntax for type json")
    return text


def _past(text: str, at: int) -> int:
    """Where the blanks from here end."""
    found = _BLANKS.match(text, at)
    assert found is not None
    return found.end()


def pieces(text: str) -> Iterator[tuple[str | None, str]]:
    """The members of an object with their keys, or the items of an array, as they are written."""
    at = _past(text, 0)
    is_object = text[at] == "{"
    at = _past(text, at + 1)
    while text[at] not in "]}":
        key = None
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _past(text, _past(text, at) + 1)  # the colon
        _, end = _DECODER.raw_decode(text, at)
        yield key, text[at:end]
        at = _past(text, end)
        if text[at] == ",":
            at = _past(text, at + 1)


def kind(text: str) -> str:
    """What a document is: object, array, string, number, boolean or null."""
    return _TYPES.get(text[_past(text, 0)], "number")


def _child(text: str | None, step: str | int) -> str | None:
    """What a key or a number leads to; None where that is nowhere."""
    if text is None:
        return None
    what = kind(text)
    if what == "object" and isinstance(step, str):
        found = [piece for key, piece in pieces(text) if key == step]
        return found[-1] if found else None
    if what == "array" and isinstance(step, int):
        items = [piece for _, piece in pieces(text)]
        return items[step] if -len(items) <= step < len(items) else None
    return None


def _descend(text: str, path: Path) -> str | None:
    found: str | None = text.strip(" \t\n\r") if path else text
    for step in path:
        if found is None or step is None:
            return None
        if kind(found) == "array":
            try:
                found = _child(found, int(step))
            except ValueError:
                return None
        else:
            found = _child(found, step)
    return found


def plain(piece: str | None) -> str | None:
    """What ->> gives: a string without quotes, null as NULL, the rest as it is written."""
    if piece is None or kind(piece) == "null":
        return None
    return str(json.loads(piece)) if kind(piece) == "string" else piece


def items(text: str) -> Iterator[str]:
    """The items of an array; raises `InvalidArgument` for anything else."""
    if kind(text) != "array":
        what = "an object" if kind(text) == "object" else "a scalar"
        raise InvalidArgument(f"cannot extract elements from {what}")
    return (piece for _, piece in pieces(text))


def plain_items(text: str) -> Iterator[str | None]:
    """The items of an array as `plain` has them."""
    if kind(text) != "object":
        _readable(text)
    return map(plain, items(text))


def members(text: str) -> Iterator[tuple[str, str]]:
    """The members of an object, keys as often as they are there; raises `InvalidArgument`."""
    if kind(text) != "array":
        _readable(text)
    if kind(text) != "object":
        raise InvalidArgument(f"cannot deconstruct {_indefinite(kind(text))}")
    return ((str(key), piece) for key, piece in pieces(text))


def _indefinite(what: str) -> str:
    return "an array as an object" if what == "array" else "a scalar"


def _array_length(text: str) -> int:
    what = kind(text)
    if what != "array":
        shown = "a non-array" if what == "object" else "a scalar"
        raise InvalidArgument(f"cannot get array length of {shown}")
    return sum(1 for _ in pieces(text))


def _strip_nulls(text: str, in_arrays: bool = False) -> str:
    return _stripped(_readable(text), in_arrays)


def _stripped(text: str, in_arrays: bool) -> str:
    what = kind(text)
    if what in ("array", "object"):
        strips = what == "object" or in_arrays
        kept = [(at, each) for at, each in pieces(text) if not strips or kind(each) != "null"]
        inner = [(at, _stripped(each, in_arrays)) for at, each in kept]
        if what == "array":
            return f"[{','.join(each for _, each in inner)}]"
        return "{" + ",".join(f"{quoted(str(key))}:{each}" for key, each in inner) + "}"
    piece = text.strip(" \t\n\r")
    return quoted(str(json.loads(piece))) if what == "string" else piece


# --- made of SQL values


def text_of(value: Any, sql_type: t.SqlType) -> str:
    """A SQL value as json, as to_json makes it."""
    if value is None:
        return "null"
    match sql_type:
        case t.Json() | t.Jsonb():
            return str(value)
        case t.Boolean():
            return "true" if value else "false"
        case t.Array(element):
            return f"[{','.join(text_of(each, element) for each in value)}]"
        case t.Record(fields):
            pairs = zip(fields, value, strict=True)
            return "{" + ",".join(f"{quoted(f.name)}:{text_of(x, f.type)}" for f, x in pairs) + "}"
        case t.Timestamp() | t.TimestampTz():
            return quoted(data_of(value, sql_type))
    text = format_value(value, sql_type)
    is_number = isinstance(sql_type, _NUMBERS) and text not in ("NaN", "Infinity", "-Infinity")
    return text if is_number else quoted(text)


def _in_lines(value: Any, sql_type: t.SqlType) -> str:
    """The same with a line for every item of an array, or field of a record."""
    if isinstance(sql_type, t.Array) and value is not None:
        return f"[{(',' + chr(10) + ' ').join(text_of(each, sql_type.element) for each in value)}]"
    if isinstance(sql_type, t.Record) and value is not None:
        pairs = zip(sql_type.fields, value, strict=True)
        lines = (f"{quoted(f.name)}:{text_of(x, f.type)}" for f, x in pairs)
        return "{" + (",\n ").join(lines) + "}"
    return text_of(value, sql_type)


def key_of(value: Any, sql_type: t.SqlType) -> str:
    """A scalar as the name of a member."""
    if isinstance(sql_type, t.Array | t.Record | t.Jsonb | t.Json):
        raise InvalidArgument("key value must be scalar, not array, composite, or json")
    found = text_of(value, sql_type)
    return found if found.startswith('"') else quoted(found)


def _to_json(types: Types, value: Any) -> str:
    return text_of(value, types[0])


def _pretty(types: Types, value: Any, in_lines: bool) -> str:
    return _in_lines(value, types[0]) if in_lines else text_of(value, types[0])


def _build_array(types: Types, *values: Any) -> str:
    return f"[{', '.join(map(text_of, values, types))}]"


def _build_object(types: Types, *values: Any) -> str:
    if len(values) % 2:
        raise InvalidArgument("argument list must have even number of elements")
    pairs = []
    for at in range(0, len(values), 2):
        if values[at] is None:
            raise NullRefused("null value not allowed for object key")
        key = key_of(values[at], types[at])
        pairs.append(f"{key} : {text_of(values[at + 1], types[at + 1])}")
    return "{" + ", ".join(pairs) + "}"


def _object(texts: tuple[str | None, ...]) -> str:
    if len(texts) % 2:
        raise NoSuchSubscript("array must have even number of elements")
    return _object_of(texts[::2], texts[1::2])


def _object_of(keys: tuple[str | None, ...], values: tuple[str | None, ...]) -> str:
    if len(keys) != len(values):
        raise NoSuchSubscript("mismatched array dimensions")
    pairs = []
    for key, value in zip(keys, values, strict=True):
        if key is None:
            raise NullRefused("null value not allowed for object key")
        pairs.append(f"{quoted(key)} : {'null' if value is None else quoted(value)}")
    return "{" + ", ".join(pairs) + "}"


def _an_object(text: str) -> str:
    """The document, which is an object; raises `InvalidArgument` for anything else."""
    if kind(text) != "array":
        _readable(text)
    if kind(text) != "object":
        raise InvalidArgument("cannot make a record of a value that is not an object")
    return text


_J, _X = t.Json, t.Text
_ANY = (Any_.ANY,)


def _rows() -> Iterator[Function]:
    json_, text = t.Json(), t.Text()

    def get(name: str, more: type[t.SqlType], gives: Result, act: Callable[..., Any]) -> Function:
        return Function(
            name,
            (_J, more),
            gives,
            lambda text, step: act(_readable(text), step),
            fallible=True,
            gives_null=True,
            edition=2,  # once it gave what stands beside an escape that is no text
        )

    for step in (t.Text, t.Integer):
        yield get("->", step, json_, _child)
        yield get("->>", step, text, lambda a, b: plain(_child(a, b)))
    yield get("#>", t.Array, json_, _descend)
    yield get("#>>", t.Array, text, lambda a, b: plain(_descend(a, b)))
    for one in (t.Json, t.Jsonb):
        yield Function("the object of", (one,), one(), _an_object, fallible=True)
    yield Function("json_typeof", (_J,), text, kind)
    yield Function("json_array_length", (_J,), t.Integer(), _array_length, fallible=True)
    yield Function("json_strip_nulls", (_J,), json_, _strip_nulls, fallible=True, edition=2)
    yield Function("json_strip_nulls", (_J, t.Boolean), json_, _strip_nulls, fallible=True)
    yield Function("to_json", _ANY, json_, _to_json, typed=True)
    for name, what in (("row_to_json", t.Record), ("array_to_json", Any_.ARRAY)):
        yield Function(name, (what,), json_, _to_json, typed=True)
        yield Function(name, (what, t.Boolean), json_, _pretty, typed=True)
    yield Function("json_build_array", (), json_, lambda: "[]")
    yield Function("json_build_object", (), json_, lambda: "{}")
    for name, act, fails in (
        ("json_build_array", _build_array, False),
        ("json_build_object", _build_object, True),
    ):
        yield Function(
            name, _ANY, json_, act, strict=False, variadic=True, typed=True, fallible=fails
        )
    yield Function("json_object", (t.Array,), json_, _object, fallible=True)
    yield Function("json_object", (t.Array, t.Array), json_, _object_of, fallible=True)
    for suffix, gives, shown in (("", json_, lambda x: x), ("_text", text, plain)):
        yield Function(
            f"json_extract_path{suffix}",
            (_J, t.Text),
            gives,
            lambda a, *path, shown=shown: (
                None if a is None else shown(_descend(_readable(a), path))
            ),
            strict=False,
            fallible=True,
            edition=2,
            null_by_first=True,
            gives_null=True,
            variadic=True,
        )


TABLE = tuple(_rows())
