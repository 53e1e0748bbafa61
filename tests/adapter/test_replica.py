"""Replicas: exact at their own frontier, strict when the writer is asked; they write nothing."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.replica import questions, work
from noonmark.adapter.replica.database import ReadOnlyDatabase
from noonmark.adapter.replica.questions import Answer
from noonmark.adapter.replica.refused import check
from noonmark.adapter.statement.handlers import HANDLERS, READS
from noonmark.clock import SYSTEM
from noonmark.errors import (
    ConfigError,
    InsufficientPrivilege,
    NoonmarkError,
    NotYetComplete,
    ReadOnly,
    UndefinedTable,
    Unsupported,
)
from noonmark.persist import question
from noonmark.persist.client import Options
from noonmark.sql.statement import statement as st
from support.serve.reading import Conversation, connect, database
from support.strict.history import Op, violations

STRICT = {"transaction_isolation": "strict serializable"}
Test = Callable[..., Coroutine[Any, Any, None]]


@asynccontextmanager
async def following(folder: Path) -> AsyncIterator[ReadOnlyDatabase]:
    opened = await ReadOnlyDatabase.follow(str(folder))
    try:
        yield opened
    finally:
        await opened.close()


@asynccontextmanager
async def writing(folder: Path) -> AsyncIterator[Database]:
    async with database(str(folder), options=Options()) as opened:
        yield opened


def beside(test: Test) -> Callable[[Path], None]:
    """A test over a writer, and a replica for each of its further parameters."""
    replicas = len(signature(test).parameters) - 1

    @wraps(test)
    def run(tmp_path: Path) -> None:
        async def go() -> None:
            async with asyncio.timeout(120), AsyncExitStack() as stack:
                writer = await stack.enter_async_context(writing(tmp_path))
                opened = [
                    await stack.enter_async_context(following(tmp_path)) for _ in range(replicas)
                ]
                await test(writer, *opened)

        asyncio.run(go())

    del run.__wrapped__  # type: ignore[attr-defined] - pytest would ask for its parameters
    return run


async def refused(client: Conversation, sql: str) -> NoonmarkError:
    with pytest.raises(NoonmarkError) as caught:
        await client.ask(sql)
    return caught.value


# -- what is refused -------------------------------------------------------------------------------


def test_every_kind_of_statement_is_a_read_or_refused() -> None:
    for kind in HANDLERS:
        statement = object.__new__(kind)
        if kind in READS:
            continue
        with pytest.raises(ReadOnly, match=r"cannot execute [A-Z ]+ in a read-only server"):
            check(statement)
    for kind in (st.Insert, st.Update, st.Delete, st.Truncate, st.Audit, st.CreateTable, st.Drop):
        assert kind in HANDLERS and kind not in READS  # noqa: PT018


WRITES = """
insert into t values (1, 1)
update t set v = 1
delete from t
truncate t
copy t from stdin
create table x (a int)
create table x as select 1 as a
create temporary table x (a int)
create view x as select 1 as a
create materialized view x as select * from t
create index on t (k)
create source s from load generator counter
create sink s from t into kafka connection k (topic 'x') format json envelope upsert
create role r
create schema s
create secret s as 'x'
alter table t add column z int
alter table t rename to s
alter role noonmark password 'x'
grant select on t to public
comment on table t is 'x'
drop table t
drop view if exists nothing
audit materialized view mv
explain materialized view mv
refresh materialized view mv
"""


@beside
async def test_writes_are_refused_by_name(writer: Database, replica: Database) -> None:
    await (await connect(writer)).ask("create table t (k int, v int)")
    client = await connect(replica)
    for sql in WRITES.strip().splitlines():
        error = await refused(client, sql)
        assert isinstance(error, ReadOnly), f"{sql}: {error!r}"
        assert "in a read-only server" in error.message
        assert "server that writes" in (error.hint or "")
    await client.ask("begin")
    assert isinstance(await refused(client, "insert into t values (1, 1)"), ReadOnly)
    await client.ask("rollback")
    with pytest.raises(ReadOnly):
        await replica.receive("hook", b"", {})
    assert await client.ask("show transaction_read_only") == [("on",)]
    assert await client.ask("show transaction_isolation") == [("serializable",)]


def test_without_a_location_it_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no storage location"):
        asyncio.run(ReadOnlyDatabase.follow(str(tmp_path / "nothing")))


# -- without a writer ------------------------------------------------------------------------------

READ_STATEMENTS = """
select * from t
select k, sum(v) from t group by k order by k
select * from v
select count(*) from t, t as u
select relname from pg_class where relname = 't'
show tables
explain select * from t
explain timestamp for select * from t
show all
"""


def test_reads_go_on_without_a_writer_and_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "PATIENCE_S", 0.3)

    async def go() -> None:
        async with writing(tmp_path) as writer:
            client = await connect(writer)
            await client.ask("create table t (k int, v int)")
            await client.ask("create view v as select k from t where v > 0")
            await client.ask("create table new (a int)")
            await client.ask("insert into t values (1, 1), (2, 0)")
        async with following(tmp_path) as replica:
            client = await connect(replica)
            seqno = replica.client.state.seqno
            for sql in READ_STATEMENTS.strip().splitlines():
                assert await client.ask(sql), sql
            assert sorted(await client.ask("select * from t")) == [(1, 1), (2, 0)]
            error = await refused(client, "select * from new")
            assert isinstance(error, NotYetComplete)
            assert '"new"' in error.message
            strict = await connect(replica, **STRICT)
            error = await refused(strict, "select * from t")
            assert isinstance(error, Unsupported)
            assert "serializable" in (error.hint or "")
            assert await strict.ask("select 1") == [(1,)]
            assert await strict.ask("select relname from pg_class where relname = 't'") == [("t",)]
            replica.client.runtime.submit(replica.client.journal.refresh()).result(10)
            assert replica.client.state.seqno == seqno
            assert not replica.spark_has_started

    asyncio.run(go())


# -- beside a writer -------------------------------------------------------------------------------


@beside
async def test_the_catalog_is_followed(writer: Database, replica: Database) -> None:
    own, client = await connect(writer), await connect(replica, **STRICT)
    await own.ask("create table t (a int)")
    assert await client.ask("select * from t") == []
    await own.ask("alter table t rename to u")
    assert isinstance(await refused(client, "select * from t"), UndefinedTable)
    await own.ask("insert into u values (1)")
    assert await client.ask("select * from u") == [(1,)]
    await own.ask("alter table u add column b int")
    assert await client.ask("select * from u") == [(1, None)]
    await own.ask("create view v as select a + 1 as c from u")
    assert await client.ask("select * from v") == [(2,)]
    await own.ask("create or replace view v as select a + 2 as c from u")
    assert await client.ask("select * from v") == [(3,)]
    await own.ask("drop table u cascade")
    assert isinstance(await refused(client, "select * from v"), UndefinedTable)


@beside
async def test_rights_and_passwords_are_those_of_the_location(
    writer: Database, replica: Database
) -> None:
    root = await connect(writer)
    await root.ask("create role ann login password 'secret'")
    await root.ask("create table t (a int)")
    await root.ask("insert into t values (1)")
    session = await replica.connect("ann", "noonmark", STRICT, "test")
    ann = Conversation(session)
    assert isinstance(await refused(ann, "select * from t"), InsufficientPrivilege)
    await root.ask("grant select on t to ann")
    assert await ann.ask("select * from t") == [(1,)]
    await root.ask("revoke select on t from ann")
    assert isinstance(await refused(ann, "select * from t"), InsufficientPrivilege)
    assert await replica.verifier("ann") == await writer.verifier("ann") is not None


@beside
async def test_temporary_objects_of_the_writer_are_not_the_replicas(
    writer: Database, replica: Database
) -> None:
    own, client = await connect(writer), await connect(replica, **STRICT)
    await own.ask("create temporary table t (a int)")
    assert isinstance(await refused(client, "select * from t"), UndefinedTable)
    await client.session.close()
    assert await own.ask("select * from t") == []


@beside
async def test_a_transaction_of_a_replica_is_at_one_time(
    writer: Database, replica: Database
) -> None:
    own, client = await connect(writer), await connect(replica, **STRICT)
    for sql in ("create table t (a int)", "create table u (a int)", "insert into t values (1)"):
        await own.ask(sql)
    await client.ask("begin")
    assert await client.ask("select * from t") == [(1,)]
    await own.ask("insert into u values (2)")
    await own.ask("delete from t")
    assert await client.ask("select * from t, u") == []
    assert await client.ask("select * from t") == [(1,)]
    await client.ask("commit")
    assert await client.ask("select count(*) from t, u") == [(0,)]


@beside
async def test_a_subscription_through_a_replica_is_that_of_the_writer(
    writer: Database, replica: Database, other: Database
) -> None:
    own = await connect(writer)
    await own.ask("create table t (k int, v int)")
    await own.ask("create table u (k int)")
    await own.ask("insert into u values (1)")
    ((start,),) = await own.ask("select mz_now() from u")
    for n in range(20):
        await own.ask(f"insert into t values ({n % 3}, {n})")
        if n % 4 == 0:
            await own.ask(f"update t set v = v + 1 where k = {n % 3}")
    ((end,),) = await own.ask("select mz_now() from t limit 1")
    for query in (
        "subscribe t as of {} up to {}",
        "subscribe (select k, count(*) from t group by k) as of {} up to {}",
        "subscribe (select t.v from t join u on t.k = u.k) with (progress) as of {} up to {}",
    ):
        sql = query.format(start, end + 1)
        answers = [await (await connect(each)).ask(sql) for each in (writer, replica, other)]
        changes = [sorted(row for row in rows if row[1] is not True) for rows in answers]
        assert changes[0] == changes[1] == changes[2] != []


@beside
async def test_progress_goes_on_where_nothing_happens(writer: Database, replica: Database) -> None:
    await (await connect(writer)).ask("create table t (a int)")
    stream = await (await connect(replica, **STRICT)).stream("subscribe t with (progress)")
    chunks, told = aiter(stream.chunks), []
    async with asyncio.timeout(30):
        while len(told) < 3:
            told += [row[0] for row in await anext(chunks) if row[1]]
    await stream.chunks.aclose()
    assert told == sorted(set(told))


# -- exact and strict ------------------------------------------------------------------------------

LISTS = 3


class History:
    """Appends through the writer, and strict reads through everybody; see `strict.history`."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.values = itertools.count()

    async def append(self, client: Conversation, at: int) -> None:
        lists = sorted({at % LISTS, (at // 2) % LISTS})
        appends = tuple((each, next(self.values)) for each in lists)
        began = SYSTEM.monotonic()
        await client.ask("begin")
        for each, value in appends:
            await client.ask(f"insert into l{each} values ({value})")
        await client.ask("commit")
        self.ops.append(Op(began, SYSTEM.monotonic(), "ok", appends))

    async def read(self, client: Conversation, at: int) -> None:
        began = SYSTEM.monotonic()
        await client.ask("begin")
        reads = {}
        for each in {at % LISTS, (at + at // 5) % LISTS}:
            reads[each] = frozenset(row[0] for row in await client.ask(f"select v from l{each}"))
        ((line,),) = await client.ask("explain timestamp for select v from l0")
        await client.ask("commit")
        time = int(line.rpartition(" ")[2])
        self.ops.append(Op(began, SYSTEM.monotonic(), "ok", (), reads, time))


async def judged(writer: Database, *replicas: Database) -> list[str]:
    """What is wrong with a history of appends through the writer and strict reads everywhere."""
    root, history = await connect(writer), History()
    for each in range(LISTS):
        await root.ask(f"create table l{each} (v int)")
    ((start,),) = await root.ask("select max(m) from (select mz_now() as m, count(*) from l0) as s")

    async def many(opened: Database, act: Test) -> None:
        client = await connect(opened, **STRICT)
        for at in range(30):
            await act(client, at)

    await history.append(root, 0)
    readers = (writer, *replicas, *replicas)
    await asyncio.gather(
        *(many(writer, history.append) for _ in range(2)),
        *(many(each, history.read) for each in readers),
    )
    await root.ask("insert into l0 values (-1)")
    ((end,),) = await root.ask("select mz_now() from l0 limit 1")
    written: dict[int, int] = {}
    for each in range(LISTS):
        rows = await root.ask(f"subscribe l{each} as of {start} up to {end}")
        written |= {row[2]: row[0] for row in rows}
    return violations(history.ops, written)


@beside
async def test_strict_reads_through_replicas_are_strict(
    writer: Database, first: Database, second: Database
) -> None:
    assert await judged(writer, first, second) == []


@beside
async def test_reads_that_ask_nobody_are_found_out(
    writer: Database, first: ReadOnlyDatabase, second: ReadOnlyDatabase
) -> None:
    """The judge of the test above: with another time than the oracle's it finds something."""

    async def long_ago() -> int:
        names = [f"l{each}" for each in range(LISTS)]
        return max(first.client.state.collection(name).since.only() or 0 for name in names)

    for replica in (first, second):
        replica.oracle.read_ts = long_ago  # type: ignore[method-assign]
    assert await judged(writer, first, second)


@beside
async def test_what_a_replica_answers_at_a_time_the_writer_answers_there(
    writer: Database, first: Database, second: Database
) -> None:
    own = await connect(writer)
    await own.ask("create table t (k int primary key, v int)")
    await own.ask("create table u (k int, w int)")
    queries = ("select * from t", "select k, sum(w) from u group by k",
               "select * from t join u using (k)")  # fmt: skip
    seen: list[tuple[str, int, list[Any]]] = []

    async def write() -> None:
        for n in range(60):
            insert, delete = f"insert into t values ({n}, {n})", f"delete from t where k < {n - 5}"
            await own.ask(insert if n % 2 else delete)
            await own.ask(f"insert into u values ({n % 7}, {n})")

    async def read(opened: Database) -> None:
        client = await connect(opened)
        while not done.done():
            for query in queries:
                await client.ask("begin")
                rows = await client.ask(query)
                ((line,),) = await client.ask(f"explain timestamp for {query}")
                await client.ask("commit")
                seen.append((query, int(line.rpartition(" ")[2]), sorted(rows)))

    done = asyncio.ensure_future(write())
    await asyncio.gather(done, read(first), read(second))
    assert len({time for _, time, _ in seen}) > 5
    for query, time, rows in seen:
        assert sorted(await own.ask(f"{query} as of {time}")) == rows, (query, time)


# -- the channel -----------------------------------------------------------------------------------


@beside
async def test_only_the_writer_is_believed(writer: Database, replica: ReadOnlyDatabase) -> None:
    """Who listens at the address of a writer that is gone has not its lock, and cannot sign."""
    asked = []

    async def forge(reader: asyncio.StreamReader, stream: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(4))
        body = msgspec.msgpack.encode(Answer(1))
        frame = bytes(question._MAC + question._NONCE) + body
        stream.write(question.ANSWERS + question.LENGTH.pack(len(frame)) + frame)
        await stream.drain()
        stream.close()

    await (await connect(writer)).ask("create table t (a int)")
    client = await connect(replica, **STRICT)
    assert await client.ask("select * from t") == []
    server = await asyncio.start_server(forge, "127.0.0.1", 0)
    state = replica.client.state
    assert state.lock is not None
    port = server.sockets[0].getsockname()[1]
    moved = msgspec.structs.replace(state.lock, address=f"127.0.0.1:{port}")
    replica.client.journal.state = msgspec.structs.replace(state, lock=moved)
    assert isinstance(await refused(client, "select * from t"), Unsupported)
    assert asked
    server.close()


@beside
async def test_a_writer_that_is_silent_is_not_waited_for(
    writer: Database, replica: ReadOnlyDatabase
) -> None:
    await (await connect(writer)).ask("create table t (a int)")
    client = await connect(replica, **STRICT)
    assert await client.ask("select * from t") == []

    async def never(_: bytes) -> bytes:
        return await asyncio.Future()

    writer.client.answerer = never
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(questions, "ANSWER_S", 0.2)
        error = await refused(client, "select * from t")
    assert isinstance(error, Unsupported)
    assert "did not answer" in (error.detail or "")
    assert await (await connect(replica)).ask("select * from t") == []


@beside
async def test_who_cannot_sign_is_told_nothing(writer: Database) -> None:
    lock = writer.client.state.lock
    assert lock is not None
    host, _, port = lock.address.rpartition(":")
    length = question.LENGTH.pack
    for said in (b"x", bytes(100), length(1 << 30), length(64) + bytes(64)):
        reader, stream = await asyncio.open_connection(host, int(port))
        stream.write(said)
        stream.write_eof()
        async with asyncio.timeout(10):
            assert question.ANSWERS not in await reader.read()
        stream.close()
