"""Python values of SQL types.

| type | Python value |
|---|---|
| boolean, integers, floats | bool, int, float |
| numeric | Decimal, with the scale of the type; plain numeric: `Numeral`, with its own |
| text, varchar, char | str; char is padded with blanks to its length |
| bytea | bytes |
| date | datetime.date; `FarDate` outside years 1 to 9999 and for the infinities |
| time | datetime.time; `END_OF_DAY` for 24:00:00 |
| timestamp | naive datetime; `FarTimestamp` outside years 1 to 9999 and for the infinities |
| timestamptz | datetime in UTC; `FarTimestamp` likewise |
| interval | `Interval` |
| uuid | uuid.UUID |
| enum | `Label`: a str that knows its place (`noonmark.rows.label`) |
| jsonb | str: the document in canonical form (`noonmark.rows.jsonb`) |
| array, record | list, tuple |
| NULL of any type | None |

Law (one value, one form): a stored day has exactly one Python form. A `FarDate` that Python's date
could hold cannot be constructed; nor can a `FarTimestamp` that datetime could hold. So equality of
Python values is equality of stored values.

Days count from 1970-01-01, micros from 1970-01-01 00:00:00. The range is PostgreSQL's: from
4713-11-24 BC to the end of 5874897 for dates, and for timestamps to 294247-01-10 04:00:54.775806,
where 64 bits of microseconds since 1970 end (PostgreSQL counts from 2000: 30 years further).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from noonmark.errors import InvalidValue


class NotHeld(InvalidValue, id="not_held", sqlstate="0A000"):
    """A value that PostgreSQL's type holds, and that of Noonmark does not."""


DAY_MICROS = 86_400_000_000
_EPOCH_ORDINAL = 719_163
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO = dt.timedelta(microseconds=1)

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

DAYS_MIN, DAYS_MAX = -2_440_588, 2_145_042_905
MICROS_MIN, MICROS_MAX = DAYS_MIN * DAY_MICROS, INT64_MAX - 1
#: Where PostgreSQL's timestamps end: before 294277-01-01.
_THEIR_MICROS_END = 106_762_940 * DAY_MICROS

# What Python's date and datetime can hold.
NEAR_DAYS = (dt.date.min.toordinal() - _EPOCH_ORDINAL, dt.date.max.toordinal() - _EPOCH_ORDINAL)
NEAR_MICROS = (NEAR_DAYS[0] * DAY_MICROS, (NEAR_DAYS[1] + 1) * DAY_MICROS - 1)


@dataclass(frozen=True, slots=True, order=True)
class FarDate:
    """A day that `datetime.date` cannot hold; the int32 extremes are the infinities."""

    days: int

    def __post_init__(self) -> None:
        if self.days in (INT32_MIN, INT32_MAX):
            return
        if not DAYS_MIN <= self.days <= DAYS_MAX:
            raise InvalidValue(f"date out of range: {self.days} days since 1970-01-01")
        if NEAR_DAYS[0] <= self.days <= NEAR_DAYS[1]:
            raise InvalidValue(f"{self.days} days since 1970-01-01 is a datetime.date")


@dataclass(frozen=True, slots=True, order=True)
class FarTimestamp:
    """An instant that `datetime.datetime` cannot hold; the int64 extremes are the infinities."""

    micros: int

    def __post_init__(self) -> None:
        if self.micros in (INT64_MIN, INT64_MAX):
            return
        if MICROS_MAX < self.micros < _THEIR_MICROS_END:
            raise NotHeld("timestamps after 294247-01-10 04:00:54.775806 are not supported")
        if not MICROS_MIN <= self.micros <= MICROS_MAX:
            raise InvalidValue(f"timestamp out of range: {self.micros} microseconds since 1970")
        if NEAR_MICROS[0] <= self.micros <= NEAR_MICROS[1]:
            raise InvalidValue(f"{self.micros} microseconds since 1970 is a datetime.datetime")


@dataclass(frozen=True, slots=True)
class EndOfDay:
    """The time 24:00:00, which `datetime.time` cannot hold."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Months, days and microseconds; all three at their extremes are the infinities.

    Equality is by field: one day and 24 hours are different values, as they are in storage.
    """

    months: int = 0
    days: int = 0
    micros: int = 0

    def __post_init__(self) -> None:
        if not (
            INT32_MIN <= self.months <= INT32_MAX
            and INT32_MIN <= self.days <= INT32_MAX
            and INT64_MIN <= self.micros <= INT64_MAX
        ):
            raise InvalidValue(f"interval out of range: {self}")


