"""Texts of intervals, read by PostgreSQL's own rules.

The fields (`pgfields.fields_of`) are read from the last to the first, so that a unit is known
before its number. What these rules cannot read may be of ISO 8601 (``P1Y2M3DT4H5M6S``). A fraction
of a unit spills into smaller ones: of years into months; of months, weeks and days into days and
time. Fractions are floats, and rounded as PostgreSQL rounds them.
"""

from __future__ import annotations

import math
import re

from noonmark.errors import FieldOverflow
from noonmark.rows import value as v
from noonmark.rows.pg.fields import WORDS, Field, Unreadable, fraction

_SECOND, _MINUTE, _HOUR = 1_000_000, 60_000_000, 3_600_000_000
_CLOCK = {"micros": 1, "millis": 1000, "second": _SECOND, "minute": _MINUTE, "hour": _HOUR}
_DAYS = {"day": 1, "week": 7}
_YEARS = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
_SECONDS = frozenset(("second", "millis", "micros"))
_TIME = frozenset(("hour", "minute", *_SECONDS))
_TABLE = """
    micros us usec usecs useconds microsecond microseconds
    millis ms msec msecs mseconds millisecond milliseconds
    second s sec secs second seconds
    minute m min mins minute minutes mm
    hour h hr hrs hour hours
    day d day days
    week w week weeks
    month mon mons month months
    year y yr yrs year years
    decade dec decs decade decades
    century c cent century centuries
    millennium mil mils millennium millennia
    quarter qtr quarter
    zone timezone timezone_h timezone_m
    other dow doy isodow isoyear j jd julian
"""
_LETTERS = 10
"""So many letters of a word are looked at."""


def _units(table: str) -> dict[str, str]:
    rows = [line.split() for line in table.strip().splitlines()]
    return {word[:_LETTERS]: names[0] for names in rows for word in names[1:]}


