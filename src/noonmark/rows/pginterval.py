"""Intervals as PostgreSQL writes them (IntervalStyle postgres) and reads them.

Law (round trip): ``parse_interval(format_interval(i)) == i``. Reading also takes unit words in any
order (``1 week 2 hours ago``), ``years-months``, a clock, a bare number of seconds, and ISO 8601
(``P1Y2M3DT4H5M6S``). A fraction of a unit spills into smaller units as PostgreSQL spills it: years
into months; months, weeks and days into days and time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from noonmark.errors import FieldOverflow, IntervalOverflow, InvalidDatetime, InvalidValue
from noonmark.rows import value as v
from noonmark.rows.pgtime import format_clock, round_micros

_SECOND, _MINUTE, _HOUR = 1_000_000, 60_000_000, 3_600_000_000
_MONTH_DAYS = 30


def format_interval(interval: v.Interval) -> str:
    """The text of an interval.

    >>> format_interval(v.Interval(14, -3, 4_000_000))
    '1 year 2 mons -3 days +00:00:04'
    """
    if interval in (v.INTERVAL_INFINITY, v.INTERVAL_NEG_INFINITY):
        return "infinity" if interval.months > 0 else "-infinity"
    years, months = divmod(abs(interval.months), 12)
    sign = -1 if interval.months < 0 else 1
    words: list[str] = []
    negative = False
    for count, unit in ((sign * years, "year"), (sign * months, "mon"), (interval.days, "day")):
        if count:
            plus = "+" if negative and count > 0 else ""
            words.append(f"{plus}{count} {unit}{'' if count == 1 else 's'}")
            negative = count < 0
    if interval.micros or not words:
        mark = "-" if interval.micros < 0 else "+" if negative else ""
        words.append(mark + format_clock(abs(interval.micros)))
    return " ".join(words)


_UNITS: dict[str, tuple[str, int]] = {}
#: Every word for a unit, and the one word that stands for all of them.
_NAMES: dict[str, str] = {}
for _names, _field, _scale in (
    ("microseconds microsecond usecs usec us", "micros", 1),
    ("milliseconds millisecond msecs msec ms", "micros", 1000),
    ("seconds second secs sec s", "micros", _SECOND),
    ("minutes minute mins min m", "micros", _MINUTE),
    ("hours hour hrs hr h", "micros", _HOUR),
    ("days day d", "days", 1),
    ("weeks week w", "days", 7),
    ("months month mons mon", "months", 1),
    ("years year yrs yr y", "months", 12),
    ("decades decade decs dec", "months", 120),
    ("centuries century cent c", "months", 1200),
    ("millennia millennium mils mil", "months", 12000),
):
    _UNITS.update(dict.fromkeys(_names.split(), (_field, _scale)))
    _NAMES.update(dict.fromkeys(_names.split(), _names.split()[1]))

_TOKEN = re.compile(
    r"\s*(?:(?P<clock>[+-]?\d+:\d{1,2}(?::\d{1,2})?(?:\.\d*)?)"
    r"|(?P<yearmonth>[+-]?\d+-\d{1,2})"
    r"|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))\s*(?P<unit>[a-z]+)?"
    r"|(?P<ago>ago)|@)\s*",
    re.IGNORECASE | re.ASCII,
)
_ISO = re.compile(
    r"P(?:([+-]?[\d.]+)Y)?(?:([+-]?[\d.]+)M)?(?:([+-]?[\d.]+)W)?(?:([+-]?[\d.]+)D)?"
    r"(?:T(?:([+-]?[\d.]+)H)?(?:([+-]?[\d.]+)M)?(?:([+-]?[\d.]+)S)?)?",
    re.ASCII,
)
_STARTS_CLOCK = re.compile(r"[+-]?\d+:", re.ASCII)
_ISO_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")


_ISO_CLOCK = re.compile(
    r"P(?P<years>[+-]?\d+)-(?P<months>\d+)-(?P<days>\d+)T(?P<clock>\d+:\d+:\d+(?:\.\d*)?)", re.ASCII
)
#: What a clock, and years and months with a dash, say at once.
_CLOCK_FIELDS, _YEAR_FIELDS = ("hour", "minute", "second"), ("year", "month")


class _Overflow(Exception):
    """A field is out of its range."""


@dataclass
class _Sum:
    """The fields while the text is being read; each may be said once."""

    months: int = 0
    days: int = 0
    micros: int = 0
    said: set[str] = field(default_factory=set)

    def say(self, *fields: str) -> None:
        """Note that fields are said; raises `ValueError` where one was already."""
        if self.said & set(fields):
            raise ValueError(fields)
        self.said.update(fields)

    def add(self, number: Fraction, unit: str) -> None:
        kind, scale = _UNITS[unit]
        if kind == "months" and scale > 1:
            self.months += round(number * scale)
            return
        whole = int(number * scale) if kind == "days" else int(number)
        fraction = number * scale - whole if kind == "days" else number - whole
        if kind == "months":
            self.months += whole
            days = fraction * _MONTH_DAYS
            self.days += int(days)
            fraction = days - int(days)
        elif kind == "days":
            self.days += whole
        else:
            self.micros += round(number * scale)
            return
        self.micros += round(fraction * v.DAY_MICROS)

    def interval(self, sign: int) -> v.Interval:
        days, micros = self.days, self.micros
        if not (v.INT32_MIN <= days <= v.INT32_MAX and v.INT64_MIN <= micros <= v.INT64_MAX):
            raise _Overflow
        try:
            return v.Interval(sign * self.months, sign * self.days, sign * self.micros)
        except InvalidValue:
            raise FieldOverflow("interval out of range") from None


#: Marks that say nothing, as PostgreSQL has it.
_IGNORED = re.compile(r"[!-*,;-?\[-`{-~]")


def parse_interval(text: str) -> v.Interval:
    """The interval that `text` stands for."""
    word = _IGNORED.sub(" ", text).strip()
    if word.lower() in ("infinity", "+infinity", "-infinity"):
        return v.INTERVAL_NEG_INFINITY if word[0] == "-" else v.INTERVAL_INFINITY
    total = _Sum()
    try:
        known = _parse_iso(word, total) or _parse_words(word, total)
        if known:
            return total.interval(-1 if "ago" in total.said else 1)
    except _Overflow:
        raise IntervalOverflow(f'interval field value out of range: "{text}"') from None
    except (KeyError, ValueError):
        pass
    raise InvalidDatetime(f'invalid input syntax for type interval: "{text}"')


def _parse_iso(text: str, total: _Sum) -> bool:
    clocked = _ISO_CLOCK.fullmatch(text)
    if clocked is not None:
        total.months = int(clocked["years"]) * 12 + int(clocked["months"])
        total.days, total.micros = int(clocked["days"]), _clock(clocked["clock"])
        return True
    match = _ISO.fullmatch(text)
    if match is None or not any(match.groups()):
        return False
    for number, unit in zip(match.groups(), _ISO_UNITS, strict=True):
        if number is not None:
            total.add(Fraction(number), unit)
    return True


def _parse_words(text: str, total: _Sum) -> bool:
    at, seen = 0, False
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or "ago" in total.said:
            return False
        at = match.end()
        if match["ago"]:
            total.say("ago")
        seen = seen or bool(match["clock"] or match["yearmonth"] or match["number"])
        _add_token(match, text[at:], total)
    return seen


def _add_token(match: re.Match[str], rest: str, total: _Sum) -> None:
    if match["clock"]:
        total.say(*_CLOCK_FIELDS)
        total.micros += _clock(match["clock"])
    elif match["yearmonth"]:
        total.say(*_YEAR_FIELDS)
        sign = -1 if match["yearmonth"][0] == "-" else 1
        years, months = match["yearmonth"].lstrip("+-").split("-")
        if int(months) > 11:
            raise _Overflow
        total.months += sign * (int(years) * 12 + int(months))
    elif match["number"]:
        # A number alone is seconds, but days when a clock follows: "1 02:03:04".
        alone = "day" if _STARTS_CLOCK.match(rest) else "second"
        if match["unit"] is None and alone == "second" and rest.strip().lower() not in ("", "ago"):
            raise ValueError(rest)
        unit = (match["unit"] or alone).lower()
        total.say(*([_NAMES[unit]] if unit in _NAMES else []))
        total.add(Fraction(match["number"]), unit)


def _clock(text: str) -> int:
    """Hours and minutes, perhaps seconds; with a fraction two numbers are minutes and seconds."""
    clock, point, fraction = text.lstrip("+-").partition(".")
    parts = clock.split(":")
    if len(parts) == 2:
        parts = ["0", *parts] if point else [*parts, "0"]
    hour, minute, whole = parts
    if int(minute) > 59 or int(whole) > 60:
        raise _Overflow
    micros = int(hour) * _HOUR + int(minute) * _MINUTE + int(whole) * _SECOND
    micros += round_micros(fraction)
    return -micros if text[0] == "-" else micros


def cut_interval(interval: v.Interval, unit: str) -> v.Interval:
    """An interval without the fields below a unit: ``interval '1.7' day`` is one day."""
    if unit == "second":
        return interval
    months = int(interval.months / 12) * 12 if unit == "year" else interval.months
    days = 0 if unit in ("year", "month") else interval.days
    size = {"hour": _HOUR, "minute": _MINUTE}.get(unit)
    micros = 0 if size is None else int(Fraction(interval.micros, size)) * size
    return v.Interval(months, days, micros)
