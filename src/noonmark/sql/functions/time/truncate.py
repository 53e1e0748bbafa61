"""date_trunc and date_bin: a time moved back to the start of its unit, or of its bin."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from noonmark.errors import DatetimeOutOfRange
from noonmark.rows import value as v
from noonmark.rows.calendar import days_from_civil
from noonmark.sql.functions.errors import NotHeldHere
from noonmark.sql.functions.time import instant as i
from noonmark.sql.functions.time.instant import DAY, Fields
from noonmark.sql.functions.time.unit import no_unit, unit_of_length

CLOCK_UNITS = {
    "microseconds": 1,
    "milliseconds": 1000,
    "second": i.SECOND,
    "minute": i.MINUTE,
    "hour": i.HOUR,
    "day": DAY,
}
YEAR_UNITS = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}


def _micros(stamp: i.Stamp) -> int:
    if isinstance(stamp, dt.datetime):
        zoned = stamp.tzinfo is not None
        return v.micros_of_timestamptz(stamp) if zoned else v.micros_of_timestamp(stamp)
    return stamp.micros


def truncate_stamp(
    unit: str, stamp: i.Stamp, make: Callable[[int], i.Stamp] = i.timestamp
) -> i.Stamp:
    """The start of the unit that the time lies in.

    What is far from today does not say whether it has a zone: `make` does.
    """
    name = unit_of_length(unit)
    if name not in (*CLOCK_UNITS, *YEAR_UNITS, "week", "month", "quarter"):
        raise no_unit(unit, name, "timestamp")
    if i.is_infinite(stamp):
        return stamp
    micros = _micros(stamp)
    if name in CLOCK_UNITS:
        return make(micros - micros % CLOCK_UNITS[name])
    return make(_start_day(name, Fields.of(micros)) * DAY)


def _start_day(unit: str, fields: Fields) -> int:
    if unit == "week":
        return fields.days - fields.isodow + 1
    if unit == "month":
        return days_from_civil(fields.year, fields.month, 1)
    if unit == "quarter":
        return days_from_civil(fields.year, (fields.month - 1) // 3 * 3 + 1, 1)
    return days_from_civil(_start_year(unit, fields.year), 1, 1)


def _start_year(unit: str, year: int) -> int:
    """Centuries and millennia start in years that end in 1; decades in 0."""
    size = YEAR_UNITS[unit]
    first = 1 if unit in ("century", "millennium") else 0
    return (year - first) // size * size + first


def truncate_interval(unit: str, interval: v.Interval) -> v.Interval:
    """The interval without what is smaller than the unit, towards zero."""
    name = unit_of_length(unit)
    if name == "week":
        raise NotHeldHere(
            "unit week not supported for type interval",
            detail="Months usually have fractional weeks.",
        )
    if name not in (*YEAR_UNITS, "quarter", "month", *CLOCK_UNITS):
        raise no_unit(unit, name, "interval")
    if i.is_infinite(interval):
        return interval
    if name in YEAR_UNITS or name in ("quarter", "month"):
        size = {"quarter": 3, "month": 1}.get(name) or YEAR_UNITS[name] * 12
        return v.Interval(_towards_zero(interval.months, size))
    if name == "day":
        return v.Interval(interval.months, interval.days)
    micros = _towards_zero(interval.micros, CLOCK_UNITS[name])
    return v.Interval(interval.months, interval.days, micros)


def _towards_zero(count: int, size: int) -> int:
    return abs(count) // size * size * (1 if count > 0 else -1)


def date_bin(
    stride: v.Interval, stamp: i.Stamp, origin: i.Stamp, make: Callable[[int], i.Stamp]
) -> i.Stamp:
    """The start of the bin, of the stride's length and aligned with the origin; `make` as above."""
    if i.is_infinite(origin):
        raise DatetimeOutOfRange("origin out of range")
    if i.is_infinite(stamp):
        return stamp
    if stride.months:
        raise NotHeldHere("timestamps cannot be binned into intervals of months or years")
    size = stride.days * DAY + stride.micros
    if abs(stride.days * DAY) > v.INT64_MAX or abs(size) > v.INT64_MAX:
        raise DatetimeOutOfRange("interval out of range")
    if size <= 0:
        raise DatetimeOutOfRange("stride must be greater than zero")
    micros = _micros(stamp)
    return make(micros - (micros - _micros(origin)) % size)
