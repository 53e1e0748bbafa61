"""EXTRACT: one field of a date, time, timestamp or interval, as a numeric.

There is a function for every field, ``extract year(date)``: the field is part of the syntax, and so
the scale of the result is known: 6 digits for seconds, 3 for milliseconds, 0 for the rest, as
PostgreSQL shows them. ``date_part`` takes the field as text and gives a float.

Of an infinity, a field that grows with time is infinite, another is NULL. Those that can be are of
plain numeric; only the year of a date, which has a kernel, is not, and refuses infinities.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.sql.functions.errors import NotHeldHere
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.time import instant as i
from noonmark.sql.functions.time.calendar import date_stamp
from noonmark.sql.functions.time.instant import DAY, Fields
from noonmark.sql.functions.time.unit import no_unit, unit_name

#: Fields that grow with time: of an infinity they are infinite. Others are NULL then.
_GROWING = frozenset(("year", "isoyear", "decade", "century", "millennium", "epoch", "julian"))
_GROWING_INTERVAL = frozenset(("year", "decade", "century", "millennium", "epoch", "hour", "day"))


def _century(year: int, size: int) -> int:
    shown = i.shown_year(year)
    return (shown + size - 1) // size if shown > 0 else -((-shown + size - 1) // size)


def _seconds(clock: int, scale: int) -> Decimal:
    """What is below the minute, in the unit that has `scale` digits to the microsecond."""
    return Decimal(clock % i.MINUTE).scaleb(-scale)


#: The Julian day of 1970-01-01.
_JULIAN_EPOCH = 2_440_588

_DAY_FIELDS: dict[str, Callable[[Fields], Any]] = {
    "year": lambda f: i.shown_year(f.year),
    "month": lambda f: f.month,
    "day": lambda f: f.day,
    "quarter": lambda f: (f.month - 1) // 3 + 1,
    "week": lambda f: f.iso_week[1],
    "isoyear": lambda f: i.shown_year(f.iso_week[0]),
    "dow": lambda f: f.isodow % 7,
    "isodow": lambda f: f.isodow,
    "doy": lambda f: f.doy,
    "decade": lambda f: f.year // 10,
    "century": lambda f: _century(f.year, 100),
    "millennium": lambda f: _century(f.year, 1000),
    "julian": lambda f: f.days + _JULIAN_EPOCH,
}
_CLOCK_FIELDS: dict[str, Callable[[int], Any]] = {
    "hour": lambda clock: clock // i.HOUR,
    "minute": lambda clock: clock // i.MINUTE % 60,
    "second": lambda clock: _seconds(clock, 6),
    "milliseconds": lambda clock: _seconds(clock, 3),
    "microseconds": lambda clock: clock % i.MINUTE,
}
_INTERVAL_FIELDS: dict[str, Callable[[v.Interval], Any]] = {
    "year": lambda a: _quotient(a.months, 12),
    "month": lambda a: a.months - _quotient(a.months, 12) * 12,
    "day": lambda a: a.days,
    "quarter": lambda a: _quarter(a.months),
    "week": lambda a: _quotient(a.days, 7),
    "decade": lambda a: _quotient(a.months, 120),
    "century": lambda a: _quotient(a.months, 1200),
    "millennium": lambda a: _quotient(a.months, 12000),
    "hour": lambda a: _quotient(a.micros, i.HOUR),
    "minute": lambda a: _signed(a.micros, lambda m: m // i.MINUTE % 60),
    "second": lambda a: _signed(a.micros, lambda m: _seconds(m, 6)),
    "milliseconds": lambda a: _signed(a.micros, lambda m: _seconds(m, 3)),
    "microseconds": lambda a: _signed(a.micros, lambda m: m % i.MINUTE),
}


def _signed(count: int, compute: Callable[[int], Any]) -> Any:
    return compute(count) if count >= 0 else -compute(-count)


def _quotient(count: int, size: int) -> int:
    return abs(count) // size if count >= 0 else -(abs(count) // size)


def _quarter(months: int) -> int:
    rest = months - _quotient(months, 12) * 12
    return rest // 3 + 1 if months >= 0 else -(-rest // 3) - 1


def _interval_epoch(a: v.Interval) -> Decimal:
    """A year is 365.25 days here, a month 30."""
    years = _quotient(a.months, 12)
    seconds = years * 31_557_600 + (a.months - years * 12) * 2_592_000 + a.days * 86_400
    return Decimal(seconds) + Decimal(a.micros).scaleb(-6)


_INTERVAL_FIELDS["epoch"] = _interval_epoch


def _of_infinity(field: str, positive: bool, growing: frozenset[str]) -> Decimal | None:
    return Decimal("Infinity" if positive else "-Infinity") if field in growing else None


def _from_stamp(field: str, micros: int) -> Any:
    fields = Fields.of(micros)
    if field == "epoch":
        return Decimal(micros).scaleb(-6)
    if field in _CLOCK_FIELDS:
        return _CLOCK_FIELDS[field](fields.clock)
    if field == "julian" and fields.clock:
        return fields.days + _JULIAN_EPOCH + fields.clock / DAY
    return _DAY_FIELDS[field](fields)


def _of_date(field: str, value: i.Date) -> Any:
    if i.is_infinite(value):
        if field == "year":
            raise NotHeldHere("the year of an infinite date is not supported")
        return _of_infinity(field, value == v.DATE_INFINITY, _GROWING)
    days = v.days_of(value)
    return days * 86_400 if field == "epoch" else _from_stamp(field, days * DAY)


def _of_timestamp(field: str, value: i.Stamp) -> Any:
    if i.is_infinite(value):
        return _of_infinity(field, value == v.TIMESTAMP_INFINITY, _GROWING)
    return _from_stamp(field, v.micros_of_timestamp(value))


def _of_timestamptz(field: str, value: i.Stamp) -> Any:
    if i.is_infinite(value):
        return _of_infinity(field, value == v.TIMESTAMP_INFINITY, _GROWING)
    return _from_stamp(field, v.micros_of_timestamptz(value))


def _of_time(field: str, value: Any) -> Any:
    micros = v.micros_of_time(value)
    return Decimal(micros).scaleb(-6) if field == "epoch" else _CLOCK_FIELDS[field](micros)


def _of_interval(field: str, value: v.Interval) -> Any:
    if i.is_infinite(value):
        return _of_infinity(field, value == v.INTERVAL_INFINITY, _GROWING_INTERVAL)
    return _INTERVAL_FIELDS[field](value)


def _scale(field: str, kind: type[t.SqlType]) -> int:
    if field == "epoch":
        return 0 if kind is t.Date else 6
    return {"second": 6, "milliseconds": 3}.get(field, 0)


_SOURCES: tuple[tuple[type[t.SqlType], Callable[[str, Any], Any], tuple[str, ...]], ...] = (
    (t.Date, _of_date, (*_DAY_FIELDS, "epoch")),
    (t.Time, _of_time, (*_CLOCK_FIELDS, "epoch")),
    (t.Timestamp, _of_timestamp, (*_DAY_FIELDS, *_CLOCK_FIELDS, "epoch")),
    (t.TimestampTz, _of_timestamptz, (*_DAY_FIELDS, *_CLOCK_FIELDS, "epoch")),
    (t.Interval, _of_interval, tuple(_INTERVAL_FIELDS)),
)


def _result(field: str, kind: type[t.SqlType]) -> t.Numeric:
    growing = _GROWING_INTERVAL if kind is t.Interval else _GROWING
    if field in growing and kind is not t.Time and (kind, field) != (t.Date, "year"):
        return t.Numeric()
    return t.Numeric(20, _scale(field, kind))


#: EXTRACT of a field that the type does not have: an error for every value but NULL.
NO_FIELD = "extract no field"


def _no_field(kind: type[t.SqlType]) -> Callable[[str, Any], Any]:
    def act(field: str, _: Any) -> Any:
        raise no_unit(field, unit_name(field), kind.spelling)

    return act


def _table() -> list[Function]:
    rows = []
    for kind, compute, fields in _SOURCES:
        for field in fields:
            if field == "julian" and kind is not t.Date:
                continue  # with a fraction of the day, whose digits PostgreSQL chooses
            result = _result(field, kind)
            rows.append(
                Function(
                    f"extract {field}",
                    (kind,),
                    result,
                    lambda value, c=compute, f=field: c(f, value),
                    gives_null=True,
                    fallible=True,
                )
            )
        rows.append(Function(NO_FIELD, (t.Text, kind), t.Numeric(), _no_field(kind), fallible=True))
        rows.append(
            Function(
                "date_part",
                (t.Text, kind),
                t.Double(),
                _date_part(kind, compute, fields) if kind is not t.Date else _date_part_of_date,
                gives_null=True,
                fallible=True,
            )
        )
    return rows


def _date_part(
    kind: type[t.SqlType], compute: Callable[[str, Any], Any], fields: tuple[str, ...]
) -> Callable[[str, Any], float | None]:
    def act(field: str, value: Any) -> float | None:
        name = unit_name(field)
        if name is None or name not in fields:
            raise no_unit(field, name, kind.spelling)
        result = compute(name, value)
        return None if result is None else float(result)

    return act


_of_stamp = _date_part(t.Timestamp, _of_timestamp, (*_DAY_FIELDS, *_CLOCK_FIELDS, "epoch"))


def _date_part_of_date(field: str, value: i.Date) -> float | None:
    """That of the date's midnight, which not every date has."""
    return _of_stamp(field, date_stamp(value))


TABLE = tuple(_table())
