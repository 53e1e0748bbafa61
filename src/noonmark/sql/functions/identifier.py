"""What a uuid tells of itself, where it is of RFC 9562: its version, and when it was made."""

from __future__ import annotations

import uuid

from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.time import instant as i

#: From 1582-10-15, where versions 1 and 6 count from, to 1970, in microseconds.
_GREGORIAN = 141_427 * v.DAY_MICROS


def _version(value: uuid.UUID) -> int | None:
    return value.bytes[6] >> 4 if value.bytes[8] & 0xC0 == 0x80 else None


def _timestamp(value: uuid.UUID) -> i.Stamp | None:
    match _version(value):
        case 1:
            return i.timestamptz(value.time // 10 - _GREGORIAN)
        case 7:
            return i.timestamptz(int.from_bytes(value.bytes[:6], "big") * 1000)
    return None


_U = (t.Uuid,)

TABLE = (
    Function("uuid_extract_version", _U, t.SmallInt(), _version, gives_null=True),
    Function("uuid_extract_timestamp", _U, t.TimestampTz(), _timestamp, gives_null=True),
)
