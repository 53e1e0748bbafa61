"""Texts that go into SQL: quoted names and literals, and `format` with its places."""

from __future__ import annotations

import re
from typing import Any

from noonmark.errors import InvalidArgument, InvalidText, InvalidValue
from noonmark.rows import types as t
from noonmark.rows.pg.text import format_value, parse_value
from noonmark.sql.functions.errors import NullRefused
from noonmark.sql.functions.function import Any_, Function

_PLACE = re.compile(r"%(?:(\d+)\$)?(-?)(\*(?:\d+\$)?|\d*)([%sIL]?)")
#: Words of the language that are no name, or not in every place: `pg_get_keywords()`.
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
        all analyse analyze and any array as asc asymmetric authorization between bigint
        binary bit boolean both case cast char character check coalesce collate collation
        column concurrently constraint create cross current_catalog current_date
        current_role current_schema current_time current_timestamp current_user dec
        decimal default deferrable desc distinct do else end except exists extract false
        fetch float for foreign freeze from full grant greatest group grouping having
        ilike in initially inner inout int integer intersect interval into is isnull join
        json json_array json_arrayagg json_exists json_object json_objectagg json_query
        json_scalar json_serialize json_table json_value lateral leading least left like
        limit localtime localtimestamp merge_action national natural nchar none normalize
        not notnull null nullif numeric offset on only or order out outer overlaps overlay
        placing position precision primary real references returning right row select
        session_user setof similar smallint some substring symmetric system_user table
        tablesample then time timestamp to trailing treat trim true union unique user
        using values varchar variadic verbose when where window with xmlattributes
        xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot
        xmlserialize xmltable
        """,
    )
)


def _ident(name: str) -> str:
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in _RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    quoted = "'" + text.replace("'", "''").replace("\\", "\\\\") + "'"
    return f"E{quoted}" if "\\" in text else quoted


_BLANKS = " \t\n\r\f\v"
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_UNQUOTED = re.compile("[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*")


def _parse_ident(text: str, strict: bool = True) -> tuple[str, ...]:
    """The names of a qualified name."""

    def invalid(detail: str | None = None) -> InvalidArgument:
        return InvalidArgument(f'string is not a valid identifier: "{text}"', detail=detail)

    names: list[str] = []
    rest = text.lstrip(_BLANKS)
    while True:
        match = _QUOTED.match(rest) or _UNQUOTED.match(rest)
        if match is None:
            if rest.startswith('"'):
                raise invalid("String has unclosed double quotes.")
            if rest.startswith("."):
                raise invalid('No valid identifier before ".".')
            raise invalid('No valid identifier after ".".' if names else None)
        if match[0] == '""':
            raise invalid("Quoted identifier must not be empty.")
        is_quoted = match[0][0] == '"'
        names.append(match[0][1:-1].replace('""', '"') if is_quoted else _lowered(match[0]))
        rest = rest[match.end() :].lstrip(_BLANKS)
        if not rest.startswith("."):
            break
        rest = rest[1:].lstrip(_BLANKS)
    if rest and strict:
        raise invalid()
    return tuple(names)


def _lowered(name: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _format(types: tuple[t.SqlType, ...], pattern: str | None, *values: Any) -> str | None:
    if pattern is None:
        return None
    used = 0

    def put(match: re.Match[str]) -> str:
        nonlocal used
        number, left, width, kind = match.groups()
        if match[0] == "%%":
            return "%"
        if not kind or kind == "%":
            found = kind or pattern[match.end() : match.end() + 1]
            raise InvalidArgument(
                f'unrecognized format() type specifier "{found}"'
                if found
                else "unterminated format() type specifier"
            )
        if width.startswith("*"):
            width = _as_width(argument(width[1:-1]), types[used])
        value = argument(number)
        shown, wide = _put(kind, value, types[used]), int(width or 0)
        return shown.ljust(abs(wide)) if left or wide < 0 else shown.rjust(wide)

    def argument(number: str | None) -> Any:
        nonlocal used
        used = int(number) if number else used + 1
        if used == 0:
            raise InvalidArgument("format specifies argument 0, but arguments are numbered from 1")
        if used > len(values):
            raise InvalidArgument("too few arguments for format()")
        return values[used - 1]

    return _PLACE.sub(put, pattern)


def _as_width(value: Any, sql_type: t.SqlType) -> int:
    if value is None or isinstance(sql_type, t.SmallInt | t.Integer):
        return value or 0
    try:
        return int(parse_value(format_value(value, sql_type), t.Integer()))
    except InvalidValue as error:
        raise InvalidText(error.message) from None


def _format_size(pattern: str, *values: Any) -> int:
    """How long the text can be: its places have widths, and may all be of the longest value."""
    places = list(_PLACE.finditer(pattern))
    longest = max((len(value) for value in values if isinstance(value, str)), default=100)
    widest = max((abs(value) for value in values if isinstance(value, int)), default=0)
    return len(pattern) + sum(_width(place[3], widest) + 2 * longest for place in places)


def _width(written: str, widest: int) -> int:
    return widest if written.startswith("*") else int(written or 0)


def _put(kind: str, value: Any, sql_type: t.SqlType) -> str:
    if value is None:
        if kind == "I":
            raise NullRefused("null values cannot be formatted as an SQL identifier")
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
    *(
        Function("parse_ident", (t.Text, *more), t.Array(_TEXT), _parse_ident, fallible=True)
        for more in ((), (t.Boolean,))
    ),
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
