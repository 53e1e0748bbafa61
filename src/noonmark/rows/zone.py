"""Time zones by name, and how far their clocks are from UTC at any time that a timestamp has.

Python's zones know the years 1 to 9999. The calendar repeats every 400 years, weekdays included: a
time outside is looked up in a year of the same shape, early for early times (before there were
zones, where the local mean time holds) and late for late ones (where the last rule goes on).
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from functools import cache

from noonmark.errors import InvalidArgument
from noonmark.rows import value as v
from noonmark.rows.abbreviation import MINUTES

_CYCLE = 146_097 * v.DAY_MICROS
_MICRO = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1)
#: From years that a zone's offset cannot lead out of.
_EARLY, _LATE = ((dt.datetime(year, 1, 1) - _EPOCH) // _MICRO for year in (2, 9998))
#: POSIX: a name that says nothing, and hours west of UTC.
_POSIX = re.compile(r"(?:<[^<>]+>|[^0-9+,-]+)?([+-]?)(\d{1,2})(?::([0-5]?\d))?(?::([0-5]?\d))?")


@cache
def zone_named(name: str) -> dt.tzinfo:
    """The zone of a name, an abbreviation or an offset, in any case.

    Raises:
        InvalidArgument: there is none.
    """
    word = name.strip().lower()
    if word in ("utc", "gmt", "z"):
        return dt.UTC
    known = _names().get(word)
    if known is not None:
        return zoneinfo.ZoneInfo(known)
    if word in MINUTES:
        return dt.timezone(dt.timedelta(minutes=MINUTES[word]))
    posix = _POSIX.fullmatch(word)
    if posix is None or int(posix[2]) > 15:
        raise InvalidArgument(f'time zone "{name}" not recognized')
    hours, minutes, seconds = (int(posix[at] or 0) for at in (2, 3, 4))
    west = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return dt.timezone(west if posix[1] == "-" else -west)


@cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in zoneinfo.available_timezones()}


def _near(micros: int) -> dt.datetime:
    """A time of the same shape that Python has."""
    if micros < _EARLY:
        micros += ((_EARLY - micros) // _CYCLE + 1) * _CYCLE
    elif micros > _LATE:
        micros -= ((micros - _LATE) // _CYCLE + 1) * _CYCLE
    return _EPOCH + dt.timedelta(microseconds=micros)


def instant_offset(micros: int, zone: dt.tzinfo) -> int:
    """How many microseconds the zone's clocks are before UTC at an instant."""
    local = _near(micros).replace(tzinfo=dt.UTC).astimezone(zone)
    return (local.utcoffset() or dt.timedelta()) // _MICRO


def local_offset(micros: int, zone: dt.tzinfo) -> int:
    """The same, for what the zone's clocks show.

    What they show twice, or never, is read as PostgreSQL reads it: by the time that is not ahead.
    """
    shown = _near(micros)
    offsets = [shown.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)]
    return min(offset or dt.timedelta() for offset in offsets) // _MICRO
