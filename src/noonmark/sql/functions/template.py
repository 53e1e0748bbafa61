"""to_char: dates and times by a template, as PostgreSQL writes them in English.

Known are the patterns of `_PATTERNS`, text in double quotes, and everything that is not a letter.
Another letter is refused with `InvalidArgument`: PostgreSQL has more patterns, and copies what is
none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.sql.functions import instant as i
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.instant import Fields

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _hour(fields: Fields) -> int:
    return fields.clock // i.HOUR


def _half(fields: Fields) -> str:
    return "PM" if _hour(fields) >= 12 else "AM"


_PATTERNS: dict[str, Callable[[Fields], str]] = {
    "YYYY": lambda f: f"{abs(i.shown_year(f.year)):04}",
    "IYYY": lambda f: f"{abs(i.shown_year(f.iso_week[0])):04}",
    "YY": lambda f: f"{abs(i.shown_year(f.year)) % 100:02}",
    "MM": lambda f: f"{f.month:02}",
    "Month": lambda f: f"{_MONTHS[f.month - 1]:9}",
    "MONTH": lambda f: f"{_MONTHS[f.month - 1].upper():9}",
    "month": lambda f: f"{_MONTHS[f.month - 1].lower():9}",
    "Mon": lambda f: _MONTHS[f.month - 1][:3],
    "MON": lambda f: _MONTHS[f.month - 1][:3].upper(),
    "mon": lambda f: _MONTHS[f.month - 1][:3].lower(),
    "DDD": lambda f: f"{f.doy:03}",
    "DD": lambda f: f"{f.day:02}",
    "Day": lambda f: f"{_DAYS[f.isodow - 1]:9}",
    "DAY": lambda f: f"{_DAYS[f.isodow - 1].upper():9}",
    "day": lambda f: f"{_DAYS[f.isodow - 1].lower():9}",
    "Dy": lambda f: _DAYS[f.isodow - 1][:3],
    "DY": lambda f: _DAYS[f.isodow - 1][:3].upper(),
    "dy": lambda f: _DAYS[f.isodow - 1][:3].lower(),
    "ID": lambda f: str(f.isodow),
    "IW": lambda f: f"{f.iso_week[1]:02}",
    "WW": lambda f: f"{(f.doy - 1) // 7 + 1:02}",
    "D": lambda f: str(f.isodow % 7 + 1),
    "Q": lambda f: str((f.month - 1) // 3 + 1),
    "HH24": lambda f: f"{_hour(f):02}",
    "HH12": lambda f: f"{(_hour(f) + 11) % 12 + 1:02}",
    "HH": lambda f: f"{(_hour(f) + 11) % 12 + 1:02}",
    "MI": lambda f: f"{f.clock // i.MINUTE % 60:02}",
    "SS": lambda f: f"{f.clock // i.SECOND % 60:02}",
    "MS": lambda f: f"{f.clock // 1000 % 1000:03}",
    "US": lambda f: f"{f.clock % i.SECOND:06}",
    "AM": _half,
    "PM": _half,
    "am": lambda f: _half(f).lower(),
    "pm": lambda f: _half(f).lower(),
}
_WORDS = "|".join(sorted(map(re.escape, _PATTERNS), key=len, reverse=True))
#: Quotes that are not closed go on to the end; a backslash stands before what is meant itself.
_QUOTED = r'"(?P<quoted>(?:\\.|[^"\\]|\\$)*)(?:"|$)'
_TOKEN = re.compile(
    rf'{_QUOTED}|(?P<pattern>{_WORDS})|(?P<letter>[A-Za-z]+)|\\(?P<sign>")|(?P<other>.)', re.DOTALL
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def _write(fields: Fields, template: str) -> str:
    parts = []
    for token in _TOKEN.finditer(template):
        if token["letter"]:
            raise InvalidArgument(f'the template pattern "{token["letter"]}" is not supported')
        if token["pattern"]:
            parts.append(_PATTERNS[token["pattern"]](fields))
        elif token["quoted"] is not None:
            parts.append(_ESCAPED.sub(r"\1", token["quoted"]))
        else:
            parts.append(token["sign"] or token["other"])
    return "".join(parts)


def _to_char(micros_of: Callable[[Any], int]) -> Callable[[i.Stamp, str], str | None]:
    def act(stamp: i.Stamp, template: str) -> str | None:
        if i.is_infinite(stamp) or not template:
            return None
        return _write(Fields.of(micros_of(stamp)), template)

    return act


TABLE = tuple(
    Function(
        "to_char", (kind, t.Text), t.Text(), _to_char(micros_of), gives_null=True, fallible=True
    )
    for kind, micros_of in (
        (t.Timestamp, v.micros_of_timestamp),
        (t.TimestampTz, v.micros_of_timestamptz),
    )
)
