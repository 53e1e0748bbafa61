"""Texts that go into SQL: quoted names and literals, and `format` with its places."""

from __future__ import annotations

import re
from typing import Any

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.rows.pgtext import format_value
from noonmark.sql.functions.function import Any_, Function

_PLACE = re.compile(r"%(?:(\d+)\$)?(-?)(\d*)([%sIL]?)")
#: Names that are words of the language in every place.
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
        all analyse analyze and any array as asc asymmetric both case cast check collate column
        constraint create current_catalog current_date current_role current_time current_timestamp
        current_user default deferrable desc distinct do else end except false fetch for foreign
        from grant group having in initially intersect into lateral leading limit localtime
        localtimestamp not null offset on only or order placing primary references returning select
        session_user some symmetric table then to trailing true union unique user using variadic
        when where window with
        """,
    )
)


def _ident(name: str) -> str:
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in _RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    quoted = "'" + text.replace("'", "''").replace("\\", "\\\\") + "'"
    return f"E{quoted}" if "\\" in text else quoted


def _format(types: tuple[t.SqlType, ...], pattern: str | None, *values: Any) -> str | None:
    if pattern is None:
        return None
    used = 0

    def put(match: re.Match[str]) -> str:
        nonlocal used
        number, left, width, kind = match.groups()
        if kind == "%":
            return "%"
        if not kind:
            found = pattern[match.end() : match.end() + 1]
            raise InvalidArgument(
                f'unrecognized format() type specifier "{found}"'
                if found
                else "unterminated format() type specifier"
            )
        used = int(number) if number else used + 1
        if not 0 < used <= len(values):
            raise InvalidArgument("too few arguments for format()")
        shown = _put(kind, values[used - 1], types[used])
        return shown.ljust(int(width or 0)) if left else shown.rjust(int(width or 0))

    return _PLACE.sub(put, pattern)


def _format_size(pattern: str, *values: Any) -> int:
    """How long the text can be: its places have widths, and may all be of the longest value."""
    places = list(_PLACE.finditer(pattern))
    longest = max((len(value) for value in values if isinstance(value, str)), default=100)
    return len(pattern) + sum(int(place[3] or 0) + 2 * longest for place in places)


def _put(kind: str, value: Any, sql_type: t.SqlType) -> str:
    if value is None:
        if kind == "I":
            raise InvalidArgument("null values cannot be formatted as an SQL identifier")
        return "NULL" if kind == "L" else ""
    text = format_value(value, sql_type)
    if kind == "s":
        return text
    return _ident(text) if kind == "I" else _literal(text)


def _nullable(text: str | None) -> str:
    return "NULL" if text is None else _literal(text)


_TEXT = t.Text()
_MANY: dict[str, Any] = {
    "strict": False,
    "gives_null": True,
    "variadic": True,
    "typed": True,
    "fallible": True,
    "size": _format_size,
}

TABLE = (
    Function("quote_ident", (t.Text,), _TEXT, _ident),
    Function("quote_literal", (t.Text,), _TEXT, _literal),
    Function("quote_nullable", (t.Text,), _TEXT, _nullable, strict=False),
    Function(
        "format",
        (t.Text,),
        _TEXT,
        _format,
        strict=False,
        gives_null=True,
        typed=True,
        fallible=True,
        size=_format_size,
    ),
    Function("format", (t.Text, Any_.ANY), _TEXT, _format, **_MANY),
)
