"""Times by the clocks of a zone: added to, truncated, made; and whether two spans overlap."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from itertools import product
from typing import Any

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.order import sort_key
from noonmark.rows.zone import instant_offset, local_offset, zone_named
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.time import instant as i
from noonmark.sql.functions.time.calendar import (
    interval_negate,
    make_timestamp,
    stamp_add,
    stamptz_add,
    time_add,
)
from noonmark.sql.functions.time.truncate import truncate_stamp


def _shown(stamp: i.Stamp, zone: dt.tzinfo) -> i.Stamp:
    """What clocks show there."""
    micros = v.micros_of_timestamptz(stamp)
    return i.timestamp(micros + instant_offset(micros, zone))


def _instant(stamp: i.Stamp, zone: dt.tzinfo) -> i.Stamp:
    """When clocks there show it."""
    micros = v.micros_of_timestamp(stamp)
    return i.timestamptz(micros - local_offset(micros, zone))


def _add(stamp: i.Stamp, by: v.Interval, zone_name: str) -> i.Stamp:
    """Months and days by the clocks of the zone, the rest as it passes."""
    zone = zone_named(zone_name)
    if i.is_infinite(stamp) or i.is_infinite(by):
        return stamptz_add(stamp, by)
    for part in (v.Interval(by.months), v.Interval(0, by.days)):
        if part != v.Interval():
            stamp = _instant(stamp_add(_shown(stamp, zone), part), zone)
    return stamptz_add(stamp, v.Interval(0, 0, by.micros))


def _truncate(unit: str, stamp: i.Stamp, zone_name: str) -> i.Stamp:
    zone = zone_named(zone_name)
    if i.is_infinite(stamp):
        return truncate_stamp(unit, stamp)
    return _instant(truncate_stamp(unit, _shown(stamp, zone)), zone)


_NUMERIC_ZONE = re.compile(r"[+-](\d{1,2}|\d{4}|\d{6}|\d{1,2}:\d{1,2}(:\d{1,2})?)", re.ASCII)


def _make(*fields: Any) -> i.Stamp:
    """A number with a sign is hours to the east here, and not to the west as by POSIX."""
    stamp = make_timestamp(*fields[:6])
    if len(fields) == 6:
        return _instant(stamp, dt.UTC)
    name = fields[6]
    if name[:1].isdigit():
        raise InvalidArgument(
            f'invalid input syntax for type numeric time zone: "{name}"',
            hint='Numeric time zones must have "-" or "+" as first character.',
        )
    if _NUMERIC_ZONE.fullmatch(name):
        name = ("-" if name[0] == "+" else "+") + name[1:]
    return _instant(stamp, zone_named(name))


def _offset(by: v.Interval) -> dt.tzinfo:
    if by.months or by.days or i.is_infinite(by):
        raise InvalidArgument(f'interval time zone "{by}" must not include months or days')
    seconds = abs(by.micros) // i.SECOND * (1 if by.micros > 0 else -1)
    return dt.timezone(dt.timedelta(seconds=seconds))


def _to_offset(by: v.Interval, stamp: i.Stamp) -> i.Stamp:
    return stamp if i.is_infinite(stamp) else _instant(stamp, _offset(by))


def _in_offset(by: v.Interval, stamp: i.Stamp) -> i.Stamp:
    return stamp if i.is_infinite(stamp) else _shown(stamp, _offset(by))


def _overlap(kind: t.SqlType) -> Callable[..., bool | None]:
    key = sort_key(kind)

    def act(*ends: Any) -> bool | None:
        """Where an end is unknown, it may be anywhere on its side of the other."""
        keys = [None if each is None else key(each) for each in ends]
        first, second = _ordered(*keys[:2]), _ordered(*keys[2:])
        if first is None or second is None:
            return None
        if first[0] == second[0]:
            return None if first[1] is None or second[1] is None else True
        early, late = (first, second) if first[0] < second[0] else (second, first)
        if early[1] is None:
            return None
        if late[0] < early[1]:
            return True
        return None if late[1] is None else False

    return act


def _ordered(start: Any, end: Any) -> tuple[Any, Any] | None:
    if start is None:
        return None if end is None else (end, None)
    return (end, start) if end is not None and end < start else (start, end)


def _overlaps() -> list[Function]:
    """OVERLAPS of spans that are given by their ends, or by a start and a length."""
    rows = []
    adds: tuple[tuple[type[t.SqlType], Callable[[Any, v.Interval], Any]], ...] = (
        (t.Time, time_add),
        (t.Timestamp, stamp_add),
        (t.TimestampTz, stamptz_add),
    )
    for kind, add in adds:
        kinds: tuple[type[t.SqlType], ...] = (kind, t.Interval)
        for ends in product(kinds, repeat=2):
            rows.append(
                Function(
                    "overlaps",
                    (kind, ends[0], kind, ends[1]),
                    t.Boolean(),
                    _spans(_overlap(kind()), add, ends),
                    strict=False,
                    gives_null=True,
                    fallible=True,
                )
            )
    return rows


def _spans(
    overlap: Callable[..., bool | None],
    add: Callable[[Any, v.Interval], Any],
    ends: tuple[type[t.SqlType], ...],
) -> Callable[..., bool | None]:
    def end(start: Any, other: Any, kind: type[t.SqlType]) -> Any:
        if kind is not t.Interval:
            return other
        return None if start is None or other is None else add(start, other)

    def act(a: Any, b: Any, c: Any, d: Any) -> bool | None:
        return overlap(a, end(a, b, ends[0]), c, end(c, d, ends[1]))

    return act


_Z, _I, _S = t.TimestampTz, t.Interval, t.Timestamp
_FIELDS = (*(t.Integer,) * 5, t.Double)
_ROWS: tuple[tuple[str, tuple[type[t.SqlType], ...], t.SqlType, Any], ...] = (
    ("date_add", (_Z, _I), _Z(), stamptz_add),
    ("date_add", (_Z, _I, t.Text), _Z(), _add),
    ("date_subtract", (_Z, _I), _Z(), lambda z, by: stamptz_add(z, interval_negate(by))),
    ("date_subtract", (_Z, _I, t.Text), _Z(), lambda z, by, n: _add(z, interval_negate(by), n)),
    ("date_trunc", (t.Text, _Z, t.Text), _Z(), _truncate),
    ("make_timestamptz", _FIELDS, _Z(), _make),
    ("make_timestamptz", (*_FIELDS, t.Text), _Z(), _make),
    ("timezone", (_I, _S), _Z(), _to_offset),
    ("timezone", (_I, _Z), _S(), _in_offset),
)

TABLE = (
    *(Function(name, takes, gives, act, fallible=True) for name, takes, gives, act in _ROWS),
    *_overlaps(),
)
