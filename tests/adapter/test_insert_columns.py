"""INSERT ... SELECT and CREATE TABLE AS by columns do what they do row by row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.peek.answer import Answers
from noonmark.errors import NoonmarkError
from support.serve.reading import Conversation, connect, with_database

MADE = [
    "create type mood as enum ('sad', 'happy')",
    "create table t (id bigint primary key, v text, n int, p numeric(10,2), q numeric, f float8,"
    " b boolean, d date, ts timestamp, tz timestamptz, u uuid, x bytea, i interval, j jsonb,"
    " a int[], m mood, net inet)",
    "insert into t select g, case when g % 7 > 0 then 'ware ' || g end, g % 100, g / 3.0, g * 1.50,"
    " case when g % 11 = 0 then 'NaN' else g / 4.0 end, g % 2 = 0, date '2024-01-01' + g % 300,"
    " timestamp '2024-01-01' + g * interval '1 hour', timestamptz '2024-01-01 00:00Z',"
    " md5(g::text)::uuid, decode(md5(g::text), 'hex'), g * interval '1 minute',"
    " jsonb_build_object('g', g), array[g, null], case g % 2 when 0 then 'sad'::mood end,"
    " ('10.0.0.' || g % 200)::inet from generate_series(1, 400) g",
    "create table twice (k int, w text)",
    "insert into twice select id % 5, 'same' from t",
    "create table one (k int primary key, w varchar(6), c char(8), n int not null)",
    "create table plain (k bigint, w text, p numeric(6,1), f real)",
    "create table strict_later (k int, w text)",
    "alter table strict_later alter w set not null",
    "create table checked (k int check (k < 50), w text)",
    "create table other (k text unique, n int)",
    "create table counted (id bigserial primary key, k int)",
    "create view w as select k, count(*) as n from twice group by k",
]
#: Each is said in turn; what it leaves behind is there for the next.
SAID = [
    "insert into plain select id, v, p, f from t",
    "insert into plain select id, v, p, f from t where id < 100",
    "insert into plain (w, k) select w, k from twice",
    "insert into plain select k, w, null, null from twice",
    "insert into plain select t.id, w.n::text, 1.26, 'NaN' from t join w on w.k = t.n % 5",
    "insert into plain select n, max(v), sum(p), avg(f) from t group by n having count(*) > 1",
    "insert into plain select id, v, id * 1000.0, 1 from t",
    "insert into plain select id, v, 1, 1 / (id - 17) from t",
    "insert into plain select * from plain where k < 20",
    "insert into plain select k, w, p, f from plain order by k limit 7",
    "insert into one select id, 'a', 'b', n from t",
    "insert into one select id, 'a', 'b', n from t where id > 390",
    "insert into one select id + 1000, v, 'b', n from t where id < 10",
    "insert into one select id + 1000, 'abc   ', 'b', n from t where id < 10",
    "insert into one select 2000, 'a', 'b', n from t where id < 3",
    "insert into one select id + 3000, 'a', 'b', nullif(n, 8) from t where id < 10",
    "insert into one select id + 4000, 'much too long', 'b', n from t where id < 10",
    "delete from one where k < 50",
    "insert into one select id, 'again', 'b', n from t where id < 50",
    "insert into one select k + 5000, w, c, n from one where k < 40 on conflict do nothing",
    "insert into strict_later select id, v from t where v is not null",
    "insert into strict_later select id, v from t",
    "insert into checked select n, v from t where n < 50",
    "insert into checked select n, v from t",
    "insert into other select v, n from t where v is not null",
    "insert into other select v, n from t",
    "insert into counted (k) select id from t where id < 5",
    "insert into one select id + 6000, 'r', 'b', n from t where id < 4 returning k, w",
    "create table c1 as select * from t",
    "create table c2 (a, b) as select id, v from t where n > 40",
    "create table c3 as select k, n from w",
    "create table c4 as select id from t with no data",
    "create table c5 as select id, 1 / (id - 5) as z from t",
    "create table c1 as select 1",
    "select id, v into c6 from t where id < 100",
    "begin",
    "create table c7 as select id, v from t",
    "select count(*), sum(id) from c7",
    "insert into c7 select id + 1000, v from t where id < 10",
    "savepoint s",
    "insert into c7 select id + 2000, v from t where id < 10",
    "create table c8 as select * from c7",
    "rollback to s",
    "alter table c7 add column more int",
    "commit",
    "begin",
    "create table c9 as select id, v from t",
    "alter table c9 add primary key (id)",
    "insert into c9 select id, v from t where id < 3",
    "rollback",
    "begin",
    "create table c10 as select k, w from twice",
    "alter table c10 add primary key (k)",
    "rollback",
    "begin",
    "create table c11 as select id, v from t",
    "update c11 set v = 'new' where id < 50",
    "delete from c11 where id > 350",
    "commit",
    "begin",
    "insert into plain select id, 'in a transaction', 1, 1 from t",
    "select count(*) from plain",
    "rollback",
    "create temporary table c12 on commit drop as select id from t",
]
TABLES = [
    "plain", "one", "strict_later", "checked", "other", "counted",
    "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12",
]  # fmt: skip


async def said(client: Conversation, sql: str) -> Any:
    try:
        return await client.ask(sql)
    except NoonmarkError as error:
        return error.sqlstate, error.message, error.detail


async def everything(opened: Database) -> list[Any]:
    """What comes of each statement, and what is in the tables after it."""
    client = await connect(opened)
    for sql in MADE:
        await client.ask(sql)
    other, found = await connect(opened), []
    for sql in SAID:
        answer = await said(client, sql)
        found.append((sql, sorted(map(str, answer)) if isinstance(answer, list) else answer))
        for table in TABLES:
            rows = await said(other, f"select * from {table}")
            found.append((sql, table, sorted(map(str, rows))))
    return found


def test_the_same_by_columns_and_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[list[Any]] = []
    by_columns: list[bool] = []
    plain = Answers.table

    async def counted(answers: Answers, peek: Any, time: int) -> pa.Table | None:
        found = await plain(answers, peek, time)
        by_columns.append(found is not None)
        return found

    async def never(*_: Any) -> None:
        return None

    for way in (counted, never):
        monkeypatch.setattr(Answers, "table", way)

        @with_database
        async def go(opened: Database) -> None:
            opened.reads.answers.columns_rows_min = 1
            outcomes.append(await everything(opened))

        go()
    ours, theirs = outcomes
    for one, other in zip(ours, theirs, strict=True):
        assert one == other
    assert by_columns.count(True) > 20, "by columns wherever nothing has to look at single rows"


def test_what_others_wrote_meanwhile_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the read and the commit somebody writes a key, or to what is read: by rows, then."""
    plain = Answers.table
    meanwhile: list[str] = []

    @with_database
    async def go(opened: Database) -> None:
        opened.reads.answers.columns_rows_min = 1
        client, third = await connect(opened), await connect(opened)
        for sql in ("create table a (k int)", "create table b (k int primary key)",
                    "insert into a select generate_series(1, 100)"):  # fmt: skip
            await client.ask(sql)

        async def written(answers: Answers, peek: Any, time: int) -> pa.Table | None:
            found = await plain(answers, peek, time)
            while meanwhile:
                await third.ask(meanwhile.pop())
            return found

        monkeypatch.setattr(Answers, "table", written)
        meanwhile.append("insert into b values (7)")
        answer = await said(client, "insert into b select k from a")
        assert answer[0] == "23505"
        assert await client.ask("select * from b") == [(7,)]
        meanwhile.append("insert into a values (2000)")
        assert await client.ask("insert into b select k from a where k > 50") == "INSERT 0 51"
        assert await client.ask("select min(k), max(k), count(*) from b") == [(7, 2000, 52)]

    go()
