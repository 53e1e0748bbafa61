"""A time as people write it: milliseconds since the epoch, or a timestamp."""

from __future__ import annotations

import datetime as dt

from noonmark.rows import types as t
from noonmark.rows.pg.text import parse_value

Time = int | str | dt.datetime

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def time_of(value: Time) -> int:
    """A time in milliseconds since the epoch; a timestamp without a zone is in UTC."""
    if isinstance(value, str) and not value.strip().isdigit():
        value = parse_value(value, t.TimestampTz())
    if isinstance(value, dt.datetime):
        zoned = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        return (zoned - _EPOCH) // dt.timedelta(milliseconds=1)
    return int(value)
