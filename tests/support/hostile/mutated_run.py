"""Statements that are nearly right, said to a server: what it may not answer.

A violation is an internal error (XX000), a damaged relation (XX001) or another of that class, a
connection that ends, and a relation that cannot be read when all is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import psycopg
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus

from support.hostile.mutated import Mutations

#: What ends a session on purpose, streams for ever, waits, or asks other machines.
_LEFT_OUT = ("terminate", "subscribe", "sleep", "://")
_COPIES = (ExecStatus.COPY_IN, ExecStatus.COPY_OUT, ExecStatus.COPY_BOTH)
_RELATIONS = """
    select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n
    on n.oid = c.relnamespace where c.relkind in ('r', 'm', 'v') and c.oid >= 16384"""


class MutatedRun:
    """One client that types badly."""

    def __init__(self, dsn: str, seed: int) -> None:
        self._dsn = dsn
        self._mutations = Mutations(seed)
        self._client = self._connected()
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()

    def run(self, count: int, advance: Callable[[], None] = lambda: None) -> None:
        """Say what is right, so that there is something; then `count` statements that are not."""
        for text in self._mutations.texts:
            self._say(text)
        for number in range(count):
            self._say(self._mutations.next())
            if number % 100 == 99:
                self._begin_anew()
            advance()
        self._begin_anew()
        self._read_all()
        self._client.close()

    def _connected(self) -> psycopg.Connection:
        client = psycopg.connect(self._dsn, autocommit=True)
        client.execute("set statement_timeout = '3s'")
        return client

    def _begin_anew(self) -> None:
        self._client.close()
        self._client = self._connected()

    def _say(self, text: str) -> str:
        if any(word in text.lower() for word in _LEFT_OUT):
            return ""
        found = self._client.pgconn.exec_(text.encode())
        state, told = "answered", ""
        if found.status == ExecStatus.FATAL_ERROR:
            state = (found.error_field(DiagnosticField.SQLSTATE) or b"none").decode()
            told = (found.error_field(DiagnosticField.MESSAGE_PRIMARY) or b"").decode()
        self.counts[state] += 1
        lost = self._client.pgconn.status != ConnStatus.OK
        if state.startswith("XX") or lost:
            self.violations.append(f"{state}{' and the end' if lost else ''}: {told}: {text}")
        if lost or found.status in _COPIES:
            self._begin_anew()
        return state

    def _read_all(self) -> None:
        for (name,) in self._client.execute(_RELATIONS).fetchall():
            self._say(f"select count(*) from (select * from {name}) r")
