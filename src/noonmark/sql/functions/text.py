"""Text functions: characters are code points, positions count from 1."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from typing import Any

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.rows.pgtext import format_value
from noonmark.sql.functions import pattern
from noonmark.sql.functions.function import Any_, Function

_BOOL, _INT, _TEXT = t.Boolean(), t.Integer(), t.Text()


def _substring(text: str, start: int, length: int) -> str:
    if length < 0:
        raise InvalidArgument("negative substring length not allowed")
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def _substring_from(text: str, start: int) -> str:
    return text[max(start - 1, 0) :]


def _substring_regex(text: str, regex: str) -> str | None:
    match = pattern.regex(regex).search(text)
    if match is None:
        return None
    return match[1] if match.re.groups else match[0]


def _left(text: str, count: int) -> str:
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def _right(text: str, count: int) -> str:
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
    return re.sub(r"[^\W_]+", lambda m: m[0][0].upper() + m[0][1:].lower(), text)


def _chr(code: int) -> str:
    if code <= 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise InvalidArgument(f"requested character not valid for encoding: {code}")
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


def _regexp_replace(text: str, regex: str, new: str, flags: str = "") -> str:
    def expand(match: re.Match[str]) -> str:
        def part(m: re.Match[str]) -> str:
            if m[1] in "0&":
                return match[0]
            if m[1].isdigit():
                return (match[int(m[1])] or "") if int(m[1]) <= match.re.groups else ""
            return m[1] if m[1] == "\\" else m[0]

        return re.sub(r"\\(.)", part, new, flags=re.DOTALL)

    return pattern.regex(regex, flags).sub(expand, text, count=0 if "g" in flags else 1)


def _regexp_match(text: str, regex: str, flags: str = "") -> tuple[str | None, ...] | None:
    match = pattern.regex(regex, flags).search(text)
    if match is None:
        return None
    return match.groups() if match.re.groups else (match[0],)


def _like(ignore_case: bool) -> Callable[[str, str], bool]:
    return lambda text, like: bool(pattern.like(like, "\\", ignore_case).match(text))


def _like_escape(ignore_case: bool) -> Callable[[str, str, str], bool]:
    def act(text: str, like: str, escape: str) -> bool:
        if len(escape) > 1:
            raise InvalidArgument("invalid escape string")
        return bool(pattern.like(like, escape, ignore_case).match(text))

    return act


def _encode(data: bytes, form: str) -> str:
    match form.lower():
        case "hex":
            return data.hex()
        case "base64":
            text = base64.b64encode(data).decode()
            return "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
    raise InvalidArgument(f'unrecognized encoding: "{form}"')


def _decode(text: str, form: str) -> bytes:
    try:
        match form.lower():
            case "hex":
                return bytes.fromhex(text)
            case "base64":
                return base64.b64decode(re.sub(r"\s", "", text), validate=True)
    except (ValueError, binascii.Error):
        raise InvalidArgument(f"invalid {form} text") from None
    raise InvalidArgument(f'unrecognized encoding: "{form}"')


def _convert_from(data: bytes, form: str) -> str:
    _utf8(form)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument(
            f'invalid byte sequence for encoding "UTF8": 0x{data[error.start]:02x}'
        ) from None


def _convert_to(text: str, form: str) -> bytes:
    _utf8(form)
    return text.encode()


def _utf8(form: str) -> None:
    if form.lower().replace("-", "") != "utf8":
        raise InvalidArgument(f'unrecognized encoding: "{form}"', hint="There is UTF8.")


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
        *(Function(n, one, _INT, len) for n in ("length", "char_length", "character_length")),
        Function("octet_length", one, _INT, lambda text: len(text.encode())),
        Function("bit_length", one, _INT, lambda text: 8 * len(text.encode())),
        Function("octet_length", (t.Bytea,), _INT, len),
        Function("length", (t.Bytea,), _INT, len),
        Function("lower", one, _TEXT, str.lower),
        Function("upper", one, _TEXT, str.upper),
        Function("initcap", one, _TEXT, _initcap),
        Function("reverse", one, _TEXT, lambda text: text[::-1]),
        Function("ascii", one, _INT, lambda text: ord(text[0]) if text else 0),
        Function("chr", (t.Integer,), _TEXT, _chr, fallible=True),
        Function("md5", one, _TEXT, lambda text: hashlib.md5(text.encode()).hexdigest()),
        Function("left", counted, _TEXT, _left),
        Function("right", counted, _TEXT, _right),
        Function("repeat", counted, _TEXT, _repeat, fallible=True),
        Function("strpos", two, _INT, lambda text, part: text.find(part) + 1),
        Function("starts_with", two, _BOOL, str.startswith),
        Function("replace", (t.Text,) * 3, _TEXT, _replace),
        Function("translate", (t.Text,) * 3, _TEXT, _translate),
        Function("split_part", (t.Text, t.Text, t.Integer), _TEXT, _split_part, fallible=True),
        Function("to_hex", (t.Integer,), _TEXT, lambda n: f"{n & 0xFFFFFFFF:x}"),
        Function("to_hex", (t.BigInt,), _TEXT, lambda n: f"{n & 0xFFFFFFFFFFFFFFFF:x}"),
        Function("encode", (t.Bytea, t.Text), _TEXT, _encode, fallible=True),
        Function("decode", two, t.Bytea(), _decode, fallible=True),
        Function("convert_from", (t.Bytea, t.Text), _TEXT, _convert_from, fallible=True),
        Function("convert_to", two, t.Bytea(), _convert_to, fallible=True),
        *_strip("both"),
        *_strip("left"),
        *_strip("right"),
    ]
    for name in ("substring", "substr"):
        rows += [
            Function(name, counted, _TEXT, _substring_from),
            Function(
                name,
                (*counted, t.Integer),
                _TEXT,
                _substring,
                fallible=True,
                decided_by=(2,),
            ),
        ]
    for name, left in (("lpad", True), ("rpad", False)):
        rows += [
            Function(name, counted, _TEXT, lambda x, n, w=left: _pad(x, n, " ", w), fallible=True),
            Function(
                name,
                (*counted, t.Text),
                _TEXT,
                lambda x, n, f, w=left: _pad(x, n, f, w),
                fallible=True,
            ),
        ]
    return rows


def _joining() -> list[Function]:
    options: dict[str, Any] = {"strict": False, "variadic": True, "typed": True}
    return [
        Function("||", (t.Text, t.Text), _TEXT, lambda a, b: a + b),
        Function("||", (t.Bytea, t.Bytea), t.Bytea(), lambda a, b: a + b),
        Function("concat", (Any_.ANY,), _TEXT, _concat, **options),
        Function("concat_ws", (t.Text, Any_.ANY), _TEXT, _concat_ws, gives_null=True, **options),
    ]


def _matching() -> list[Function]:
    two, three, four = (t.Text,) * 2, (t.Text,) * 3, (t.Text,) * 4
    rows = []
    for name, folded in (("like", False), ("ilike", True)):
        rows += [
            Function(name, two, _BOOL, _like(folded), fallible=True, decided_by=(1,)),
            Function(name, three, _BOOL, _like_escape(folded), fallible=True, decided_by=(1, 2)),
        ]
    texts = t.Array(_TEXT)
    for name, flags in (("~", ""), ("~*", "i")):
        search: Any = lambda text, regex, f=flags: bool(pattern.regex(regex, f).search(text))  # noqa: E731
        rows.append(Function(name, two, _BOOL, search, fallible=True, decided_by=(1,)))
    rows += [
        Function(
            "similar to", two, _BOOL, lambda x, p: bool(pattern.similar(p).match(x)), fallible=True
        ),
        Function(
            "regexp_like", two, _BOOL, lambda x, p: bool(pattern.regex(p).search(x)), fallible=True
        ),
        Function(
            "regexp_count",
            two,
            _INT,
            lambda x, p: sum(1 for _ in pattern.regex(p).finditer(x)),
            fallible=True,
        ),
        Function("substring", two, _TEXT, _substring_regex, gives_null=True, fallible=True),
        Function("regexp_replace", three, _TEXT, _regexp_replace, fallible=True),
        Function("regexp_replace", four, _TEXT, _regexp_replace, fallible=True),
        Function(
            "regexp_split_to_array",
            two,
            texts,
            lambda x, p: tuple(pattern.regex(p).split(x)),
            fallible=True,
        ),
        Function(
            "regexp_substr",
            two,
            _TEXT,
            lambda x, p: None if (m := pattern.regex(p).search(x)) is None else m[0],
            gives_null=True,
            fallible=True,
        ),
        Function(
            "regexp_instr",
            two,
            _INT,
            lambda x, p: 0 if (m := pattern.regex(p).search(x)) is None else m.start() + 1,
            fallible=True,
        ),
        Function("regexp_match", two, texts, _regexp_match, gives_null=True, fallible=True),
        Function("regexp_match", three, texts, _regexp_match, gives_null=True, fallible=True),
    ]
    return rows


TABLE = (*_plain(), *_joining(), *_matching())
