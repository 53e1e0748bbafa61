"""What goes wrong upstream of a PostgreSQL source, and what becomes of it: definite, or waited for.

One test per row of the table in ``docs/sources/faults.md``.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from noonmark.errors import SourceStalled
from noonmark.ingest.ingestion import Ingestion
from noonmark.persist.client import Client, open_location
from noonmark.source.impl.postgres import Postgres, drop_slot_now
from support.ingest.logical_ingest import Running, contents, ingest, reasons
from support.neighbour.logical import Upstream
from support.store.clocks import SetClock


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_location(tmp_path / "location") as opened:
        yield opened


@pytest.fixture
def running(upstream: Upstream, client: Client) -> Iterator[Running]:
    made = Running(upstream, client)
    yield made
    made.source.close()


def test_truncate_retracts_what_that_table_held(running: Running) -> None:
    assert running.after("truncate a", "insert into b values (2, 'b')") == []
    assert contents(running.client, "a") == Counter()
    assert len(contents(running.client, "b")) == 2
    assert running.after("truncate b", "insert into b values (3, 'c')") == []
    assert contents(running.client, "b") == Counter([(3, "c")])


def test_an_added_column_is_harmless(running: Running) -> None:
    for table in ("a", "b"):
        found = running.after(
            f"alter table {table} add column extra int default 7",
            f"insert into {table} values (2, 'two', 3)",
            f"update {table} set word = 'one' where id = 1",
        )
        assert found == []
        assert contents(running.client, table) == Counter([(1, "one"), (2, "two")])


@pytest.mark.parametrize("table", ["a", "b"])
def test_a_dropped_column_ends_its_table_and_no_other(running: Running, table: str) -> None:
    other = {"a": "b", "b": "a"}[table]
    found = running.after(
        f"alter table {table} drop column word",
        f"insert into {table} values (2)",
        f"insert into {other} values (2, 'two')",
    )
    assert set(found) == {
        'column "word" was dropped upstream',
        f"a column of table public.{table} was dropped, renamed or given another type upstream",
    }
    assert running.errors_of(other) == []
    assert len(contents(running.client, other)) == 2
    assert set(running.ended()) == {table}
    # It is told once, and not at every tick.
    assert len(running.after("select 1")) == len(found)


def test_a_column_that_was_dropped_and_made_again_is_another_one(running: Running) -> None:
    found = running.after("alter table b drop column word", "alter table b add column word text")
    assert found == [
        "a column of table public.b was dropped, renamed or given another type upstream"
    ]
    assert running.ended() == {"b": found[0]}


def test_another_type_ends_its_table(running: Running) -> None:
    found = running.after(
        "alter table a alter column word type varchar(3)", "insert into a values (2, 'x')"
    )
    assert set(found) == {
        'column "word" has another type upstream',
        "a column of table public.a was dropped, renamed or given another type upstream",
    }
    assert set(running.ended()) == {"a"}


@pytest.mark.parametrize("table", ["a", "b"])
def test_a_type_that_comes_back_before_anyone_asks_ends_its_table_too(
    running: Running, table: str
) -> None:
    """What the catalogs say between two looks is not seen there; the log has it."""
    running.after(
        f"alter table {table} alter column word type varchar(3)",
        f"insert into {table} values (2, 'x')",
        f"alter table {table} alter column word type text",
    )
    assert running.ended() == {table: 'column "word" has another type upstream'}


def test_null_where_there_was_none(upstream: Upstream, client: Client) -> None:
    upstream.run(
        "create table t (id int primary key, n int not null)",
        "alter table t replica identity full",
    )
    source = upstream.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    upstream.run("alter table t alter n drop not null", "insert into t values (1, null), (2, 2)")
    ingestion.tick()
    assert contents(client, "t") == Counter([(2, 2)])
    assert reasons(client) == ['column "n": NULL, and it was NOT NULL']
    source.close()


def test_a_value_that_its_type_here_cannot_hold(upstream: Upstream, client: Client) -> None:
    upstream.run(
        "create table t (id int primary key, n numeric(10,2))",
        "alter table t replica identity full",
    )
    upstream.run("insert into t values (1, 'NaN')")
    source = upstream.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    assert len(reasons(client)) == 1
    upstream.run("insert into t values (2, 'NaN'), (3, 3)", "update t set n = 1 where id = 1")
    ingestion.tick()
    assert sorted(row[0] for row in contents(client, "t")) == [1, 3]
    assert len(reasons(client)) == 2
    source.close()


def test_a_keyed_row_of_the_snapshot_that_cannot_be_read_is_mended_by_its_key(
    upstream: Upstream, client: Client
) -> None:
    upstream.run("create table t (id int primary key, n numeric(10,2))")
    upstream.run("insert into t values (1, 'NaN'), (2, 2), (3, 'NaN')")
    source = upstream.source()
    upstream.run("update t set n = 20 where id = 2")
    ingestion = ingest(client, source)
    ingestion.tick()
    assert [(row[0], int(row[1])) for row in contents(client, "t")] == [(2, 20)]
    assert sorted(row[3] for row in contents(client, "pg_errors")) == ["(1)", "(3)"]
    upstream.run("update t set n = 10 where id = 1", "delete from t where id = 3")
    ingestion.tick()
    assert sorted((row[0], int(row[1])) for row in contents(client, "t")) == [(1, 10), (2, 20)]
    assert reasons(client) == []
    source.close()


def test_a_dropped_table_ends_and_no_other(running: Running) -> None:
    found = running.after("drop table a", "insert into b values (2, 'b')")
    assert found == ["table public.a was dropped upstream"]
    assert running.errors_of("a") == found
    assert running.ended() == {"a": found[0]}
    assert len(contents(running.client, "b")) == 2


def test_a_table_made_again_is_another_one(running: Running) -> None:
    assert running.after(
        "drop table a",
        "create table a (id int primary key, word text)",
        "insert into a values (5, 'other')",
    ) == ["table public.a was dropped upstream"]
    assert running.ended() == {"a": "table public.a was dropped upstream"}


def test_a_table_that_is_published_no_more(running: Running) -> None:
    gone = "table public.a was taken out of the publication"
    found = running.after("drop publication p", "create publication p for table b")
    assert running.ended()["a"] == gone
    # Nor does anyone know what happened to the other one while there was no publication.
    assert found == sorted([gone, running.ended()["b"]])


def test_another_replica_identity_ends_its_table(running: Running) -> None:
    found = running.after("alter table b replica identity default", "update b set word = 'x'")
    assert set(found) == {
        "the log has no old row: REPLICA IDENTITY is not FULL any more",
        "the replica identity of table public.b was changed",
    }
    assert set(running.ended()) == {"b"}


def test_a_dropped_publication_ends_the_source(running: Running) -> None:
    assert running.after("drop publication p") == ['publication "p" was dropped upstream']
    assert running.errors_of(None) == ['publication "p" was dropped upstream']
    assert running.ended() == dict.fromkeys("ab", 'publication "p" was dropped upstream')


def test_a_publication_that_leaves_changes_out_ends_the_source(running: Running) -> None:
    assert running.after("alter publication p set (publish = 'insert, update, delete')") == [
        'publication "p" leaves changes out that it published before'
    ]


def test_a_dropped_slot_ends_the_source(running: Running) -> None:
    slot = running.source.slot
    reason = f'replication slot "{slot}" was dropped upstream'
    assert running.after(f"select pg_drop_replication_slot('{slot}')") == [reason]
    # Nothing more is said, and nothing is read.
    assert running.after("insert into a values (2, 'x')") == [reason]
    assert running.ended() == {"a": reason, "b": reason}


def test_a_slot_made_again_has_lost_what_came_before(running: Running) -> None:
    slot = running.source.slot
    found = running.after(
        f"select pg_drop_replication_slot('{slot}')",
        "insert into a values (2, 'lost')",
        f"select pg_create_logical_replication_slot('{slot}', 'pgoutput')",
    )
    assert found == [f'replication slot "{slot}" was moved or made again by somebody else']
    assert running.ended() == dict.fromkeys("ab", found[0])


def test_a_slot_that_somebody_else_moved(running: Running) -> None:
    slot = running.source.slot
    found = running.after(
        "insert into a values (2, 'lost')",
        f"select pg_replication_slot_advance('{slot}', pg_current_wal_lsn())",
    )
    assert found == [f'replication slot "{slot}" was moved or made again by somebody else']
    assert running.ended() == dict.fromkeys("ab", found[0])


def test_a_slot_that_goes_between_binding_and_reading(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot, upstream = running.source.slot, running.upstream
    real = Ingestion.catch_up

    def late(self: Ingestion, time: int) -> tuple[int, int]:
        upstream.run(f"select pg_drop_replication_slot('{slot}')")
        return real(self, time)

    monkeypatch.setattr(Ingestion, "catch_up", late)
    found = running.after("insert into a values (2, 'x')")
    assert found == [f'replication slot "{slot}" was dropped upstream']
    assert running.ended() == dict.fromkeys("ab", found[0])


def test_a_slot_that_somebody_reads_is_waited_for(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    from noonmark.source.impl.postgres import stream
    from noonmark.source.impl.postgres.session import replication

    monkeypatch.setattr(stream, "_TAKEN_S", 0.2)
    other = replication(running.upstream.url)
    options = "(proto_version '1', publication_names 'p')"
    other.exec_(f"START_REPLICATION SLOT {running.source.slot} LOGICAL 0/0 {options}".encode())
    running.upstream.run("insert into a values (2, 'x')")
    with pytest.raises(SourceStalled, match="is active for PID"):
        running.ingestion.tick()
    other.finish()
    monkeypatch.setattr(stream, "_TAKEN_S", 10.0)
    running.ingestion.tick()
    assert len(contents(running.client, "a")) == 2


def test_a_reader_that_takes_its_time_is_heard_of(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    from noonmark.source.impl.postgres import stream
    from noonmark.source.impl.postgres.position import exact_position

    monkeypatch.setattr(stream, "_STATUS_S", 0.1)
    upstream, source = running.upstream, running.source
    upstream.run(f"alter database {upstream.name} set wal_sender_timeout = '600ms'")
    start = exact_position(upstream.session)
    # More than fits between the two: the server waits for the reader.
    row = "insert into a values ({}, repeat('x', 200000))"
    upstream.run(*map(row.format, range(2, 82)))
    span = (start, exact_position(upstream.session))
    found, pause = 0, threading.Event()
    for _ in stream.messages(upstream.url, source.slot, source.publication, span):
        pause.wait(0.01)
        found += 1
    assert found > 2 * 80


def test_a_session_that_is_killed_is_made_again(running: Running) -> None:
    kill = "select pg_terminate_backend(pid) from pg_stat_activity where application_name ="
    running.upstream.run(f"{kill} 'noonmark'", "insert into a values (2, 'x')")
    try:
        running.ingestion.tick()
    except SourceStalled:
        running.ingestion.tick()
    assert len(contents(running.client, "a")) == 2


def test_no_server_is_waited_for(upstream: Upstream, client: Client) -> None:
    upstream.run("create table t (id int primary key)")
    source = upstream.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    source.close()
    nowhere = Postgres.from_plain("postgresql://postgres@127.0.0.1:1/x", source.to_plain())
    ingestion.source = nowhere
    with pytest.raises(SourceStalled, match="does not answer"):
        ingestion.tick()
    ingestion.source = source
    upstream.run("insert into t values (1)")
    ingestion.tick()
    assert len(contents(client, "t")) == 1
    source.close()


def test_another_cluster_or_timeline_ends_the_source(upstream: Upstream, client: Client) -> None:
    upstream.run("create table t (id int primary key)")
    source = upstream.source()
    plain = source.to_plain()
    for change, reason in (
        ({"system_id": 1}, "upstream is another database cluster"),
        ({"timeline": 9}, "upstream is on another timeline"),
    ):
        name = next(iter(change))
        moved = Postgres.from_plain(upstream.url, {**plain, **change})
        ingest(client, moved, name, collections=(name,)).tick()
        assert reasons(client, f"{name}_errors")[0].startswith(reason)
        moved.close()
    source.close()


def test_a_clock_that_jumps_changes_no_order(upstream: Upstream, client: Client) -> None:
    upstream.run("create table t (id int primary key)")
    source = upstream.source()
    clock = SetClock(1_000_000)
    ingestion = ingest(client, source, clock=clock)
    uppers, hour_ms = [], 3_600_000
    for step, jump_ms in enumerate((0, 10, -hour_ms, 10, 24 * hour_ms, -hour_ms)):
        clock.wall_ms += jump_ms
        upstream.run(f"insert into t values ({step})")
        ingestion.tick()
        uppers.append(ingestion.outputs[0].read.upper.only() or 0)
        assert len(contents(client, "t")) == step + 1
    assert uppers == sorted(set(uppers))
    # What was there at each time is there still.
    assert [len(contents(client, "t", upper - 1)) for upper in uppers[-2:]] == [5, 6]
    assert reasons(client) == []
    source.close()


def test_a_slot_is_dropped_with_its_source(running: Running) -> None:

    drop_slot_now(running.upstream.url, running.source.slot)
    drop_slot_now(running.upstream.url, running.source.slot)
    query = f"select count(*) from pg_replication_slots where slot_name = '{running.source.slot}'"
    assert running.upstream.run(query) == [(0,)]


def test_a_secret_is_in_no_message() -> None:
    import asyncio

    from noonmark.source.impl.postgres import create

    url = "postgresql://nobody:SENTINEL-1@127.0.0.1:1/x?sslpassword=SENTINEL-2"
    with pytest.raises(SourceStalled) as refused:
        asyncio.run(create(url, "p", "s"))
    assert "SENTINEL" not in str(refused.value)
    assert "SENTINEL" not in repr(Postgres(url, "p", "s", 1, 1, 1, ()))


def test_a_slot_that_lost_its_log(running: Running) -> None:
    upstream, slot = running.upstream, running.source.slot
    upstream.run(
        "alter system set max_slot_wal_keep_size = '1MB'",
        "select pg_reload_conf()",
    )
    try:
        for _ in range(4):
            upstream.run("insert into b values (5, 'x') on conflict do nothing")
            upstream.run("select pg_switch_wal()", "checkpoint")
        state = f"select wal_status from pg_replication_slots where slot_name = '{slot}'"
        assert upstream.run(state) == [("lost",)]
        found = running.after("insert into a values (2, 'x')")
        assert found == [f'replication slot "{slot}" was invalidated: its log was removed']
    finally:
        upstream.run(
            "alter system reset max_slot_wal_keep_size",
            "select pg_reload_conf()",
        )
