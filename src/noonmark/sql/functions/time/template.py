"""to_char of dates, times and intervals by a template, as PostgreSQL writes them in English.

A template is a sequence of nodes. A node is a pattern of `_PATTERNS`, with FM or TM before it and
TH, th or SP behind it; or text that stands for itself: what is in double quotes, a character behind
a backslash there, and everything that is no pattern. Of the patterns that begin alike the longest
is meant.

An interval has the same fields with signs; it has no weekday, no era and no name of a month.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from noonmark.errors import InvalidDatetimeText
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.calendar import days_from_civil
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.number.number_pattern import ordinal
from noonmark.sql.functions.number.number_template import TABLE as NUMBERS
from noonmark.sql.functions.time import instant as i
from noonmark.sql.functions.time.instant import Fields

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
JULIAN_1970 = 2_440_588


@dataclass(frozen=True, slots=True)
class _Moment:
    """What a template can ask of; `date` is None of an interval."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    micros: int
    doy: int
    date: Fields | None
    zone: str = ""

    @property
    def known(self) -> Fields:
        """Of what only a date has."""
        if self.date is None:
            raise InvalidDatetimeText("invalid format specification for an interval value")
        return self.date

    def shown(self, year: int) -> int:
        """A year without its era."""
        return year if self.date is None or year > 0 else 1 - year

    @property
    def days(self) -> int:
        """Days since 1970, also of an interval's fields."""
        if self.date is not None:
            return self.date.days
        return days_from_civil(self.year, self.month or 1, self.day) - (31 if not self.month else 0)

    @property
    def iso(self) -> tuple[int, int, int]:
        """ISO 8601's year, week, and day of that year."""
        fields = Fields.of(self.days * i.DAY)
        year, week = fields.iso_week
        return year, week, (week - 1) * 7 + fields.isodow


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of a template: text, or a pattern with what stands around it."""

    text: str
    pattern: str = ""
    fills: bool = False  # FM
    local: bool = False  # TM
    ordinal: str = ""  # TH or th
    quoted: bool = False


def _padded(width: int) -> Callable[[int, Node], str]:
    """Digits with zeros, and one place more where there is a sign."""

    def act(number: int, node: Node) -> str:
        return str(number) if node.fills else f"{number:0{width + (number < 0)}}"

    return act


def _plain(number: int, _: Node) -> str:
    return str(number)


_two, _three, _four = _padded(2), _padded(3), _padded(4)


def _remainder(number: int, by: int) -> int:
    return number % by if number >= 0 else -(-number % by)


def _half_day(hour: int) -> int:
    return _remainder(hour, 12) or 12


def _century(moment: _Moment) -> int:
    year = moment.year
    if moment.date is None:
        return year // 100 if year >= 0 else -(-year // 100)
    return (year - 1) // 100 + 1 if year > 0 else -(-year // 100) - 1


def _comma_year(moment: _Moment, _: Node) -> str:
    year = moment.shown(moment.year)
    thousands = year // 1000 if year >= 0 else -(-year // 1000)
    return f"{thousands},{year - thousands * 1000:03}"


Number = tuple[Callable[[_Moment], int], Callable[[int, Node], str]]


def _fraction(digits: int) -> Number:
    """So many digits of the seconds behind the point."""
    return (lambda m: int(m.micros / 10 ** (6 - digits))), (lambda n, _: f"{n:0{digits}}")


#: Patterns of numbers: the number, and how it is written.
_NUMBERS: dict[str, Number] = {
    "HH24": (lambda m: m.hour, _two),
    "HH12": (lambda m: _half_day(m.hour), _two),
    "HH": (lambda m: _half_day(m.hour), _two),
    "MI": (lambda m: m.minute, _two),
    "SS": (lambda m: m.second, _two),
    "MS": (lambda m: int(m.micros / 1000), lambda n, _: f"{n:03}"),
    "US": (lambda m: m.micros, lambda n, _: f"{n:06}"),
    "SSSSS": (lambda m: m.hour * 3600 + m.minute * 60 + m.second, _plain),
    "SSSS": (lambda m: m.hour * 3600 + m.minute * 60 + m.second, _plain),
    "MM": (lambda m: m.month, _two),
    "DDD": (lambda m: m.doy, lambda n, node: str(n) if node.fills else f"{n:03}"),
    "IDDD": (lambda m: m.iso[2], lambda n, node: str(n) if node.fills else f"{n:03}"),
    "DD": (lambda m: m.day, lambda n, node: str(n) if node.fills else f"{n:02}"),
    "D": (lambda m: m.known.isodow % 7 + 1, _plain),
    "ID": (lambda m: m.known.isodow, _plain),
    "WW": (lambda m: int((m.doy - 1) / 7) + 1, lambda n, node: str(n) if node.fills else f"{n:02}"),
    "IW": (lambda m: m.iso[1], lambda n, node: str(n) if node.fills else f"{n:02}"),
    "W": (lambda m: int((m.day - 1) / 7) + 1, _plain),
    "CC": (_century, _two),
    "YYYY": (lambda m: m.shown(m.year), _four),
    "YYY": (lambda m: _remainder(m.shown(m.year), 1000), _three),
    "YY": (lambda m: _remainder(m.shown(m.year), 100), _two),
    "Y": (lambda m: _remainder(m.shown(m.year), 10), _plain),
    "I": (lambda m: _remainder(m.shown(m.iso[0]), 10), _plain),
    "J": (lambda m: m.days + JULIAN_1970, _plain),
    **{f"FF{digits}": _fraction(digits) for digits in range(1, 7)},
}


def _name(names: tuple[str, ...], at: int, node: Node, width: int) -> str:
    name = names[at]
    name = name[:3] if width == 3 else name
    if node.pattern.isupper():
        name = name.upper()
    elif node.pattern.islower():
        name = name.lower()
    return name if node.fills or node.local or width == 3 else f"{name:9}"


def _month_name(moment: _Moment, node: Node) -> str:
    return _name(MONTHS, moment.known.month - 1, node, 3 if len(node.pattern) == 3 else 9)


def _day_name(moment: _Moment, node: Node) -> str:
    return _name(DAYS, moment.known.isodow - 1, node, 3 if len(node.pattern) == 2 else 9)


def _either(word: str, node: Node) -> str:
    """A word of two letters, with points where the pattern has them, in its case."""
    written = f"{word[0]}.{word[1]}." if "." in node.pattern else word
    return written if node.pattern.isupper() else written.lower()


def _noon(moment: _Moment, node: Node) -> str:
    return _either("PM" if _remainder(moment.hour, 24) >= 12 else "AM", node)


def _era(moment: _Moment, node: Node) -> str:
    return _either("BC" if moment.known.year <= 0 else "AD", node)


def _quarter(moment: _Moment, node: Node) -> str:
    if not moment.month:
        return ""
    number = int((moment.month - 1) / 3) + 1
    return str(number) + (ordinal(str(number), node.ordinal) if node.ordinal else "")


def _roman(moment: _Moment, node: Node) -> str:
    if not moment.month and not moment.year:
        return ""
    if moment.month == 0:
        at = 11 if moment.year >= 0 else 0
    else:
        at = moment.month - 1 if moment.month > 0 else 12 + moment.month
    text = ROMAN[at] if node.pattern.isupper() else ROMAN[at].lower()
    return text if node.fills else f"{text:4}"


def _zone(moment: _Moment, node: Node) -> str:
    zone = moment.zone if moment.known else ""
    return zone if node.pattern.isupper() else zone.lower()


def _iso_year(digits: int) -> Callable[[_Moment, Node], str]:
    """The last digits of ISO 8601's year, as many places as the year itself would have."""

    def act(moment: _Moment, node: Node) -> str:
        number = _remainder(moment.shown(moment.iso[0]), 10**digits if digits < 4 else 10**9)
        width = digits + (moment.shown(moment.year) < 0)
        return str(number) if node.fills else f"{number:0{width}}"

    return act


