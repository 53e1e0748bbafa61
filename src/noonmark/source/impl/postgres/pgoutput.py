"""Messages of PostgreSQL's logical decoding plugin ``pgoutput``, protocol version 1, text values.

Law (total): `parse` gives a message for every payload that the plugin sends; what no source needs
(origins, types, logical messages) is `None`.

A tuple is a list with one entry per column of its relation: bytes, None for NULL, or `UNCHANGED`
for a large value that the update did not touch and the log therefore does not have.

Pure: no socket here.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

import msgspec

from noonmark.errors import SourceBroken


class _Unchanged:
    """See `UNCHANGED`."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = _Unchanged()

Value = bytes | None | _Unchanged
Tuple = list[Value]

_SHORT, _INT = Struct("!h"), Struct("!i")
_LENGTH = _INT.unpack_from
_OID = Struct("!I")
_BEGIN = Struct("!qqI")
_COMMIT = Struct("!Bqqq")
# What an old row is: its key, or all of it.
_KEY, _OLD = 0x4B, 0x4F


class Begin(msgspec.Struct, frozen=True, gc=False):
    """A transaction begins; `commit_lsn` is where its commit record starts."""

    commit_lsn: int
    xid: int


class Commit(msgspec.Struct, frozen=True, gc=False):
    """It ends; `end_lsn` is where its commit record ends: the offset of all its changes."""

    commit_lsn: int
    end_lsn: int


class RelationColumn(msgspec.Struct, frozen=True, gc=False):
    """A column as the log has it."""

    name: str
    oid: int
    typmod: int
    in_key: bool


class Relation(msgspec.Struct, frozen=True):
    """What the tuples of a relation look like from here on."""

    oid: int
    schema_name: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


class Change(msgspec.Struct, frozen=True):
    """An insert (`new`), an update (both; `old` when the log has it) or a delete (`old`).

    `old_is_key`: of the old row only the key is there; the rest of it reads as NULL.
    """

    relation: int
    old: Tuple | None
    new: Tuple | None
    is_insert: bool = False
    old_is_key: bool = False


class Truncate(msgspec.Struct, frozen=True):
    """TRUNCATE of some relations."""

    relations: tuple[int, ...]


Message = Begin | Commit | Relation | Change | Truncate


def parse(data: bytes) -> Message | None:
    """The message of one payload. Most are of the first kinds: that is their order here."""
    kind = data[0]
    if kind == 0x42:  # B
        commit_lsn, _, xid = _BEGIN.unpack_from(data, 1)
        return Begin(commit_lsn, xid)
    if kind == 0x43:  # C
        _, commit_lsn, end_lsn, _ = _COMMIT.unpack_from(data, 1)
        return Commit(commit_lsn, end_lsn)
    if kind == 0x49:  # I
        (oid,) = _OID.unpack_from(data, 1)
        return Change(oid, None, _tuple(data, 6)[0], is_insert=True)
    if kind == 0x55:  # U
        return _update(data)
    if kind == 0x44:  # D
        (oid,) = _OID.unpack_from(data, 1)
        return Change(oid, _tuple(data, 6)[0], None, old_is_key=data[5] == _KEY)
    if kind == 0x52:  # R
        return _relation(data)
    if kind == 0x54:  # T
        count = _INT.unpack_from(data, 1)[0]
        return Truncate(tuple(_oid(data, 6 + 4 * at) for at in range(count)))
    if kind in b"OYM":
        return None
    raise SourceBroken(f"the log has a message of an unknown kind, {bytes([kind])!r}")


def _oid(data: bytes, at: int) -> int:
    found: int = _OID.unpack_from(data, at)[0]
    return found


def _update(data: bytes) -> Change:
    old, at = None, 5
    mark = data[5]
    if mark in (_KEY, _OLD):
        old, at = _tuple(data, 6)
    (oid,) = _OID.unpack_from(data, 1)
    return Change(oid, old, _tuple(data, at + 1)[0], old_is_key=mark == _KEY)


def _tuple(data: bytes, at: int) -> tuple[Tuple, int]:
    """The tuple at a place, and the place behind it."""
    values: Tuple = []
    count = data[at] << 8 | data[at + 1]
    at += 2
    for _ in range(count):
        kind = data[at]
        at += 5
        if kind == 0x74:  # t: text
            end = at + _LENGTH(data, at - 4)[0]
            values.append(data[at:end])
            at = end
        else:
            values.append(None if kind == 0x6E else UNCHANGED)  # n: NULL, u: unchanged
            at -= 4
    return values, at


def _relation(data: bytes) -> Relation:
    oid = _oid(data, 1)
    schema_name, at = _string(data, 5)
    name, at = _string(data, at)
    identity = chr(data[at])
    count = _SHORT.unpack_from(data, at + 1)[0]
    at += 3
    columns = []
    for _ in range(count):
        in_key = bool(data[at] & 1)
        column, at = _string(data, at + 1)
        columns.append(
            RelationColumn(column, _oid(data, at), _INT.unpack_from(data, at + 4)[0], in_key)
        )
        at += 8
    return Relation(oid, schema_name or "pg_catalog", name, identity, tuple(columns))


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1
