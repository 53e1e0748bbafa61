"""Dates and times as PostgreSQL writes them (DateStyle ISO) and reads them.

Law (round trip): ``parse_x(format_x(v)) == v`` for every value, and ``format_x`` gives the very
text that PostgreSQL gives. Reading takes every form that PostgreSQL reads (`rows.pgdatetime`),
except words that depend on the clock (``now``, ``today``), which are refused.

An instant is written in the session's time zone. Beyond Python's years it is written in UTC,
because no zone's rules are known there.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from contextlib import contextmanager

from noonmark.errors import FieldOverflow, InvalidDatetime, InvalidOffset
from noonmark.rows import value as v
from noonmark.rows.calendar import civil_from_days, days_from_civil, days_in_month
from noonmark.rows.pg.datetimes import Reading, TimeReading
from noonmark.rows.pg.fields import Unreadable, fields_of

_DATE = r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
_TIME = r"(?P<hour>\d{2}):(?P<minute>\d{2}):(?P<second>\d{2})(?:\.(?P<fraction>\d{1,6}))?"
_ZONE = r"(?P<zone>[+-]\d{2}(?::\d{2})?)"
#: How most of them are written: these are read without a look at what else they could be.
_PLAIN_DATE = re.compile(_DATE, re.ASCII)
_PLAIN_TIME = re.compile(_TIME, re.ASCII)
_PLAIN_TIMESTAMP = re.compile(rf"{_DATE}[ T]{_TIME}{_ZONE}?", re.ASCII)
_CONSTANTS = {"epoch": 0, "infinity": 1, "+infinity": 1, "-infinity": -1}


def format_date(value: dt.date | v.FarDate) -> str:
    """The text of a date."""
    days = v.days_of(value)
    if days in (v.INT32_MIN, v.INT32_MAX):
        return "infinity" if days > 0 else "-infinity"
    date, era = _civil(days)
    return date + era


def _civil(days: int) -> tuple[str, str]:
    year, month, day = civil_from_days(days)
    shown, era = (year, "") if year > 0 else (1 - year, " BC")
    return f"{shown:04d}-{month:02d}-{day:02d}", era


def format_clock(micros: int) -> str:
    """Hours, minutes, seconds and what there is of a fraction; hours may exceed 24.

    >>> format_clock(3_723_500_000)
    '01:02:03.5'
    """
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = f"{hour:02d}:{minute:02d}:{second:02d}"
    return text + f".{fraction:06d}".rstrip("0") if fraction else text


def format_time(value: dt.time | v.EndOfDay) -> str:
    """The text of a time of day."""
    return format_clock(v.micros_of_time(value))


def format_timestamp(value: dt.datetime | v.FarTimestamp) -> str:
    """The text of a timestamp without time zone."""
    return _format_instant(v.micros_of_timestamp(value), "")


def format_timestamptz(value: dt.datetime | v.FarTimestamp, zone: dt.tzinfo) -> str:
    """The text of an instant in a time zone."""
    if isinstance(value, v.FarTimestamp):
        return _format_instant(value.micros, "+00")
    try:
        offset = value.astimezone(zone).utcoffset() or dt.timedelta()
    except OverflowError:
        offset = dt.timedelta()
    micros = v.micros_of_timestamptz(value) + offset // dt.timedelta(microseconds=1)
    return _format_instant(micros, _format_offset(offset))


def _format_offset(offset: dt.timedelta) -> str:
    minutes, second = divmod(abs(int(offset.total_seconds())), 60)
    hour, minute = divmod(minutes, 60)
    text = f"{'-' if offset < dt.timedelta() else '+'}{hour:02d}"
    if minute or second:
        text += f":{minute:02d}"
    return text + (f":{second:02d}" if second else "")


def _format_instant(micros: int, suffix: str) -> str:
    if micros in (v.INT64_MIN, v.INT64_MAX):
        return "infinity" if micros > 0 else "-infinity"
    days, clock = divmod(micros, v.DAY_MICROS)
    date, era = _civil(days)
    return f"{date} {format_clock(clock)}{suffix}{era}"


def parse_date(text: str) -> dt.date | v.FarDate:
    """The date that `text` stands for."""
    match = _PLAIN_DATE.fullmatch(text)
    days = None if match is None else _plain_days(match)
    if days is not None:
        return v.date_of(days)
    with _readable("date", text):
        reading = Reading(fields_of(text))
        if not reading.constant:
            return v.date_of(reading.days())
    sign = _CONSTANTS[reading.constant]
    return v.date_of(0) if not sign else v.DATE_INFINITY if sign > 0 else v.DATE_NEG_INFINITY


@contextmanager
def _readable(type_name: str, text: str) -> Iterator[None]:
    """Errors that tell the text, of what says only that it cannot be read."""
    try:
        yield
    except Unreadable as error:
        kind = error.kind
        if error.what and kind is not InvalidDatetime:
            message = error.what
        elif kind is FieldOverflow:
            message = f'date/time field value out of range: "{text}"'
        elif kind is InvalidOffset:
            message = f'time zone displacement out of range: "{text}"'
        else:
            message = f'invalid input syntax for type {type_name}: "{text}"'
        raise kind(message) from None


def _plain_days(match: re.Match[str]) -> int | None:
    """The day of a date that there is."""
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if not year or not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        return None
    return days_from_civil(year, month, day)


def _plain_clock(match: re.Match[str]) -> int | None:
    """Microseconds since midnight, of a time that there is."""
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"])
    if hour > 23 or minute > 59 or second > 59:
        return None
    micros = int((match["fraction"] or "0").ljust(6, "0"))
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros


def parse_time(text: str) -> dt.time | v.EndOfDay:
    """The time of day that `text` stands for; a date or an offset beside it means nothing."""
    match = _PLAIN_TIME.fullmatch(text)
    clock = None if match is None else _plain_clock(match)
    if clock is None:
        with _readable("time", text):
            clock = TimeReading(fields_of(text)).time_of_day()
    return v.time_of(clock)


def parse_timestamp(text: str) -> dt.datetime | v.FarTimestamp:
    """The timestamp that `text` stands for; an offset in it means nothing, as in PostgreSQL."""
    instant = _parse_instant(text, "timestamp")
    return v.timestamp_of(instant if isinstance(instant, int) else instant[0])


def parse_timestamptz(text: str, zone: dt.tzinfo) -> dt.datetime | v.FarTimestamp:
    """The instant that `text` stands for; without an offset it is local to `zone`."""
    instant = _parse_instant(text, "timestamp with time zone")
    if isinstance(instant, int):
        return v.timestamptz_of(instant)
    local, offset = instant
    if offset is not None:
        return v.timestamptz_of(local - offset * 1_000_000)
    near = v.timestamp_of(local)
    if isinstance(near, v.FarTimestamp):
        return near
    return v.timestamptz_of(v.micros_of_timestamptz(near.replace(tzinfo=zone)))


def _parse_instant(text: str, type_name: str) -> int | tuple[int, int | None]:
    """The micros of a word; or local micros and the offset in seconds, if the text has one."""
    match = _PLAIN_TIMESTAMP.fullmatch(text)
    if match is not None:
        days, clock = _plain_days(match), _plain_clock(match)
        if days is not None and clock is not None and not match["zone"]:
            return days * v.DAY_MICROS + clock, None
    with _readable(type_name, text):
        reading = Reading(fields_of(text))
        if not reading.constant:
            return reading.local()
    sign = _CONSTANTS[reading.constant]
    return 0 if not sign else v.INT64_MAX if sign > 0 else v.INT64_MIN
