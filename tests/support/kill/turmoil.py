"""Everything at once: definitions change, are renamed and swapped, rows come and go, in few names.

Several clients draw statements over the same few tables, views, schemas and columns, so that each
meets what another has just renamed, dropped or is about to. Most statements are refused with an
error of the client's, which is what should be. What must hold, whatever was said:

- no error is one of the server's (class XX), and no connection ends unless the server was killed;
- what was acknowledged to a client is in the ledger, a table that nobody else touches;
- every relation can be read, and every materialized view is what AUDIT computes from its text.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from noonmark.clock import SYSTEM

LEDGER = """
    create table if not exists public.ledger
        (client int, number int, primary key (client, number))"""
_BEGINNING = (
    "create schema if not exists s0",
    "create schema if not exists s1",
    *(f"create table if not exists {t} (a int primary key, b int, c text)" for t in ("t0", "t1")),
    "create table if not exists t2 (a int, b int, d numeric)",
    "create table if not exists s0.t0 (a int primary key, b int)",
)
_PLACES = ("public", "public", "public", "public", "s0", "s1")
_TABLES = ("t0", "t1", "t2")
_VIEWS = ("m0", "m1", "m2", "m3")
_COLUMNS = ("a", "b", "c", "d")
_KINDS = ("int", "bigint", "text", "numeric(10,2)", "date", "int[]", "jsonb", "double precision")
#: Statements of the catalog: how often, and their text; {t}, {v}, {c}, {k}, {p}, {n} are drawn.
_SAID = (
    (3, "create table {p}.{t} (a int primary key, b int, c text)"),
    (2, "create table if not exists {p}.{t} (a int, b int, unique (b))"),
    (1, "create table {p}.{t} as select a, b from {t}"),
    (4, "create materialized view {p}.{v} as {q}"),
    (3, "create or replace materialized view {p}.{v} as {q}"),
    (1, "create view {p}.{v} as {q}"),
    (2, "alter materialized view {p}.{v} swap with {w}"),
    (1, "alter table {p}.{t} swap with {u}"),
    (2, "alter materialized view {p}.{v} rename to {w}"),
    (2, "alter table {p}.{t} rename to {u}"),
    (2, "alter table {p}.{t} rename column {c} to {d}"),
    (2, "alter table {p}.{t} add column {c} {k}"),
    (1, "alter table {p}.{t} add column {c} int default {n}"),
    (1, "alter table {p}.{t} drop column {c}"),
    (1, "alter table {p}.{t} alter column {c} type {k}"),
    (1, "alter table {p}.{t} set schema {o}"),
    (1, "alter materialized view {p}.{v} set schema {o}"),
    (1, "alter schema {p} rename to {o}"),
    (2, "create schema if not exists {p}"),
    (1, "drop schema {o} cascade"),
    (2, "create index {x} on {p}.{t} ({c})"),
    (1, "create unique index {x} on {p}.{t} ({c})"),
    (1, "create index {x} on {p}.{v} ({c})"),
    (1, "drop index {p}.{x}"),
    (1, "drop table {p}.{t}"),
    (1, "drop table {p}.{t} cascade"),
    (1, "drop materialized view {p}.{v} cascade"),
    (1, "alter materialized view {p}.{v} set (retain history for '{n} minutes')"),
    (1, "truncate {p}.{t}"),
    (12, "insert into {p}.{t} (a, b) values ({n}, {n}), ({n} + 1, null) on conflict do nothing"),
    (6, "insert into {p}.{t} select {n} + i, i from generate_series(1, 20) i"),
    (6, "update {p}.{t} set b = coalesce(b, 0) + {n} where a % 3 = 0"),
    (2, "update {p}.{t} set a = a + 1000 where b = {n}"),
    (5, "delete from {p}.{t} where a % 5 = {n} % 5"),
    (2, "merge into {p}.{t} x using {t} y on x.a = y.b when matched then update set b = y.a "
        "when not matched then insert (a, b) values (y.a, y.b)"),
    (4, "select count(*), sum(a) from {p}.{t}"),
    (4, "select * from {p}.{v}"),
    (2, "select * from {p}.{v} as of at least 0"),
    (2, "begin"), (5, "commit"), (1, "rollback"), (1, "savepoint x"), (1, "rollback to x"),
)  # fmt: skip
_QUERIES = (
    "select a % 4 as a, count(*) as b, sum(b) as c from {t} group by 1",
    "select x.a, y.b from {t} x join {u} y on x.a = y.b",
    "select a, b from {t} where b > {n}",
    "select a, max(b) as b from {v} group by a",
    "select a, b, row_number() over (partition by b order by a) as c from {t}",
    "select a, b from {t} order by b desc, a limit 3",
    "select a from {t} except select b from {u}",
    "select x.a, y.b from {t} x left join {v} y on x.a = y.a",
    "select distinct b as a from {t}",
)


@dataclass
class Turmoil:
    """What clients said in all rounds, and what was wrong."""

    seed: int
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    acknowledged: set[tuple[int, int]] = field(default_factory=set)
    _tried: int = 0

    def round(self, dsn: str, clients: int, statements: int, ended: threading.Event) -> None:
        """All clients say so many statements; `ended` is set when the server was killed."""
        with psycopg.connect(dsn, autocommit=True) as setting:
            setting.execute(LEDGER)
            for text in _BEGINNING:
                with suppress(psycopg.Error):  # another kind of thing has the name by now
                    setting.execute(text)
        self._tried += 1
        threads = [
            threading.Thread(target=self._client, args=(dsn, number, statements, ended))
            for number in range(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def judge(self, dsn: str) -> None:
        """What must hold when nobody says anything any more."""
        with psycopg.connect(dsn, autocommit=True) as client:
            client.execute("set statement_timeout = '60s'")
            found = set(client.execute("select client, number from public.ledger").fetchall())
            if lost := self.acknowledged - found:
                self.violations.append(f"acknowledged and not there: {sorted(lost)[:5]}")
            for kind, place, name in client.execute(_RELATIONS).fetchall():
                one = sql.Identifier(place, name)
                self._judge_one(client, one, audited=kind == "m")

    def _judge_one(self, client: psycopg.Connection, one: sql.Identifier, audited: bool) -> None:
        shown = one.as_string(client)
        asked = [sql.SQL("select * from {}").format(one)]
        if audited:
            asked.append(sql.SQL("audit materialized view {}").format(one))
        for statement in asked:
            try:
                rows = client.execute(statement).fetchall()
            except psycopg.Error as error:
                # A view over values that no longer fit has an error for an answer.
                if not (error.sqlstate or "XX").startswith("22"):
                    self.violations.append(f"{shown}: {error.sqlstate} {error}")
                continue
            self.counts["audited" if statement is not asked[0] else "read"] += 1
            if statement is not asked[0] and rows:
                self.violations.append(f"{shown} is not its definition: {rows[:3]}")

    def _client(self, dsn: str, number: int, statements: int, ended: threading.Event) -> None:
        draw = Random(f"{self.seed} {self._tried} {number}")
        try:
            with psycopg.connect(dsn, autocommit=True) as client:
                client.execute("set statement_timeout = '20s'")
                client.execute("set search_path = public, s0, s1")
                for at in range(statements):
                    self._say(client, drawn(draw))
                    if at % 5 == 0 and client.info.transaction_status == TransactionStatus.IDLE:
                        mine = (number, self._tried * 100_000 + at)
                        client.execute("insert into public.ledger values (%s, %s)", mine)
                        self.acknowledged.add(mine)
        except psycopg.OperationalError as error:
            # The server is gone a moment before whoever killed it says so.
            if not ended.wait(5):
                self.violations.append(f"client {number}: {error.sqlstate} {error}")

    def _say(self, client: psycopg.Connection, text: str) -> None:
        state = "answered"
        start = SYSTEM.monotonic()
        try:
            client.execute(text)
        except psycopg.Error as error:
            if client.closed:
                raise
            state = error.sqlstate or "none"
            if state.startswith("XX") or state == "57014":
                took = SYSTEM.monotonic() - start
                self.violations.append(f"{text}: {state} after {took:.1f} s: {error}")
        self.counts[state] += 1
        if client.info.transaction_status == TransactionStatus.INERROR:
            client.execute("rollback")


_RELATIONS = """
    select c.relkind, n.nspname, c.relname from pg_class c join pg_namespace n
    on n.oid = c.relnamespace
    where c.relkind in ('r', 'm', 'v') and n.nspname in ('public', 's0', 's1')"""


def drawn(draw: Random) -> str:
    """A statement."""
    weights, texts = zip(*_SAID, strict=True)
    (text,) = draw.choices(texts, weights)
    names = {
        "t": draw.choice(_TABLES), "u": draw.choice(_TABLES),
        "v": draw.choice(_VIEWS), "w": draw.choice(_VIEWS),
        "c": draw.choice(_COLUMNS), "d": draw.choice(_COLUMNS),
        "k": draw.choice(_KINDS), "p": draw.choice(_PLACES), "o": draw.choice(_PLACES[-2:]),
        "n": draw.randrange(1, 50), "x": f"i{draw.randrange(3)}",
    }  # fmt: skip
    return text.format(**names, q=draw.choice(_QUERIES).format(**names))
