"""Positions of a PostgreSQL source under commits that are acknowledged before they are flushed.

The judge is the log itself, as `pg_walinspect` shows it, and what upstream's tables have.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import SourceStalled
from noonmark.persist.client import Client, open_location
from noonmark.source import START
from noonmark.source.impl import postgres
from noonmark.tvc import known_partitions
from support.ingest.logical_ingest import contents, ingest, reasons
from support.neighbour.logical import Upstream

_STRADDLING = """
select start_lsn::text, end_lsn::text, record_type
from pg_get_wal_records_info(greatest('0/1000000'::pg_lsn, %(bound)s::pg_lsn - 65536),
                             pg_current_wal_flush_lsn())
where start_lsn < %(bound)s::pg_lsn and end_lsn > %(bound)s::pg_lsn
"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_location(tmp_path / "location") as opened:
        yield opened


class Acknowledged:
    """How far one writer is: the last commit that upstream has answered, and where it ended."""

    def __init__(self) -> None:
        self.rows = 0
        self.lsn = 0


@contextmanager
def asynchronous_writer(upstream: Upstream, table: str) -> Iterator[Acknowledged]:
    """One-row transactions that are acknowledged before they are on disk, without a pause."""
    stop, done = threading.Event(), Acknowledged()

    def write() -> None:
        with psycopg.connect(upstream.url, autocommit=True) as session:
            session.execute("set synchronous_commit = off")
            inserted = "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
            for number in range(1, 1_000_000):
                if stop.is_set():
                    return
                session.execute(f"insert into {table} values (%s)".encode(), (number,))
                done.rows = number
                if number % 10 == 0:
                    found = session.execute(inserted).fetchone()
                    done.lsn = found[0] if found else 0

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


def test_what_is_bound_is_a_boundary_on_disk_beyond_all_that_was_acknowledged(
    upstream: Upstream,
) -> None:
    upstream.run("create extension pg_walinspect", "create table t (id int primary key)")
    source = upstream.source()
    known, behind = START, []
    with asynchronous_writer(upstream, "t") as done:
        bound = []
        while done.rows < 3000 or len(bound) < 100:
            acknowledged = done.lsn
            known = asyncio.run(source.latest(SYSTEM, known))
            bound.append(known_partitions(known)[0] - 1)
            # A page's header lies between the end of a record and where the next one begins.
            if bound[-1] + 40 < acknowledged:
                behind.append((bound[-1], acknowledged))
            flushed = upstream.run("select (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint")
            assert bound[-1] <= flushed[0][0]
    assert behind == []
    upstream.run("checkpoint")
    for lsn in sorted(set(bound)):
        shown = f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
        found = upstream.session.execute(_STRADDLING.encode(), {"bound": shown}).fetchall()
        assert found == [], shown
    source.close()


def test_every_transaction_arrives(upstream: Upstream, client: Client) -> None:
    upstream.run("create table t (id int primary key)")
    source = upstream.source()
    ingestion = ingest(client, source)
    with asynchronous_writer(upstream, "t") as done:
        while done.rows < 9_000:
            ingestion.tick()
    ingestion.tick()
    assert contents(client, "t") == Counter(upstream.run("select * from t"))
    assert reasons(client) == []
    source.close()


def test_a_read_that_asks_covers_what_is_not_flushed_yet(upstream: Upstream) -> None:
    upstream.run("create table t (id int primary key)", "set synchronous_commit = off")
    source = upstream.source()
    for number in range(20):
        upstream.run(f"insert into t values ({number})")
        end = upstream.lsn()
        found = known_partitions(asyncio.run(source.latest(SYSTEM)))[0]
        assert found - 1 + 40 >= end
    source.close()


def test_an_idle_log_stays_as_it_is(upstream: Upstream, client: Client) -> None:
    upstream.run("create table t (id int primary key)", "insert into t values (1)")
    source = upstream.source()
    ingestion = ingest(client, source)
    # Until the server's own processes have written what they had left to write.
    for _ in range(50):
        before = upstream.lsn()
        bound = [ingestion.tick().released for _ in range(3)]
        if upstream.lsn() == before:
            break
    assert upstream.lsn() == before
    assert len(set(bound)) == 1
    source.close()


def test_at_the_end_of_pages_and_segments(upstream: Upstream, client: Client) -> None:
    """The log ends, one after another, at the places around the end of a page or a segment."""
    upstream.run("create extension pg_walinspect", "create table t (id serial primary key, w text)")
    source = upstream.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    ends = set()
    for _ in range(4):
        # A message without a transaction of its own fills the page to a few bytes before its end.
        for leave in (0, 8, 16, 24, 32):
            left = 8192 - upstream.lsn() % 8192 - leave
            length = left - 56 if left > 120 else left + 8168 - 56
            emit = f"select pg_logical_emit_message(false, '', repeat('x', {length}))"
            upstream.run("begin", "set local synchronous_commit = off", emit, "commit")
            ends.add(upstream.lsn() % 8192)
            ingestion.tick()
            upstream.run("insert into t (w) values ('x')")
            ingestion.tick()
    upstream.run("select pg_switch_wal()")
    ingestion.tick()
    upstream.run("insert into t (w) values ('x')")
    ingestion.tick()
    assert 24 in ends, ends
    assert contents(client, "t") == Counter(upstream.run("select * from t"))
    source.close()


def test_a_role_with_few_rights(upstream: Upstream, client: Client) -> None:
    """What `docs/sources/postgres.md` says that the role needs is enough, and a lack is named."""
    role = f"r_{upstream.name[-12:]}"
    upstream.run(
        "create table t (id int primary key)",
        f"create role {role} login replication",
        f"grant select on t to {role}",
        "set synchronous_commit = off",
    )
    url = upstream.url.replace("postgres@", f"{role}@")
    source = asyncio.run(postgres.create(url, "p", f"few_{upstream.name[-12:]}", None))
    try:
        ingestion = ingest(client, source)
        for number in range(5):
            upstream.run(f"insert into t values ({number})")
            ingestion.tick()
            assert len(contents(client, "t")) == number + 1
        emit = "pg_logical_emit_message(boolean, text, text, boolean)"
        upstream.run(f"revoke execute on function {emit} from public")

        def write_on() -> None:
            for number in range(5, 500):
                upstream.run(f"insert into t values ({number})")
                ingestion.tick()

        with pytest.raises(SourceStalled, match="may not have its log written out"):
            write_on()
    finally:
        source.close()
        postgres.drop_slot_now(upstream.url, source.slot)
        upstream.run("drop owned by " + role, f"drop role {role}")


def test_positions_are_made_in_one_place() -> None:
    folder = Path(postgres.__file__).parent
    for path in sorted(folder.glob("*.py")):
        if path.name != "position.py":
            assert not re.search(r"\bPosition\(", path.read_text()), path
            assert "wal_insert_lsn" not in path.read_text(), path
