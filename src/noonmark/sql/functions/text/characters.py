"""Text functions: characters are code points, positions count from 1."""

from __future__ import annotations

import base64
import binascii
import hashlib
import operator
import re
from collections.abc import Callable
from typing import Any

from noonmark.errors import InvalidArgument, InvalidText, NegativeLength, OutOfRange
from noonmark.rows import types as t
from noonmark.rows.pg.text import format_value
from noonmark.rows.value import INT32_MAX, INT32_MIN
from noonmark.sql.functions.errors import NoSuchCharacter
from noonmark.sql.functions.function import Any_, Function
from noonmark.sql.functions.text import pattern
from noonmark.sql.functions.text.regexp import replaced_size

_BOOL, _INT, _TEXT = t.Boolean(), t.Integer(), t.Text()
#: The order of characters, whatever the collation is: here it is the order of texts.
_BY_CHARACTERS = (
    *(("~<~", operator.lt), ("~<=~", operator.le)),
    *(("~>~", operator.gt), ("~>=~", operator.ge)),
)


def _substring(text: str, start: int, length: int) -> str:
    if length < 0:
        raise NegativeLength("negative substring length not allowed")
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def _substring_from(text: str, start: int) -> str:
    return text[max(start - 1, 0) :]


def _overlay(text: str, new: str, start: int, length: int | None = None) -> str:
    """The text with so many characters from `start` on replaced: as many as are new, if unsaid."""
    if start <= 0:
        raise NegativeLength("negative substring length not allowed")
    size = len(new) if length is None else length
    if start + size > INT32_MAX:
        raise OutOfRange("integer out of range")
    return text[: start - 1] + new + _substring_from(text, start + size)


def _left(text: str, count: int) -> str:
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def _right(text: str, count: int) -> str:
    if count == INT32_MIN:  # in PostgreSQL it has no opposite, and takes nothing away
        return text
    return text[max(len(text) - count, 0) :] if count >= 0 else text[-count:]


