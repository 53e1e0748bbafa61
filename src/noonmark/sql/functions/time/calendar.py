"""Dates, times and intervals: arithmetic and truncation. `extract` has a module of its own.

An infinity absorbs what is added to it. A day is 24 hours: the time zone is UTC.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from noonmark.errors import DatetimeOutOfRange, DivisionByZero
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.calendar import days_from_civil, days_in_month
from noonmark.rows.zone import instant_offset, local_offset, zone_named
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.number.arithmetic import checked
from noonmark.sql.functions.time import instant as i
from noonmark.sql.functions.time.instant import DAY, Fields
from noonmark.sql.functions.time.truncate import date_bin, truncate_interval, truncate_stamp

#: 2000-01-01, in seconds since 1970.
_THEIR_EPOCH = 946_684_800


def interval_add(a: v.Interval, b: v.Interval) -> v.Interval:
    """Field by field."""
    if i.is_infinite(a) or i.is_infinite(b):
        if i.is_infinite(a) and i.is_infinite(b) and a != b:
            raise DatetimeOutOfRange("interval out of range")
        return a if i.is_infinite(a) else b
    return i.interval(a.months + b.months, a.days + b.days, a.micros + b.micros)


def interval_negate(a: v.Interval) -> v.Interval:
    """Field by field; the infinities change places."""
    if i.is_infinite(a):
        return v.INTERVAL_INFINITY if a.months < 0 else v.INTERVAL_NEG_INFINITY
    return i.interval(-a.months, -a.days, -a.micros)


def _tidy(seconds: float) -> float:
    """Rounded to microseconds, as PostgreSQL does between the steps."""
    return round(seconds * 1e6) / 1e6


def interval_scale(a: v.Interval, scale: Callable[[int], float]) -> v.Interval:
    """Every field scaled; what is left of months goes to days, and of days to time."""
    if i.is_infinite(a):
        return a
    if not all(map(math.isfinite, (scale(a.months), scale(a.days), scale(a.micros)))):
        raise DatetimeOutOfRange("interval out of range")
    months, days = int(scale(a.months)), int(scale(a.days))
    spare_days = _tidy((scale(a.months) - months) * 30)
    spare = _tidy((scale(a.days) - days + spare_days - int(spare_days)) * 86400)
    if abs(spare) >= 86400:
        days += int(spare / 86400)
        spare -= int(spare / 86400) * 86400
    days += int(spare_days)
    return i.interval(months, days, round(scale(a.micros) + spare * 1e6))


def _interval_mul(a: v.Interval, factor: float) -> v.Interval:
    sign = _sign(a)
    if math.isnan(factor) or (i.is_infinite(a) and factor == 0):
        raise DatetimeOutOfRange("interval out of range")
    if i.is_infinite(a) or math.isinf(factor):
        if sign == 0:
            raise DatetimeOutOfRange("interval out of range")
        return v.INTERVAL_INFINITY if sign * factor > 0 else v.INTERVAL_NEG_INFINITY
    return interval_scale(a, lambda field: field * factor)


def _interval_div(a: v.Interval, divisor: float) -> v.Interval:
    if divisor == 0:
        raise DivisionByZero("division by zero")
    if math.isnan(divisor) or (i.is_infinite(a) and math.isinf(divisor)):
        raise DatetimeOutOfRange("interval out of range")
    if i.is_infinite(a):
        return a if divisor > 0 else interval_negate(a)
    return interval_scale(a, lambda field: field / divisor)


def _sign(a: v.Interval) -> int:
    """Whether it is above zero, zero or below, as intervals are ordered."""
    micros = (a.months * 30 + a.days) * DAY + a.micros
    return (micros > 0) - (micros < 0)


def _infinite(stamp: i.Stamp, by: v.Interval) -> i.Stamp:
    """An infinite timestamp + interval."""
    if i.is_infinite(by) and (by.months > 0) != (stamp == v.TIMESTAMP_INFINITY):
        raise DatetimeOutOfRange("timestamp out of range")
    return stamp


def _shifted(micros: int, by: v.Interval, make: Callable[[int], i.Stamp]) -> i.Stamp:
    if i.is_infinite(by):
        return v.TIMESTAMP_INFINITY if by.months > 0 else v.TIMESTAMP_NEG_INFINITY
    return make(i.add_interval(micros, by))


def stamp_add(stamp: i.Stamp, by: v.Interval) -> i.Stamp:
    """Timestamp + interval."""
    if i.is_infinite(stamp):
        return _infinite(stamp, by)
    return _shifted(v.micros_of_timestamp(stamp), by, i.timestamp)


def stamptz_add(stamp: i.Stamp, by: v.Interval) -> i.Stamp:
    """Timestamptz + interval."""
    if i.is_infinite(stamp):
        return _infinite(stamp, by)
    return _shifted(v.micros_of_timestamptz(stamp), by, i.timestamptz)


def date_stamp(value: i.Date) -> i.Stamp:
    """A date's midnight."""
    if i.is_infinite(value):
        up = value == v.DATE_INFINITY
        return v.TIMESTAMP_INFINITY if up else v.TIMESTAMP_NEG_INFINITY
    return i.timestamp(v.days_of(value) * DAY)


