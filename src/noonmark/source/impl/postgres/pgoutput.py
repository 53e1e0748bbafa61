"""Messages of PostgreSQL's logical decoding plugin ``pgoutput``, protocol version 1, text values.

Law (total): `parse` gives a message for every payload that the plugin sends; what no source needs
(origins, types, logical messages) is `None`.

A tuple is a list with one entry per column of its relation: bytes, None for NULL, or `UNCHANGED`
for a large value that the update did not touch and the log therefore does not have.

Pure: no socket here.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from noonmark.errors import SourceBroken


class _Unchanged:
    """See `UNCHANGED`."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = _Unchanged()

Value = bytes | None | _Unchanged
Tuple = list[Value]

_SHORT, _INT, _LONG = Struct("!h"), Struct("!i"), Struct("!q")
_OID = Struct("!I")
_COMMIT = Struct("!Bqqq")


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins; `commit_lsn` is where its commit record starts."""

    commit_lsn: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """It ends; `end_lsn` is where its commit record ends: the offset of all its changes."""

    commit_lsn: int
    end_lsn: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as the log has it."""

    name: str
    oid: int
    typmod: int
    in_key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """What the tuples of a relation look like from here on."""

    oid: int
    schema_name: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """An insert (`new`), an update (both; `old` when the log has it) or a delete (`old`).

    `old_is_key`: of the old row only the key is there; the rest of it reads as NULL.
    """

    relation: int
    old: Tuple | None
    new: Tuple | None
    is_insert: bool = False
    old_is_key: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE of some relations."""

    relations: tuple[int, ...]


Message = Begin | Commit | Relation | Change | Truncate


def parse(data: bytes) -> Message | None:
    """The message of one payload."""
    kind = data[:1]
    if kind == b"I":
        return Change(_oid(data, 1), None, _tuple(data, 6)[0], is_insert=True)
    if kind == b"U":
        return _update(data)
    if kind == b"D":
        return Change(_oid(data, 1), _tuple(data, 6)[0], None, old_is_key=data[5:6] == b"K")
    if kind == b"B":
        return Begin(_LONG.unpack_from(data, 1)[0], _OID.unpack_from(data, 17)[0])
    if kind == b"C":
        _, commit_lsn, end_lsn, _ = _COMMIT.unpack_from(data, 1)
        return Commit(commit_lsn, end_lsn)
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        count = _INT.unpack_from(data, 1)[0]
        return Truncate(tuple(_oid(data, 6 + 4 * at) for at in range(count)))
    if kind in (b"O", b"Y", b"M"):
        return None
    raise SourceBroken(f"the log has a message of an unknown kind, {kind!r}")


def _oid(data: bytes, at: int) -> int:
    found: int = _OID.unpack_from(data, at)[0]
    return found


def _update(data: bytes) -> Change:
    old, at = None, 5
    mark = data[5:6]
    if mark in (b"K", b"O"):
        old, at = _tuple(data, 6)
    return Change(_oid(data, 1), old, _tuple(data, at + 1)[0], old_is_key=mark == b"K")


def _tuple(data: bytes, at: int) -> tuple[Tuple, int]:
    """The tuple at a place, and the place behind it."""
    values: Tuple = []
    count = _SHORT.unpack_from(data, at)[0]
    at += 2
    length_of = _INT.unpack_from
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == 0x74:  # t: text
            end = at + 4 + length_of(data, at)[0]
            values.append(data[at + 4 : end])
            at = end
        else:
            values.append(None if kind == 0x6E else UNCHANGED)  # n: NULL, u: unchanged
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