def _pad(text: str, length: int, fill: str, left: bool) -> str:
    length = max(length, 0)
    if length > t.LENGTH_MAX:
        raise InvalidArgument("requested length too large")
    if len(text) >= length or not fill:
        return text[:length]
    missing = length - len(text)
    padding = (fill * (missing // len(fill) + 1))[:missing]
    return padding + text if left else text + padding


def _repeat(text: str, times: int) -> str:
    if len(text) * max(times, 0) > t.LENGTH_MAX:
        raise InvalidArgument("requested length too large")
    return text * max(times, 0)


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for at, character in enumerate(old):
        table.setdefault(ord(character), new[at] if at < len(new) else None)
    return text.translate(table)


def _split_part(text: str, separator: str, field: int) -> str:
    if field == 0:
        raise InvalidArgument("field position must not be zero")
    parts = text.split(separator) if separator else [text]
    at = field - 1 if field > 0 else len(parts) + field
    return parts[at] if 0 <= at < len(parts) else ""


def _initcap(text: str) -> str:
    return re.sub(r"[^\W_]+", lambda m: _upper(m[0][0]) + _lower(m[0][1:]), text)


def _upper(text: str) -> str:
    """One letter for one letter, as PostgreSQL has it: that of ß is ß."""
    if text.isascii():
        return text.upper()
    return "".join(up if len(up := letter.upper()) == 1 else letter for letter in text)


def _lower(text: str) -> str:
    return text.lower() if text.isascii() else "".join(letter.lower()[0] for letter in text)


def _chr(code: int) -> str:
    if code < 0:
        raise InvalidArgument("character number must be positive")
    if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise NoSuchCharacter(f"requested character not valid for encoding: {code}")
    return chr(code)


def _concat(types: tuple[t.SqlType, ...], *values: Any) -> str:
    return "".join(
        format_value(value, kind)
        for value, kind in zip(values, types, strict=True)
        if value is not None
    )


def _concat_ws(types: tuple[t.SqlType, ...], separator: str | None, *values: Any) -> str | None:
    if separator is None:
        return None
    pairs = zip(values, types[1:], strict=True)
    return separator.join(format_value(x, kind) for x, kind in pairs if x is not None)


def _like(ignore_case: bool) -> Callable[[str, str], bool]:
    return lambda text, like: pattern.like(like, "\\", ignore_case).matches(text)


def _like_bytes(data: bytes, like: bytes) -> bool:
    """Of bytes: each is a character of its own."""
    return _like(ignore_case=False)(data.decode("latin-1"), like.decode("latin-1"))


def _like_escape(ignore_case: bool) -> Callable[[str, str, str], bool]:
    def act(text: str, like: str, escape: str) -> bool:
        if len(escape) > 1:
            raise InvalidArgument("invalid escape string")
        return pattern.like(like, escape, ignore_case).matches(text)

    return act


def _octets_padded(types: tuple[t.SqlType, ...], text: str) -> int:
    """Of character(n), whose blanks count here."""
    assert isinstance(types[0], t.Char)
    return len(text.encode()) + max((types[0].length or 0) - len(text), 0)


_ESCAPE = re.compile(rb"\\\\|\\([0-3][0-7][0-7])|\\|[^\\]+")


def _escaped(byte: int) -> str:
    if byte == 0 or byte > 127:
        return f"\\{byte:03o}"
    return "\\\\" if byte == 92 else chr(byte)


def _unescaped(text: str) -> bytes:
    made = b""
    for found in _ESCAPE.finditer(text.encode()):
        if found[0] == b"\\":
            raise InvalidText("invalid input syntax for type bytea")
        made += bytes([int(found[1], 8)]) if found[1] else found[0].replace(b"\\\\", b"\\")
    return made


def _encode(data: bytes, form: str) -> str:
    match form.lower():
        case "hex":
            return data.hex()
        case "base64":
            text = base64.b64encode(data).decode()
            return "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
        case "escape":
            return "".join(map(_escaped, data))
    raise InvalidArgument(f'unrecognized encoding: "{form}"')


def _decode(text: str, form: str) -> bytes:
    try:
        match form.lower():
            case "hex":
                return bytes.fromhex(text)
            case "base64":
                return base64.b64decode(re.sub(r"\s", "", text), validate=True)
            case "escape":
                return _unescaped(text)
    except (ValueError, binascii.Error):
        raise InvalidArgument(f"invalid {form} text") from None
    raise InvalidArgument(f'unrecognized encoding: "{form}"')


def _in_base() -> list[Function]:
    """Of a negative number the digits of its bits."""
    return [
        Function(name, (kind,), _TEXT, lambda n, b=bits, f=form: format(n & (1 << b) - 1, f))
        for name, form in (("to_hex", "x"), ("to_oct", "o"), ("to_bin", "b"))
        for kind, bits in ((t.Integer, 32), (t.BigInt, 64))
    ]


def _strip(ends: str) -> list[Function]:
    name = {"both": "btrim", "left": "ltrim", "right": "rtrim"}[ends]
    way = {"both": str.strip, "left": str.lstrip, "right": str.rstrip}[ends]
    return [
        Function(name, (t.Text,), _TEXT, lambda text: way(text, " ")),
        Function(
            name, (t.Text, t.Text), _TEXT, lambda text, set_: way(text, set_) if set_ else text
        ),
    ]


def _plain() -> list[Function]:
    one, two, counted = (t.Text,), (t.Text, t.Text), (t.Text, t.Integer)
    rows = [
        *(
            Function(n, one, _INT, len, linear=True)
            for n in ("length", "char_length", "character_length")
        ),
        Function("octet_length", one, _INT, lambda text: len(text.encode()), linear=True),
        Function("bit_length", one, _INT, lambda text: 8 * len(text.encode())),
        Function("octet_length", (t.Bytea,), _INT, len, linear=True),
        Function("octet_length", (t.Char,), _INT, _octets_padded, typed=True),
        Function("length", (t.Bytea,), _INT, len, linear=True),
        Function("lower", one, _TEXT, _lower),
        Function("upper", one, _TEXT, _upper),
        Function("initcap", one, _TEXT, _initcap),
        Function("reverse", one, _TEXT, lambda text: text[::-1]),
        Function("ascii", one, _INT, lambda text: ord(text[0]) if text else 0),
        Function("chr", (t.Integer,), _TEXT, _chr, fallible=True),
        Function(
            "md5", one, _TEXT, lambda text: hashlib.md5(text.encode()).hexdigest(), linear=True
        ),
        Function("left", counted, _TEXT, _left, linear=True),
        Function("right", counted, _TEXT, _right, linear=True),
        Function(
            "repeat", counted, _TEXT, _repeat, fallible=True, size=lambda x, n: len(x) * max(n, 0)
        ),
        *(Function(n, two, _INT, lambda x, part: x.find(part) + 1) for n in ("strpos", "position")),
        Function("starts_with", two, _BOOL, str.startswith, linear=True),
        Function("^@", two, _BOOL, str.startswith),
        *(Function(sign, two, _BOOL, act) for sign, act in _BY_CHARACTERS),
        Function("replace", (t.Text,) * 3, _TEXT, _replace, size=replaced_size),
        Function("translate", (t.Text,) * 3, _TEXT, _translate),
        Function("split_part", (t.Text, t.Text, t.Integer), _TEXT, _split_part, fallible=True),
        *_in_base(),
        Function("encode", (t.Bytea, t.Text), _TEXT, _encode, fallible=True),
        Function("decode", two, t.Bytea(), _decode, fallible=True),
        *_strip("both"),
        *_strip("left"),
        *_strip("right"),
    ]
    for more in ((t.Integer,), (t.Integer, t.Integer)):
        rows.append(Function("overlay", (*two, *more), _TEXT, _overlay, fallible=True))
    for name in ("substring", "substr"):
        rows += [
            Function(name, counted, _TEXT, _substring_from, linear=True),
            Function(
                name,
                (*counted, t.Integer),
                _TEXT,
                _substring,
                fallible=True,
                decided_by=(2,),
                linear=True,
            ),
        ]
    return rows + _padding()


def _padding() -> list[Function]:
    counted = (t.Text, t.Integer)
    rows: list[Function] = []
    for name, left in (("lpad", True), ("rpad", False)):
        rows += [
            Function(
                name,
                counted,
                _TEXT,
                lambda x, n, w=left: _pad(x, n, " ", w),
                fallible=True,
                size=lambda _, n: max(n, 0),
            ),
            Function(
                name,
                (*counted, t.Text),
                _TEXT,
                lambda x, n, f, w=left: _pad(x, n, f, w),
                fallible=True,
                size=lambda _, n, __: max(n, 0),
            ),
        ]
    return rows


def _joining() -> list[Function]:
    options: dict[str, Any] = {"strict": False, "variadic": True, "typed": True}
    return [
        Function("||", (t.Text, t.Text), _TEXT, lambda a, b: a + b, linear=True),
        Function("||", (t.Bytea, t.Bytea), t.Bytea(), lambda a, b: a + b, linear=True),
        Function("concat", (Any_.ANY,), _TEXT, _concat, **options),
        Function("concat_ws", (t.Text, Any_.ANY), _TEXT, _concat_ws, gives_null=True, **options),
    ]


def _matching() -> list[Function]:
    two, three = (t.Text,) * 2, (t.Text,) * 3
    rows = []
    steps = pattern.like_steps
    octets = (t.Bytea,) * 2
    rows.append(Function("like", octets, _BOOL, _like_bytes, fallible=True))
    for name, folded in (("like", False), ("ilike", True)):
        rows += [
            Function(name, two, _BOOL, _like(folded), fallible=True, decided_by=(1,), steps=steps),
            Function(
                name,
                three,
                _BOOL,
                _like_escape(folded),
                fallible=True,
                decided_by=(1, 2),
                steps=steps,
            ),
        ]
    return rows


TABLE = (*_plain(), *_joining(), *_matching())
