"""FROM POSTGRES with a real server: snapshot and stream joined exactly, and every way to change.

What is right is what the upstream table itself has.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from noonmark.errors import ConfigError, UndefinedTable
from noonmark.ingest.ingestion import Ingestion
from noonmark.persist.client import Client, open_location
from noonmark.source.impl.postgres import Postgres, snapshot
from noonmark.source.impl.postgres.builder import BATCH_ROWS
from noonmark.tvc import known_partitions
from support.ingest.logical_ingest import contents, ingest, reasons
from support.neighbour.logical import Upstream

TYPES = """
create table every_type (id int primary key, a boolean, b smallint, c bigint, d real,
  e double precision, f numeric, g numeric(10,2), h text, i varchar(5), j char(4), k bytea, l date,
  m time, n timestamp, o timestamptz, p interval, q uuid, r jsonb, s int[], u text[], v json)
"""
VALUES = (
    "(1, true, 1, 2, 1.5, 2.5, 12345678901234567890.123, 1.10, 'ä\t\\\n\"', 'abc', 'ab', '\\x00ff',"
    " '2020-02-29', '24:00', '2020-01-01 01:02:03.456', '2020-01-01 00:00+05',"
    " '1 mon 2 days 03:00',"
    " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"b\": [1, null], \"a\": 1.0}', '{1,NULL,3}',"
    ' \'{"x y",NULL,""}\', \'{"z": 1}\')',
    "(2" + ", null" * 21 + ")",
    "(3, false, -1, -2, '-Infinity', 'Infinity', 0, 0, '', '', '', '', 'infinity', '00:00',"
    " '-infinity', 'infinity', '-1 year', '00000000-0000-0000-0000-000000000000', 'null', '{}',"
    " '{}', '[]')",
)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_location(tmp_path / "location") as opened:
        yield opened


def check(upstream: Upstream, client: Client, *tables: str) -> None:
    for table in tables:
        assert contents(client, table) == Counter(upstream.run(f"select * from {table}"))


def test_snapshot_then_changes(upstream: Upstream, client: Client) -> None:
    upstream.run(
        "create table full_t (id int, word text)",
        "alter table full_t replica identity full",
        "create table keyed_t (word text, id int primary key, big text)",
        "insert into full_t select i, 'w' || i from generate_series(1, 1000) i",
        "insert into keyed_t select 'w' || i, i, null from generate_series(1, 1000) i",
    )
    source = upstream.source()
    upstream.run("insert into full_t values (5000, 'between')", "delete from keyed_t where id = 7")
    ingestion = ingest(client, source)
    ingestion.tick()
    check(upstream, client, "full_t", "keyed_t")
    upstream.run(
        "update full_t set word = upper(word) where id % 3 = 0",
        "delete from full_t where id % 5 = 0",
        "insert into full_t values (1, 'w1'), (1, 'w1')",
        "update keyed_t set word = upper(word) where id % 3 = 0",
        "update keyed_t set id = id + 10000 where id % 7 = 0",
        "delete from keyed_t where id % 5 = 0",
        "insert into keyed_t values (null, 4, null) on conflict (id) do update set word = 'again'",
    )
    ingestion.tick()
    check(upstream, client, "full_t", "keyed_t")
    assert reasons(client) == []
    source.close()


@pytest.mark.parametrize("identity", ["default", "full"])
def test_every_type_comes_through_snapshot_and_stream(
    upstream: Upstream, client: Client, identity: str
) -> None:
    upstream.run(TYPES, f"alter table every_type replica identity {identity}")
    upstream.run(*(f"insert into every_type values {row}" for row in VALUES))
    source = upstream.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    read = contents(client, "every_type")
    assert len(read) == 3
    assert reasons(client) == []
    # The same rows again, through the log: they must be the very same values.
    upstream.run("create table copy_of as table every_type", "delete from every_type")
    ingestion.tick()
    assert contents(client, "every_type") == Counter()
    upstream.run("insert into every_type table copy_of")
    ingestion.tick()
    assert contents(client, "every_type") == read
    shown = {row[0]: row for row in read}
    assert shown[1][8] == 'ä\t\\\n"'
    assert shown[1][18] == '{"a": 1.0, "b": [1, null]}'
    source.close()


def test_types_of_users_are_text_and_domains_are_what_they_are_over(
    upstream: Upstream, client: Client
) -> None:
    upstream.run(
        "create type mood as enum ('sad', 'happy')",
        "create domain small as numeric(4,1) check (value < 100)",
        "create table t (id int primary key, m mood, s small, net inet, big numeric(50,0))",
        "insert into t values (1, 'sad', 12.5, '10.0.0.1', 1)",
    )
    source = upstream.source()
    assert [str(column.type) for column in source.tables[0].schema.columns] == [
        "integer",
        "text",
        "numeric(4,1)",
        "inet",
        "numeric",
    ]
    ingest(client, source).tick()
    assert [(row[1], str(row[2])) for row in contents(client, "t")] == [("sad", "12.5")]
    source.close()


@pytest.mark.parametrize("identity", ["default", "full"])
def test_a_large_value_that_an_update_did_not_touch_is_still_there(
    upstream: Upstream, client: Client, identity: str
) -> None:
    upstream.run(
        "create table t (id int primary key, big text not null, n int)",
        "alter table t alter big set storage external",
        f"alter table t replica identity {identity}",
        "insert into t select i, repeat(i::text, 5000), 0 from generate_series(1, 3) i",
    )
    source = upstream.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    upstream.run("update t set n = 1 where id = 1")
    ingestion.tick()
    check(upstream, client, "t")
    # Several updates in one tick, a new value among them, and one row that was not there before.
    upstream.run(
        "update t set n = 2 where id = 1",
        "update t set big = repeat('x', 9000) where id = 1",
        "update t set n = 3 where id = 1",
        "insert into t values (9, repeat('9', 9000), 0)",
        "update t set n = 1 where id = 9",
    )
    ingestion.tick()
    check(upstream, client, "t")
    assert reasons(client) == []
    source.close()


def test_a_new_key_without_the_large_value_is_an_error(upstream: Upstream, client: Client) -> None:
    upstream.run(
        "create table t (id int primary key, big text)",
        "alter table t alter big set storage external",
        "insert into t select i, repeat(i::text, 5000) from generate_series(1, 2) i",
    )
    source = upstream.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    upstream.run("update t set id = 5 where id = 1")
    ingestion.tick()
    assert [row[0] for row in contents(client, "t")] == [2]
    assert reasons(client) == [
        "it leaves out what it did not change, and nothing is known from before"
    ]
    # The next whole value of that key is the end of the error.
    upstream.run("update t set big = 'small' where id = 5")
    ingestion.tick()
    check(upstream, client, "t")
    assert reasons(client) == []
    source.close()


def test_a_transaction_over_several_tables_has_one_time(upstream: Upstream, client: Client) -> None:
    upstream.run(
        "create table checking (id int primary key, cents int)",
        "create table savings (id int primary key, cents int)",
        "alter table savings replica identity full",
        "insert into checking select i, 100 from generate_series(1, 10) i",
        "insert into savings select i, 100 from generate_series(1, 10) i",
    )
    source = upstream.source()
    ingestion = ingest(client, source)
    stop = threading.Event()

    def move() -> None:
        with psycopg.connect(upstream.url) as other:
            step = 0
            while not stop.is_set():
                step += 1
                take = "update checking set cents = cents - %s where id = %s"
                give = "update savings set cents = cents + %s where id = %s"
                other.execute(take, (step % 7, step % 10 + 1))
                other.execute(give, (step % 7, step * 3 % 10 + 1))
                other.commit()

    thread = threading.Thread(target=move)
    thread.start()
    try:
        times = [ingestion.tick().time for _ in range(15)]
    finally:
        stop.set()
        thread.join()
    for time in times:
        both = [*contents(client, "checking", time), *contents(client, "savings", time)]
        assert sum(cents for _, cents in both) == 2000
    assert len({frozenset(contents(client, "checking", time)) for time in times}) > 1
    source.close()


def test_a_transaction_larger_than_a_batch(upstream: Upstream, client: Client) -> None:
    upstream.run("create table t (id int, word text)", "alter table t replica identity full")
    source = upstream.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    rows = 2 * BATCH_ROWS + 5
    upstream.run(
        f"insert into t select i, 'w' from generate_series(1, {rows}) i",
        "insert into t values (0, 'small')",
    )
    ingestion.tick()
    assert sum(contents(client, "t").values()) == rows + 1
    check(upstream, client, "t")
    source.close()


@pytest.mark.parametrize("identity", ["default", "full"])
def test_snapshot_by_pieces_with_writers_beside_it(
    upstream: Upstream, client: Client, identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "PIECE_PAGES", 2)
    upstream.run(
        "create table t (id int primary key, word text)",
        f"alter table t replica identity {identity}",
        "insert into t select i, repeat('w', 100) from generate_series(1, 2000) i",
    )
    source = upstream.source()
    upstream.run(
        "update t set word = 'new' where id % 2 = 0",
        "delete from t where id % 3 = 0",
        "insert into t select i, 'later' from generate_series(3000, 4000) i",
    )
    ingestion = ingest(client, source)
    tick = ingestion.tick()
    assert tick.splits > 10
    check(upstream, client, "t")
    source.close()


def test_after_a_restart_ingestion_goes_on_where_it_was(upstream: Upstream, tmp_path: Path) -> None:
    upstream.run("create table t (id int primary key, n int)", "insert into t values (1, 1)")
    source = upstream.source()
    with open_location(tmp_path / "l") as client:
        ingest(client, source).tick()
        source.close()
    upstream.run("update t set n = 2", "insert into t values (2, 2)")
    again = Postgres.from_plain(upstream.url, source.to_plain())
    with open_location(tmp_path / "l") as client:
        ingest(client, again).tick()
        check(upstream, client, "t")
    again.close()


def test_an_idle_table_does_not_keep_the_log(upstream: Upstream, client: Client) -> None:
    upstream.run("create table t (id int primary key)", "create table noise (n int)")
    upstream.run("drop publication p", "create publication p for table t")
    source = upstream.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    confirmed = "select (confirmed_flush_lsn - '0/0'::pg_lsn)::bigint from pg_replication_slots"
    confirmed += f" where slot_name = '{source.slot}'"
    before = upstream.run(confirmed)[0][0]
    upstream.run("insert into noise select generate_series(1, 20000)")
    end = upstream.lsn()
    tick = ingestion.tick()
    assert tick.rows == 0
    assert upstream.run(confirmed)[0][0] > before
    assert upstream.run(confirmed)[0][0] >= end - 8192
    source.close()


def test_reading_and_releasing(upstream: Upstream, client: Client) -> None:
    upstream.run("create table t (id int primary key)")
    source = upstream.source()
    ingestion = ingest(client, source)
    for step in range(5):
        upstream.run(f"insert into t values ({step})")
        tick = ingestion.tick()
        assert tick.rows == 1
        assert known_partitions(tick.released)[0] > source.start_lsn
    check(upstream, client, "t")
    source.close()


def test_what_cannot_be_a_source_is_refused_with_a_hint(upstream: Upstream) -> None:
    upstream.run("create table t (id int)")
    with pytest.raises(ConfigError, match="neither a primary key nor") as refused:
        upstream.source()
    assert "REPLICA IDENTITY FULL" in (refused.value.hint or "")
    with pytest.raises(UndefinedTable, match=r"no table public\.nothing"):
        upstream.source("nothing")
    upstream.run("alter table t replica identity full")
    upstream.run("alter publication p set (publish = 'insert, update, delete')")
    with pytest.raises(ConfigError, match="does not publish every kind of change"):
        upstream.source()
    upstream.run(
        "alter publication p set (publish = 'insert, update, delete, truncate')",
        "create table parted (id int primary key) partition by range (id)",
        "alter publication p set (publish_via_partition_root = true)",
    )
    with pytest.raises(ConfigError, match=r"publishes table public\.parted in place of"):
        upstream.source()
    upstream.run("drop publication p")
    with pytest.raises(ConfigError, match='publication "p" does not exist'):
        upstream.source()
    assert upstream.run(
        f"select count(*) from pg_replication_slots where database = '{upstream.name}'"
    ) == [(0,)]


def test_only_the_named_tables_and_published_rows_are_read(
    upstream: Upstream, client: Client
) -> None:
    upstream.run(
        "create table a (id int primary key, secret text, n int)",
        "create table b (id int primary key)",
        "drop publication p",
        "create publication p for table a (id, n) where (id > 10), b",
        "insert into a select i, 's', i from generate_series(1, 20) i",
        "insert into b values (1)",
    )
    source = upstream.source("a")
    ingestion: Ingestion = ingest(client, source)
    ingestion.tick()
    upstream.run("insert into a values (-5, 's', 5), (50, 's', 50)", "insert into b values (2)")
    ingestion.tick()
    assert contents(client, "a") == Counter(upstream.run("select id, n from a where id > 10"))
    assert "b" not in client.state.names
    source.close()
