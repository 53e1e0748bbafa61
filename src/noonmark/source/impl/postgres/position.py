"""Positions in PostgreSQL's log that a source may stop at, start from and confirm.

The server decodes whole records, and whether a transaction is sent is decided by where its commit
record *begins*; its changes stand where that record *ends*. A position inside of a commit record
therefore loses the transaction: it ends beyond the range before, and begins before the range after.
The flush position is such a position whenever the server writes full pages of its log ahead of a
commit (``synchronous_commit = off``). The insert position never is, but what lies below it may be
in memory only, and a crash of the server writes another history there.

Law (exact): no record straddles a `Position`, and all records below it are on upstream's disk. So
every transaction lies whole on one side of it, on the same side for ever.
Law (recent): `exact_position` is at or beyond the end of every commit that was acknowledged before
the call, also of those that were acknowledged before they were flushed.
Law (idle): it writes nothing to a log that is on disk already.

A `Position` is made in this module alone: from the insert position once that is flushed, from the
point that a slot was made at, or from an offset that such a position was bound as. Bindings, starts
of streams and confirmations take no other number.

Where it runs: driver; a `Position` travels to executors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from noonmark.errors import SourceStalled
from noonmark.source.impl.postgres.session import lsn_number, lsn_text

#: What stands at the start of a page of the log, and of the first page of a segment.
_PAGE_HEADER, _SEGMENT_HEADER = 24, 40
_ENDS = """
select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint,
       (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint,
       current_setting('wal_block_size')::bigint,
       pg_size_bytes(current_setting('wal_segment_size'))
"""
#: A commit that waits for the local disk takes everything before it along. Nobody is sent it.
_FLUSH = """
set local synchronous_commit = local;
select pg_logical_emit_message(true, 'noonmark', '')
"""


@dataclass(frozen=True, order=True, slots=True)
class Position:
    """See the module."""

    lsn: int

    @property
    def offset(self) -> int:
        """The first offset that is not complete here: what is bound."""
        return self.lsn + 1

    def __str__(self) -> str:
        return lsn_text(self.lsn)


def of_slot(text: str) -> Position:
    """The consistent point of a slot: where the server had read to, record by record, from disk."""
    return Position(lsn_number(text))


def of_bound(offset: int) -> Position:
    """The position that was bound as an offset."""
    return Position(offset - 1)


def exact_position(connection: Any) -> Position:
    """The end of the log, once it is on upstream's disk.

    Raises:
        SourceStalled: upstream does not write its log out.
    """
    end, flushed = _ends(connection)
    if flushed >= end:
        return Position(end)
    try:
        connection.execute(_FLUSH)
    except psycopg.errors.InsufficientPrivilege as error:
        raise SourceStalled(
            "upstream's role may not have its log written out",
            hint="Grant it EXECUTE on pg_logical_emit_message upstream.",
        ) from error
    later, flushed = _ends(connection)
    if flushed >= later:
        return Position(later)
    if flushed < end:
        raise SourceStalled("upstream does not write its log out")
    return Position(end)


def _ends(connection: Any) -> tuple[int, int]:
    """Where the next record would begin, and up to where the log is on disk."""
    inserted, flushed, page, segment = connection.execute(_ENDS).fetchone()
    return end_of_records(inserted, page, segment), flushed


def end_of_records(inserted: int, page: int, segment: int) -> int:
    """Where the last record ends, given where the next one would begin.

    They differ where the next one begins a page: its header lies between. Nobody flushes, or sends,
    a header alone.

    >>> end_of_records(8192 + 24, 8192, 1 << 24), end_of_records((1 << 24) + 40, 8192, 1 << 24)
    (8192, 16777216)
    >>> end_of_records(8192 + 32, 8192, 1 << 24)
    8224
    """
    if inserted % segment == _SEGMENT_HEADER:
        return inserted - _SEGMENT_HEADER
    if inserted % page == _PAGE_HEADER and inserted % segment != _PAGE_HEADER:
        return inserted - _PAGE_HEADER
    return inserted