def _date_add(value: i.Date, by: v.Interval) -> i.Stamp:
    return stamp_add(date_stamp(value), by)


def _minus(add: Callable[[Any, v.Interval], Any]) -> Callable[[Any, v.Interval], Any]:
    return lambda value, by: add(value, interval_negate(by))


def _days_add(value: i.Date, days: int) -> i.Date:
    return value if i.is_infinite(value) else i.date(v.days_of(value) + days)


def _days_between(a: i.Date, b: i.Date) -> int:
    if i.is_infinite(a) or i.is_infinite(b):
        raise DatetimeOutOfRange("cannot subtract infinite dates")
    return v.days_of(a) - v.days_of(b)


def _between(micros_of: Callable[[Any], int]) -> Callable[[Any, Any], v.Interval]:
    def act(a: i.Stamp, b: i.Stamp) -> v.Interval:
        if i.is_infinite(a) or i.is_infinite(b):
            if a == b:
                raise DatetimeOutOfRange("interval out of range")
            up = a == v.TIMESTAMP_INFINITY or b == v.TIMESTAMP_NEG_INFINITY
            return v.INTERVAL_INFINITY if up else v.INTERVAL_NEG_INFINITY
        micros = micros_of(a) - micros_of(b)
        days = abs(micros) // DAY * (1 if micros > 0 else -1)
        return i.interval(0, days, micros - days * DAY)

    return act


def _age(micros_of: Callable[[Any], int]) -> Callable[[Any, Any], v.Interval]:
    between = _between(micros_of)

    def act(a: i.Stamp, b: i.Stamp) -> v.Interval:
        if i.is_infinite(a) or i.is_infinite(b):
            return between(a, b)
        first, last = sorted((micros_of(a), micros_of(b)))
        sign = 1 if micros_of(a) >= micros_of(b) else -1
        return _calendar_age(Fields.of(last), Fields.of(first), sign)

    return act


def _calendar_age(last: Fields, first: Fields, sign: int) -> v.Interval:
    """Years, months and days as a person counts them, borrowing from the month of `first`."""
    clock, days = last.clock - first.clock, last.day - first.day
    months = (last.year - first.year) * 12 + last.month - first.month
    if clock < 0:
        clock, days = clock + DAY, days - 1
    if days < 0:
        days, months = days + days_in_month(first.year, first.month), months - 1
    return i.interval(sign * months, sign * days, sign * clock)


def time_add(value: dt.time | v.EndOfDay, by: v.Interval) -> dt.time | v.EndOfDay:
    """Time + interval, around the clock."""
    if i.is_infinite(by):
        raise DatetimeOutOfRange("cannot add infinite interval to time")
    return v.time_of((v.micros_of_time(value) + by.micros) % DAY)


def _time_between(a: dt.time | v.EndOfDay, b: dt.time | v.EndOfDay) -> v.Interval:
    return v.Interval(0, 0, v.micros_of_time(a) - v.micros_of_time(b))


def _date_time(value: i.Date, clock: dt.time | v.EndOfDay) -> i.Stamp:
    if i.is_infinite(value):
        return date_stamp(value)
    return i.timestamp(v.days_of(value) * DAY + v.micros_of_time(clock))


def _make_date(year: int, month: int, day: int) -> i.Date:
    if year == 0 or not 1 <= month <= 12:
        raise DatetimeOutOfRange(f"date field value out of range: {year}-{month:02}-{day:02}")
    year += year < 0
    if not 1 <= day <= days_in_month(year, month):
        raise DatetimeOutOfRange(f"date field value out of range: {year}-{month:02}-{day:02}")
    return i.date(days_from_civil(year, month, day))