#: Patterns of words, and numbers that are written in a way of their own.
_WORDS: dict[str, Callable[[_Moment, Node], str]] = {
    **dict.fromkeys(("MONTH", "MON"), _month_name),
    **dict.fromkeys(("DAY", "DY"), _day_name),
    **dict.fromkeys(("A.M.", "P.M.", "AM", "PM"), _noon),
    **dict.fromkeys(("A.D.", "B.C.", "AD", "BC"), _era),
    "Q": _quarter,
    "RM": _roman,
    "Y,YYY": _comma_year,
    **{name: _iso_year(len(name)) for name in ("IYYY", "IYY", "IY")},
    "TZ": _zone,
    "TZH": lambda m, _: "+00" if m.known else "",
    "TZM": lambda m, _: "00" if m.known else "",
    "OF": lambda m, node: ("+0" if node.fills else "+00") if m.known else "",
    "FX": lambda *_: "",
}
_MIXED = ("Month", "Mon", "Day", "Dy")
_PATTERNS = sorted(
    {*_NUMBERS, *_WORDS, *map(str.lower, (*_NUMBERS, *_WORDS)), *_MIXED},
    key=len,
    reverse=True,
)


@lru_cache(maxsize=256)
def nodes_of(template: str) -> tuple[Node, ...]:
    """The pieces of a template."""
    nodes, at = [], 0
    while at < len(template):
        before = template[at : at + 2].upper() if template[at : at + 2] in _BEFORE else ""
        at += len(before)
        pattern = next((p for p in _PATTERNS if template.startswith(p, at)), None)
        if pattern is not None:
            at += len(pattern)
            behind = template[at : at + 2] if template[at : at + 2] in _BEHIND else ""
            at += len(behind)
            order = behind if behind != "SP" else ""
            nodes.append(Node("", pattern, before == "FM", before == "TM", order))
        elif template[at : at + 1] == '"':
            text, at = _quoted(template, at + 1)
            nodes.append(Node(text, quoted=True))
        elif at < len(template):
            at += template.startswith('\\"', at)
            nodes.append(Node(template[at]))
            at += 1
    return tuple(nodes)