_UNITS = _units(_TABLE)
_CLOCK_TEXT = re.compile(r"(\d+):(\d*)(?:\.(\d*)|:(\d*)(?:\.(\d*))?)?", re.ASCII)
_NUMBER_TEXT = re.compile(r"([+-]?\d*)(?:(-)([+-]?\d*)|(\.)(.*)|)(.*)", re.ASCII | re.DOTALL)
_ISO_NUMBER = re.compile(r"(?=[-\d.])[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_ISO_DATE = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME = {"H": "hour", "M": "minute", "S": "second"}


class Span:
    """An interval while its text is read."""

    def __init__(self) -> None:
        self.years = self.months = self.days = self.micros = 0
        self.infinite = 0

    def add(self, unit: str, whole: int, rest: float) -> None:
        """So many of a unit, and a fraction of one."""
        if unit in _CLOCK:
            self.micros = _held(self.micros + whole * _CLOCK[unit], v.INT64_MIN, v.INT64_MAX)
            self._add_time(rest, _CLOCK[unit])
            return
        if unit not in _DAYS and unit not in _YEARS and unit != "month":
            raise Unreadable
        _held(whole)
        if unit in _DAYS:
            self.days = _held(self.days + _held(whole * _DAYS[unit]))
            self._add_days(rest, _DAYS[unit])
        elif unit == "month":
            self.months = _held(self.months + whole)
            self._add_days(rest, 30)
        else:
            self.years = _held(self.years + _held(whole * _YEARS[unit]))
            self.months = _held(self.months + round(rest * _YEARS[unit] * 12))

    def _add_days(self, rest: float, scale: int) -> None:
        days = math.trunc(rest * scale)
        self.days = _held(self.days + days)
        self._add_time(rest * scale - days, v.DAY_MICROS)

    def _add_time(self, rest: float, scale: int) -> None:
        exact = rest * scale
        micros = math.trunc(exact)
        beyond = exact - micros
        micros += 1 if beyond > 0.5 else -1 if beyond < -0.5 else 0
        self.micros = _held(self.micros + micros, v.INT64_MIN, v.INT64_MAX)

    def negate(self) -> None:
        """The other way."""
        self.years, self.months, self.days = (
            _held(-each) for each in (self.years, self.months, self.days)
        )
        self.micros = _held(-self.micros, v.INT64_MIN, v.INT64_MAX)


def _held(number: int, least: int = v.INT32_MIN, most: int = v.INT32_MAX) -> int:
    if not least <= number <= most:
        raise Unreadable(FieldOverflow)
    return number


def read_fields(fields: list[Field], alone: str) -> Span:
    """The interval of a text's fields; a number without a unit at the end is of `alone`."""
    span, said = Span(), set[str]()
    unit, expects, ago = "", False, False
    for at in range(len(fields) - 1, -1, -1):
        kind, value = fields[at]
        last = at == len(fields) - 1
        if kind in ("word", "special"):
            if expects:
                raise Unreadable
            given, unit, expects, is_ago = _word(value, unit, last, span)
            ago = ago or is_ago
        else:
            given, unit = _field(kind, value, unit or alone, span)
            expects = False
        if given & said:
            raise Unreadable
        said |= given
    if not said or expects:
        raise Unreadable
    if ago:
        span.negate()
    return span


def _word(value: str, unit: str, last: bool, span: Span) -> tuple[set[str], str, bool, bool]:
    """What a word gives; the unit from then on; whether a number must come; whether it is ago."""
    if value == "ago":
        if not last:
            raise Unreadable
        return set(), "ago", False, True
    found = _UNITS.get(value[:_LETTERS])
    if found is not None:
        return set(), found, True, False
    kind, _ = WORDS.get(value, ("", 0))
    if kind == "ignored":
        return set(), unit, False, False
    if kind != "constant" or value == "epoch" or not last:
        raise Unreadable
    span.infinite = -1 if value[0] == "-" else 1
    return {*_TIME, "year", "month", "day"}, unit, False, False


def _field(kind: str, value: str, unit: str, span: Span) -> tuple[set[str], str]:
    """What a field gives, and the unit of a number before it."""
    if kind == "time" or (kind == "zone" and ":" in value):
        try:
            micros = _clock(value.lstrip("+-"))
        except Unreadable:
            if kind == "time":
                raise
        else:
            span.micros = -micros if value[0] == "-" else micros
            return set(_TIME), "day"
    whole, rest, unit = _number(value, unit)
    span.add(unit, whole, rest)
    given = set(_SECONDS) if unit == "second" and rest else {unit}
    return given, "day" if unit == "hour" else unit


def _clock(text: str) -> int:
    """Hours and minutes, perhaps seconds; two numbers with a point are minutes and seconds."""
    match = _CLOCK_TEXT.fullmatch(text)
    if match is None:
        raise Unreadable
    hour, minute, second = (int(match[at] or 0) for at in (1, 2, 4))
    if match[3] is not None:
        hour, minute, second = 0, hour, minute
    micros = fraction(match[3] or match[5] or "")
    if minute > 59 or second > 60 or hour > v.INT64_MAX:
        raise Unreadable(FieldOverflow)
    total = hour * _HOUR + minute * _MINUTE + second * _SECOND + micros
    return _held(total, v.INT64_MIN, v.INT64_MAX)


def _number(text: str, unit: str) -> tuple[int, float, str]:
    """A number and its fraction, or years and months with a dash."""
    match = _NUMBER_TEXT.fullmatch(text)
    assert match is not None
    whole = _held(int(match[1].strip("+") or 0) if match[1] != "-" else 0, v.INT64_MIN, v.INT64_MAX)
    sign = -1 if text[0] == "-" else 1
    if match[2]:
        months = int(match[3].strip("+") or 0) if match[3] != "-" else 0
        if not 0 <= months < 12:
            raise Unreadable(FieldOverflow)
        if match[6]:
            raise Unreadable
        return whole * 12 + sign * months, 0.0, "month"
    if match[4]:
        digits = match[5]
        if digits and not digits.isdigit():
            raise Unreadable
        return whole, sign * float(f"0.{digits or 0}"), unit
    if match[6]:
        raise Unreadable
    return whole, 0.0, unit


class _Iso:
    """A text of ISO 8601, with a place in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1

    def number(self) -> tuple[int, float, str]:
        """A number, its fraction, and the letter behind it."""
        match = _ISO_NUMBER.match(self.text, self.at)
        if match is None:
            raise Unreadable
        value = float(match[0])
        if abs(value) > 1e15:
            raise Unreadable(FieldOverflow)
        self.at = match.end()
        return math.trunc(value), value - math.trunc(value), self.text[self.at : self.at + 1]


def read_iso(text: str) -> Span:
    """The interval of a text of ISO 8601."""
    if len(text) < 2 or text[0] != "P":
        raise Unreadable
    span, iso, dated, fresh = Span(), _Iso(text), True, True
    while iso.at < len(text):
        if text[iso.at] == "T":
            iso.at, dated, fresh = iso.at + 1, False, True
            continue
        start = iso.at
        whole, rest, letter = iso.number()
        units = _ISO_DATE if dated else _ISO_TIME
        if letter in units and letter:
            span.add(units[letter], whole, rest)
            iso.at, fresh = iso.at + 1, False
            continue
        digits = text[start:].removeprefix("-")
        width = len(digits) - len(digits.lstrip("0123456789"))
        ends = letter == "" or (dated and letter == "T")
        if ends and width == (8 if dated else 6) and fresh:
            _together(span, whole, rest, dated)
        elif fresh and (ends or letter == ("-" if dated else ":")):
            _marked(span, iso, whole, rest, dated)
        else:
            raise Unreadable
        if not dated:
            if iso.at < len(text):
                raise Unreadable
            break
    return span


def _together(span: Span, whole: int, rest: float, dated: bool) -> None:
    """The alternative format without marks: yyyymmdd, hhmmss."""
    size = abs(whole)
    sign = -1 if whole < 0 else 1
    parts = (size // 10000 * sign, size // 100 % 100 * sign, size % 100 * sign)
    for unit, part in zip(
        ("year", "month", "day") if dated else ("hour", "minute", "second"), parts, strict=True
    ):
        span.add(unit, part, 0.0)
    span.add("day" if dated else "micros", 0, rest)


def _marked(span: Span, iso: _Iso, whole: int, rest: float, dated: bool) -> None:
    """The alternative format with marks: yyyy-mm-dd, hh:mm:ss; what is behind may be left out."""
    units = ("year", "month", "day") if dated else ("hour", "minute", "second")
    mark = "-" if dated else ":"
    for unit in units:
        span.add(unit, whole, rest)
        letter = iso.text[iso.at : iso.at + 1]
        if letter != mark or unit == units[-1]:
            break
        iso.at += 1
        whole, rest, _ = iso.number()
    if iso.text[iso.at : iso.at + 1] not in (("", "T") if dated else ("",)):
        raise Unreadable