def _clock_micros(hour: int, minute: int, second: float) -> int:
    micros = round(second * 1_000_000) if 0 <= second <= 61 else -1
    valid = 0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= micros <= 60_000_000
    total = hour * i.HOUR + minute * i.MINUTE + micros if valid else -1
    if not 0 <= total <= DAY:
        raise DatetimeOutOfRange(f"time field value out of range: {hour}:{minute:02}:{second:g}")
    return total


def make_timestamp(year: int, month: int, day: int, *clock: Any) -> i.Stamp:
    """The timestamp of its fields."""
    days = v.days_of(_make_date(year, month, day))
    return i.timestamp(days * DAY + _clock_micros(*clock))


def _to_timestamp(seconds: float) -> i.Stamp:
    if math.isinf(seconds):
        return v.TIMESTAMP_INFINITY if seconds > 0 else v.TIMESTAMP_NEG_INFINITY
    if math.isnan(seconds):
        raise DatetimeOutOfRange("timestamp cannot be NaN")
    # As PostgreSQL rounds it: in floats, and counted from its own epoch.
    micros = (seconds - _THEIR_EPOCH) * 1e6
    if abs(micros) > 2**63:
        raise DatetimeOutOfRange(f'timestamp out of range: "{seconds:g}"')
    return i.timestamptz(round(micros) + _THEIR_EPOCH * i.SECOND)


def _justify_hours(a: v.Interval) -> v.Interval:
    if i.is_infinite(a):
        return a
    whole = abs(a.micros) // DAY * (1 if a.micros > 0 else -1)
    days, micros = a.days + whole, a.micros - whole * DAY
    if days > 0 > micros:
        days, micros = days - 1, micros + DAY
    elif days < 0 < micros:
        days, micros = days + 1, micros - DAY
    return i.interval(a.months, days, micros)


def _justify_days(a: v.Interval) -> v.Interval:
    if i.is_infinite(a):
        return a
    whole = abs(a.days) // 30 * (1 if a.days > 0 else -1)
    months, days = a.months + whole, a.days - whole * 30
    if months > 0 > days:
        months, days = months - 1, days + 30
    elif months < 0 < days:
        months, days = months + 1, days - 30
    return i.interval(months, days, a.micros)


def _towards_zero(count: int, size: int) -> int:
    return abs(count) // size * (1 if count > 0 else -1)


def _justify_interval(a: v.Interval) -> v.Interval:
    """Months, days and time of one sign, none of the latter as much as one of the former."""
    if i.is_infinite(a):
        return a
    whole = _towards_zero(a.micros, DAY)
    days, micros = a.days + whole, a.micros - whole * DAY
    whole = _towards_zero(days, 30)
    months, days = a.months + whole, days - whole * 30
    if months > 0 and (days, micros) < (0, 0):
        months, days = months - 1, days + 30
    elif months < 0 and (days, micros) > (0, 0):
        months, days = months + 1, days - 30
    if days > 0 > micros:
        days, micros = days - 1, micros + DAY
    elif days < 0 < micros:
        days, micros = days + 1, micros - DAY
    return i.interval(months, days, micros)


def _make_interval(*fields: Any) -> v.Interval:
    years, months, weeks, days, hours, minutes, seconds = fields
    if not math.isfinite(seconds):
        raise DatetimeOutOfRange("interval out of range")
    # In PostgreSQL's order: a product that does not fit is refused, whatever is added to it.
    i.interval(years * 12, weeks * 7, 0)
    whole = i.interval(years * 12 + months, weeks * 7 + days, hours * i.HOUR + minutes * i.MINUTE)
    micros = checked(operator.mul, float(seconds), 1e6, underflow=True)
    return i.interval(whole.months, whole.days, whole.micros + round(micros))


def _make_time(hour: int, minute: int, second: float) -> dt.time | v.EndOfDay:
    return v.time_of(_clock_micros(hour, minute, second))


def _to_zone(zone: str, stamp: i.Stamp) -> i.Stamp:
    """Timestamp AT TIME ZONE: the instant at which clocks there show it."""
    if i.is_infinite(stamp):
        return stamp
    micros = v.micros_of_timestamp(stamp)
    return i.timestamptz(micros - local_offset(micros, zone_named(zone)))


