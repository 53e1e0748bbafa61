"""Intervals as PostgreSQL writes them (IntervalStyle postgres) and reads them.

Law (round trip): ``parse_interval(format_interval(i)) == i``. Reading takes every form that
PostgreSQL reads (`rows.pgspan`).
"""

from __future__ import annotations

from fractions import Fraction

from noonmark.errors import FieldOverflow, IntervalOverflow, InvalidDatetime, InvalidValue
from noonmark.rows import value as v
from noonmark.rows.pg.fields import Unreadable, fields_of
from noonmark.rows.pg.spans import read_fields, read_iso
from noonmark.rows.pg.times import format_clock

_MINUTE, _HOUR = 60_000_000, 3_600_000_000


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


#: PostgreSQL's own buffer for them.
_LENGTH_MAX = 255


def parse_interval(text: str, alone: str = "second") -> v.Interval:
    """The interval that `text` stands for; a number without a unit is of `alone`."""
    try:
        try:
            span = read_fields(fields_of(text, _LENGTH_MAX), alone)
        except Unreadable as error:
            if error.kind is not InvalidDatetime:
                raise
            span = read_iso(text)
    except Unreadable as error:
        if error.kind is FieldOverflow:
            raise IntervalOverflow(f'interval field value out of range: "{text}"') from None
        raise InvalidDatetime(f'invalid input syntax for type interval: "{text}"') from None
    if span.infinite:
        return v.INTERVAL_INFINITY if span.infinite > 0 else v.INTERVAL_NEG_INFINITY
    try:
        return v.Interval(span.years * 12 + span.months, span.days, span.micros)
    except InvalidValue:
        raise FieldOverflow("interval out of range") from None


def cut_interval(interval: v.Interval, unit: str) -> v.Interval:
    """An interval without the fields below a unit: ``interval '1.7' day`` is one day."""
    infinite = interval in (v.INTERVAL_INFINITY, v.INTERVAL_NEG_INFINITY)
    if infinite or unit == "second":
        return interval
    months = int(interval.months / 12) * 12 if unit == "year" else interval.months
    days = 0 if unit in ("year", "month") else interval.days
    size = {"hour": _HOUR, "minute": _MINUTE}.get(unit)
    micros = 0 if size is None else int(Fraction(interval.micros, size)) * size
    return v.Interval(months, days, micros)
