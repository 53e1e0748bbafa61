"""Positions in the location's log, as those who watch a PostgreSQL ask for them.

Law (position): a position is the number of entries of the log that the server knows of. It grows
with every commit, and what a session has committed is below what it then asks for. Every entry is
in the log for good before anybody knows of it: written, flushed and current positions are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noonmark.adapter.system.objects import ask
from noonmark.rows import types as t
from noonmark.rows.coded.lsn import Lsn
from noonmark.sql.functions.function import Function

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


def about_positions(session: AdapterSession) -> list[Function]:
    """The functions of one session."""

    def position() -> bytes:
        return session.database.client.state.seqno.to_bytes(8, "big")

    def nowhere() -> None:
        """No server replays the log of another."""

    lsn = Lsn()
    current = ("pg_current_wal_lsn", "pg_current_wal_insert_lsn", "pg_current_wal_flush_lsn")
    return [
        # Volatile: a statement that is one of several sees what those before it committed.
        *(ask(name, (), lsn, position, volatile=True) for name in current),
        ask("pg_last_wal_receive_lsn", (), lsn, nowhere),
        ask("pg_last_wal_replay_lsn", (), lsn, nowhere),
        ask("pg_last_xact_replay_timestamp", (), t.TimestampTz(), nowhere),
    ]