def _in_zone(zone: str, stamp: i.Stamp) -> i.Stamp:
    """Timestamptz AT TIME ZONE: what clocks there show."""
    if i.is_infinite(stamp):
        return stamp
    micros = v.micros_of_timestamptz(stamp)
    return i.timestamp(micros + instant_offset(micros, zone_named(zone)))


def _is_finite(value: Any) -> bool:
    return not i.is_infinite(value)


def _calls(*rows: tuple[str, tuple[type[t.SqlType], ...], type[t.SqlType], Any]) -> list[Function]:
    return [
        Function(name, parameters, result(), meaning, fallible=True)
        for name, parameters, result, meaning in rows
    ]


_D, _T, _S, _Z, _I = t.Date, t.Time, t.Timestamp, t.TimestampTz, t.Interval

TABLE = (
    *_calls(
        ("+", (_D, t.Integer), _D, _days_add),
        ("+", (t.Integer, _D), _D, lambda days, value: _days_add(value, days)),
        ("-", (_D, t.Integer), _D, lambda value, days: _days_add(value, -days)),
        ("-", (_D, _D), t.Integer, _days_between),
        ("+", (_D, _I), _S, _date_add),
        ("+", (_I, _D), _S, lambda by, value: _date_add(value, by)),
        ("-", (_D, _I), _S, _minus(_date_add)),
        ("+", (_D, _T), _S, _date_time),
        ("+", (_T, _D), _S, lambda time, date: _date_time(date, time)),
        ("+", (_S, _I), _S, stamp_add),
        ("+", (_I, _S), _S, lambda by, value: stamp_add(value, by)),
        ("-", (_S, _I), _S, _minus(stamp_add)),
        ("-", (_S, _S), _I, _between(v.micros_of_timestamp)),
        ("+", (_Z, _I), _Z, stamptz_add),
        ("+", (_I, _Z), _Z, lambda by, value: stamptz_add(value, by)),
        ("-", (_Z, _I), _Z, _minus(stamptz_add)),
        ("-", (_Z, _Z), _I, _between(v.micros_of_timestamptz)),
        ("+", (_T, _I), _T, time_add),
        ("+", (_I, _T), _T, lambda by, value: time_add(value, by)),
        ("-", (_T, _I), _T, _minus(time_add)),
        ("-", (_T, _T), _I, _time_between),
        ("+", (_I, _I), _I, interval_add),
        ("-", (_I, _I), _I, _minus(interval_add)),
        ("-", (_I,), _I, interval_negate),
        ("*", (_I, t.Double), _I, _interval_mul),
        ("*", (t.Double, _I), _I, lambda factor, a: _interval_mul(a, factor)),
        ("/", (_I, t.Double), _I, _interval_div),
        ("age", (_S, _S), _I, _age(v.micros_of_timestamp)),
        ("age", (_Z, _Z), _I, _age(v.micros_of_timestamptz)),
        ("justify_hours", (_I,), _I, _justify_hours),
        ("justify_days", (_I,), _I, _justify_days),
        ("justify_interval", (_I,), _I, _justify_interval),
        ("make_interval", (*(t.Integer,) * 6, t.Double), _I, _make_interval),
        ("make_time", (t.Integer, t.Integer, t.Double), _T, _make_time),
        ("make_date", (t.Integer,) * 3, _D, _make_date),
        ("make_timestamp", (*(t.Integer,) * 5, t.Double), _S, make_timestamp),
        ("to_timestamp", (t.Double,), _Z, _to_timestamp),
        ("timezone", (t.Text, _S), _Z, _to_zone),
        ("timezone", (t.Text, _Z), _S, _in_zone),
        ("date_trunc", (t.Text, _S), _S, truncate_stamp),
        ("date_trunc", (t.Text, _Z), _Z, partial(truncate_stamp, make=i.timestamptz)),
        ("date_trunc", (t.Text, _I), _I, truncate_interval),
        ("date_bin", (_I, _S, _S), _S, partial(date_bin, make=i.timestamp)),
        ("date_bin", (_I, _Z, _Z), _Z, partial(date_bin, make=i.timestamptz)),
    ),
    Function("mz_timestamp", (_Z,), t.BigInt(), lambda z: v.micros_of_timestamptz(z) // 1000),
    *(Function("isfinite", (kind,), t.Boolean(), _is_finite) for kind in (_D, _S, _Z, _I)),
)