_BEFORE = ("FM", "fm", "TM", "tm")
_BEHIND = ("TH", "th", "SP")


def _quoted(template: str, at: int) -> tuple[str, int]:
    """Text up to the closing quote, or to the end, and where the template goes on."""
    text = ""
    while at < len(template):
        if template[at] == '"':
            return text, at + 1
        if template[at] == "\\" and at + 1 < len(template):
            at += 1
        text += template[at]
        at += 1
    return text, at


def _write(moment: _Moment, template: str) -> str:
    parts = []
    for node in nodes_of(template):
        if not node.pattern:
            parts.append(node.text)
            continue
        upper = node.pattern.upper()
        if upper in _WORDS:
            text = _WORDS[upper](moment, node)
            th = node.ordinal if "Y" in upper and "D" not in upper else ""
        else:
            number, written = _NUMBERS[upper]
            text, th = written(number(moment), node), node.ordinal
        parts.append(text + (ordinal(text, th) if th else ""))
    return "".join(parts)


def _of_stamp(zone: str, micros_of: Callable[[Any], int]) -> Callable[[i.Stamp, str], str | None]:
    def act(stamp: i.Stamp, template: str) -> str | None:
        if i.is_infinite(stamp) or not template:
            return None
        f = Fields.of(micros_of(stamp))
        seconds, micros = divmod(f.clock, i.SECOND)
        clock = (seconds // 3600, seconds // 60 % 60, seconds % 60)
        return _write(_Moment(f.year, f.month, f.day, *clock, micros, f.doy, f, zone), template)

    return act


def _of_interval(interval: v.Interval, template: str) -> str | None:
    if i.is_infinite(interval) or not template:
        return None
    sign = -1 if interval.micros < 0 else 1
    seconds, micros = divmod(abs(interval.micros), i.SECOND)
    clock = (sign * (seconds // 3600), sign * (seconds // 60 % 60), sign * (seconds % 60))
    months = abs(interval.months)
    turn = -1 if interval.months < 0 else 1
    year, month = turn * (months // 12), turn * (months % 12)
    doy = interval.months * 30 + interval.days
    moment = _Moment(year, month, interval.days, *clock, sign * micros, doy, None)
    return _write(moment, template)


def _to_char(kind: type[t.SqlType], meaning: Callable[..., str | None]) -> Function:
    parameters = (kind, t.Text)
    return Function("to_char", parameters, t.Text(), meaning, gives_null=True, fallible=True)


TABLE = (
    _to_char(t.Timestamp, _of_stamp("", v.micros_of_timestamp)),
    _to_char(t.TimestampTz, _of_stamp("UTC", v.micros_of_timestamptz)),
    _to_char(t.Interval, _of_interval),
    *NUMBERS,
)
