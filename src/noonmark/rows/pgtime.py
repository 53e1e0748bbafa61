"""Dates and times as PostgreSQL writes them (DateStyle ISO) and reads them.

Law (round trip): ``parse_x(format_x(v)) == v`` for every value, and ``format_x`` gives the very
text that PostgreSQL gives. Reading takes the ISO forms: ``2024-02-29``, with ``T`` or blank before
the time, an offset such as ``Z``, ``+02`` or ``-03:30``, ``BC`` at the end, ``infinity`` and
``epoch``. Words that depend on the clock (``now``, ``today``) and names of months are refused.

An instant is written in the session's time zone. Beyond Python's years it is written in UTC,
because no zone's rules are known there.
"""

from __future__ import annotations

import datetime as dt
import re

from noonmark.errors import FieldOverflow, InvalidDatetime, InvalidOffset
from noonmark.rows import value as v
from noonmark.rows.calendar import civil_from_days, days_from_civil, days_in_month

_INFINITIES = {"infinity": 1, "+infinity": 1, "-infinity": -1}
_DATE = r"(?P<year>\d{4,7})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
_PACKED = re.compile(r"(\d{4})(\d{2})(\d{2})(?=\D|$)", re.ASCII)
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?"
_HALF = r"(?:\s*(?P<half>[aApP][mM]))?"
_ZONE = r"(?P<zone>[zZ]|[+-]\d{1,2}(?::?\d{2}(?::\d{2})?)?)"
_ERA = r"(?:\s*(?P<era>[bB][cC]|[aA][dD]))?"
_DATE_ONLY = re.compile(rf"{_DATE}(?:\s+{_ZONE})?{_ERA}", re.ASCII)
_CLOCK = rf"{_TIME}{_HALF}(?:\s*{_ZONE})?"
_TIME_ONLY = re.compile(rf"[tT]?{_CLOCK}", re.ASCII)
_PACKED_TIME = re.compile(r"[tT]?(\d{2})(\d{2})(\d{2})?(\.\d*)?", re.ASCII)
_TIMESTAMP = re.compile(rf"{_DATE}(?:(?:\s*[tT]|\s+){_CLOCK})?{_ERA}", re.ASCII)


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
    word = text.strip().lower()
    if word in _INFINITIES:
        return v.DATE_INFINITY if _INFINITIES[word] > 0 else v.DATE_NEG_INFINITY
    if word == "epoch":
        return v.date_of(0)
    plain = _with_marks(text.strip())
    match = _DATE_ONLY.fullmatch(plain) or _TIMESTAMP.fullmatch(plain)
    if match is None:
        raise _invalid("date", text)
    return v.date_of(_days(match, "date", text))


def _invalid(type_name: str, text: str) -> InvalidDatetime:
    return InvalidDatetime(f'invalid input syntax for type {type_name}: "{text}"')


def _days(match: re.Match[str], type_name: str, text: str) -> int:
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if match["era"] and match["era"].upper() == "BC":
        year = 1 - year
    elif year == 0:
        raise _invalid(type_name, text)
    if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        raise FieldOverflow(f'date/time field value out of range: "{text}"')
    return days_from_civil(year, month, day)


def _clock(match: re.Match[str], text: str) -> int:
    """Microseconds since midnight, at most 24 hours; a second of 60 is the next minute."""
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    if match["half"]:
        if not hour <= 12:
            raise FieldOverflow(f'date/time field value out of range: "{text}"')
        hour = hour % 12 + 12 * (match["half"][0] in "pP")
    micros = round_micros(match["fraction"] or "")
    total = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
    if minute > 59 or second > 60 or (second == 60 and micros) or total > v.DAY_MICROS:
        raise FieldOverflow(f'date/time field value out of range: "{text}"')
    return total


def round_micros(fraction: str) -> int:
    """The digits after a second's point, as microseconds, rounded half to even.

    >>> round_micros("5"), round_micros("0000015"), round_micros("9999999")
    (500000, 2, 1000000)
    """
    micros, rest = int(fraction[:6].ljust(6, "0")), fraction[6:].rstrip("0")
    up = rest > "5" or (rest == "5" and micros % 2 == 1)
    return micros + up


def parse_time(text: str) -> dt.time | v.EndOfDay:
    """The time of day that `text` stands for; a date or an offset beside it means nothing."""
    plain = text.strip()
    if plain.lower() == "allballs":
        return v.time_of(0)
    packed = _PACKED_TIME.fullmatch(plain)
    if packed is not None:
        plain = f"{packed[1]}:{packed[2]}:{packed[3] or '00'}{packed[4] or ''}"
    match = _TIME_ONLY.fullmatch(plain) or _TIMESTAMP.fullmatch(_with_marks(plain))
    if match is None or match["hour"] is None:
        raise _invalid("time", text)
    _offset(match["zone"], text)
    if "year" in match.re.groupindex:
        _days(match, "time", text)
    return v.time_of(_clock(match, text))


def _with_marks(text: str) -> str:
    """The text with a date of eight digits as one with marks between its parts."""
    return _PACKED.sub(r"\1-\2-\3", text, count=1)


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
    word = text.strip().lower()
    if word in _INFINITIES:
        return v.INT64_MAX if _INFINITIES[word] > 0 else v.INT64_MIN
    if word == "epoch":
        return 0
    match = _TIMESTAMP.fullmatch(_with_marks(text.strip()))
    if match is None:
        raise _invalid(type_name, text)
    clock = _clock(match, text) if match["hour"] else 0
    return _days(match, type_name, text) * v.DAY_MICROS + clock, _offset(match["zone"], text)


def _offset(zone: str | None, text: str) -> int | None:
    if zone is None or zone in "zZ":
        return None if zone is None else 0
    digits = zone[1:].replace(":", "")
    if len(digits) in (1, 3):
        digits = "0" + digits
    hour, minute, second = (int(digits[at : at + 2] or 0) for at in (0, 2, 4))
    if hour > 15 or minute > 59 or second > 59:
        raise InvalidOffset(f'time zone displacement out of range: "{text}"')
    seconds = (hour * 60 + minute) * 60 + second
    return -seconds if zone[0] == "-" else seconds