DATE_INFINITY, DATE_NEG_INFINITY = FarDate(INT32_MAX), FarDate(INT32_MIN)
TIMESTAMP_INFINITY, TIMESTAMP_NEG_INFINITY = FarTimestamp(INT64_MAX), FarTimestamp(INT64_MIN)
INTERVAL_INFINITY = Interval(INT32_MAX, INT32_MAX, INT64_MAX)
INTERVAL_NEG_INFINITY = Interval(INT32_MIN, INT32_MIN, INT64_MIN)
END_OF_DAY = EndOfDay()


def identity(value: Any) -> Hashable:
    """What tells a value from every other of its type, as it is shown and stored.

    Python's equality does not: 0.0 equals -0.0, 1.0 equals 1.00, and NaN is not equal to itself.

    >>> identity(0.0) == identity(-0.0), identity(math.nan) == identity(float("nan"))
    (False, True)
    """
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
    if isinstance(value, Decimal):
        return value.as_tuple()
    if isinstance(value, tuple | list):
        return tuple(map(identity, value))
    hashable: Hashable = value
    return hashable


def days_of(value: dt.date | FarDate) -> int:
    """The stored form of a date."""
    if isinstance(value, FarDate):
        return value.days
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise InvalidValue(f"{value!r} is not a date")
    return value.toordinal() - _EPOCH_ORDINAL


def date_of(days: int) -> dt.date | FarDate:
    """The Python form of a stored date."""
    if NEAR_DAYS[0] <= days <= NEAR_DAYS[1]:
        return dt.date.fromordinal(days + _EPOCH_ORDINAL)
    return FarDate(days)


def micros_of_time(value: dt.time | EndOfDay) -> int:
    """The stored form of a time of day: microseconds since midnight."""
    if isinstance(value, EndOfDay):
        return DAY_MICROS
    if not isinstance(value, dt.time) or value.tzinfo is not None:
        raise InvalidValue(f"{value!r} is not a time without time zone")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def time_of(micros: int) -> dt.time | EndOfDay:
    """The Python form of a stored time of day."""
    if micros == DAY_MICROS:
        return END_OF_DAY
    if not 0 <= micros < DAY_MICROS:
        raise InvalidValue(f"time out of range: {micros} microseconds since midnight")
    return (_EPOCH + dt.timedelta(microseconds=micros)).time()


def micros_of_timestamp(value: dt.datetime | FarTimestamp) -> int:
    """The stored form of a timestamp without time zone."""
    if isinstance(value, FarTimestamp):
        return value.micros
    if not isinstance(value, dt.datetime) or value.tzinfo is not None:
        raise InvalidValue(
            f"{value!r} is not a timestamp without time zone",
            hint="Pass a datetime without tzinfo.",
        )
    return (value - _EPOCH) // _MICRO


def timestamp_of(micros: int) -> dt.datetime | FarTimestamp:
    """The Python form of a stored timestamp without time zone."""
    if NEAR_MICROS[0] <= micros <= NEAR_MICROS[1]:
        return _EPOCH + dt.timedelta(microseconds=micros)
    return FarTimestamp(micros)


def micros_of_timestamptz(value: dt.datetime | FarTimestamp) -> int:
    """The stored form of a timestamp with time zone, whatever the zone of `value`."""
    if isinstance(value, FarTimestamp):
        return value.micros
    if not isinstance(value, dt.datetime) or value.tzinfo is None:
        raise InvalidValue(
            f"{value!r} is not a timestamp with time zone", hint="Pass a datetime with tzinfo."
        )
    return (value - _EPOCH_UTC) // _MICRO


def timestamptz_of(micros: int) -> dt.datetime | FarTimestamp:
    """The Python form of a stored timestamp with time zone: in UTC."""
    if NEAR_MICROS[0] <= micros <= NEAR_MICROS[1]:
        return _EPOCH_UTC + dt.timedelta(microseconds=micros)
    return FarTimestamp(micros)


def interval_of(value: Interval | dt.timedelta) -> Interval:
    """An interval; a timedelta is its days and its microseconds."""
    if isinstance(value, Interval):
        return value
    if not isinstance(value, dt.timedelta):
        raise InvalidValue(f"{value!r} is not an interval")
    return Interval(0, value.days, value.seconds * 1_000_000 + value.microseconds)


_DECIMAL_BYTES = Decimal(1).__sizeof__()


def weight(value: Any) -> int:
    """About how many characters a value is long: of a number, digits and the places before them."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Decimal):
        return abs(value.adjusted()) + 2 * (value.__sizeof__() - _DECIMAL_BYTES)
    if isinstance(value, tuple | list):
        return len(value) + sum(map(weight, value))
    return 0
