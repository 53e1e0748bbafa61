"""Days and microseconds behind dates and timestamps: what the calendar functions count in.

Law: every function of this module maps a value in range to a value in range, or raises
`DatetimeOutOfRange`. The time zone is UTC wherever one is needed: a query means the same for
every session.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from noonmark.errors import DatetimeOutOfRange, InvalidValue
from noonmark.rows import value as v
from noonmark.rows.calendar import civil_from_days, days_from_civil, days_in_month
from noonmark.sql.functions.errors import NotHeldHere

DAY = v.DAY_MICROS
HOUR, MINUTE, SECOND = 3_600_000_000, 60_000_000, 1_000_000

Stamp = dt.datetime | v.FarTimestamp
Date = dt.date | v.FarDate


def _in_range(kind: str, make: Callable[[int], Any], count: int) -> Any:
    try:
        return make(count)
    except InvalidValue:
        raise DatetimeOutOfRange(f"{kind} out of range") from None


def date(days: int) -> Date:
    """The date of a day's number; the infinities are not made here."""
    if not v.DAYS_MIN <= days <= v.DAYS_MAX:
        raise DatetimeOutOfRange("date out of range")
    return v.date_of(days)


def timestamp(micros: int) -> Stamp:
    """The timestamp of a count of microseconds."""
    return _held(v.timestamp_of, micros)


def timestamptz(micros: int) -> Stamp:
    """The instant of a count of microseconds."""
    return _held(v.timestamptz_of, micros)


def _held(make: Callable[[int], Stamp], micros: int) -> Stamp:
    if micros in (v.INT64_MIN, v.INT64_MAX):
        raise DatetimeOutOfRange("timestamp out of range")  # a count is no infinity
    try:
        return make(micros)
    except v.NotHeld as error:
        raise NotHeldHere(error.message) from None
    except InvalidValue:
        raise DatetimeOutOfRange("timestamp out of range") from None


def interval(months: int, days: int, micros: int) -> v.Interval:
    """An interval in range, and not one of the infinities."""
    result: v.Interval = _in_range("interval", lambda _: v.Interval(months, days, micros), 0)
    if result in (v.INTERVAL_INFINITY, v.INTERVAL_NEG_INFINITY):
        raise DatetimeOutOfRange("interval out of range")
    return result


def is_infinite(value: Any) -> bool:
    """Whether a date, timestamp or interval is one of the infinities."""
    return value in (
        v.DATE_INFINITY,
        v.DATE_NEG_INFINITY,
        v.TIMESTAMP_INFINITY,
        v.TIMESTAMP_NEG_INFINITY,
        v.INTERVAL_INFINITY,
        v.INTERVAL_NEG_INFINITY,
    )


def add_months(days: int, months: int) -> int:
    """The day so many months later, moved back to the last day of a shorter month."""
    year, month, day = civil_from_days(days)
    year, month = divmod(year * 12 + month - 1 + months, 12)
    return days_from_civil(year, month + 1, min(day, days_in_month(year, month + 1)))


def add_interval(micros: int, by: v.Interval) -> int:
    """Months first, then days, then time."""
    days, clock = divmod(micros, DAY)
    if by.months:
        days = add_months(days, by.months)
    return (days + by.days) * DAY + clock + by.micros


@dataclass(frozen=True, slots=True)
class Fields:
    """A point of the calendar, taken apart."""

    days: int
    year: int
    month: int
    day: int
    clock: int  # microseconds since midnight

    @classmethod
    def of(cls, micros: int) -> Fields:
        """The fields of a count of microseconds."""
        days, clock = divmod(micros, DAY)
        return cls(days, *civil_from_days(days), clock)

    @property
    def isodow(self) -> int:
        """Monday is 1, Sunday 7."""
        return (self.days + 3) % 7 + 1

    @property
    def doy(self) -> int:
        """The day of the year, from 1."""
        return self.days - days_from_civil(self.year, 1, 1) + 1

    @property
    def iso_week(self) -> tuple[int, int]:
        """ISO 8601's year and week: those of the week's Thursday."""
        thursday = self.days - self.isodow + 4
        year = civil_from_days(thursday)[0]
        return year, (thursday - days_from_civil(year, 1, 1)) // 7 + 1


def shown_year(year: int) -> int:
    """There is no year 0: 1 BC is -1."""
    return year if year > 0 else year - 1
