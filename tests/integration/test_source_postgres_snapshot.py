"""The snapshot of a PostgreSQL source: lost, late, and beside tables that are emptied or end.

What is right is what the upstream tables had at the point that is bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from noonmark.errors import DefiniteError, SourceStalled
from noonmark.ingest.ingestion import Ingestion, InPlaceEngine
from noonmark.persist.client import Client, open_location
from noonmark.remap import mint
from noonmark.source import START
from noonmark.source.impl.postgres import Postgres
from noonmark.tvc import partition_frontier
from support.ingest.logical_ingest import contents, error_of, ingest, reasons
from support.neighbour.logical import Upstream

TABLES = ("keyed", "whole")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_location(tmp_path / "location") as opened:
        yield opened


@pytest.fixture
def two(upstream: Upstream) -> Upstream:
    """A table of each identity, 300 rows each."""
    upstream.run(
        "create table keyed (id int primary key, n int)",
        "create table whole (id int primary key, n int)",
        "alter table whole replica identity full",
        *(f"insert into {t} select i, i from generate_series(1, 300) i" for t in TABLES),
    )
    return upstream


class Interrupted(InPlaceEngine):
    """An engine that runs statements upstream before it reads, or does not come to read at all."""

    def __init__(self, upstream: Upstream, statements: tuple[str, ...], ends: bool = False) -> None:
        object.__setattr__(self, "before", lambda: upstream.run(*statements))
        object.__setattr__(self, "ends", ends)

    def run(self, *arguments: Any) -> Any:
        self.before()  # type: ignore[attr-defined]
        if self.ends:  # type: ignore[attr-defined]
            raise SourceStalled("not now")
        return super().run(*arguments)


def changed(table: str) -> tuple[str, ...]:
    return (
        f"update {table} set n = -n where id % 2 = 0",
        f"delete from {table} where id % 3 = 0",
        f"insert into {table} values (1000, 1)",
    )


def every_change(ingestion: Ingestion, table: str) -> set[int]:
    """The times at which a table changed."""
    read = next(each.read for each in ingestion.outputs if each.name == table)
    since = read.since.only() or 0
    return {each.time for each in ingestion.client.runtime.submit(_updates(read, since)).result()}


async def _updates(read: Any, since: int) -> list[Any]:
    listen = await read.open_listen(since, hold=False)
    step = await listen.next()
    return step.updates if step is not None else []


def test_a_lost_snapshot_was_never_bound_and_all_tables_begin_at_one_point(
    two: Upstream, client: Client
) -> None:
    source = two.source()
    first = ingest(client, source)
    first.engine = Interrupted(two, (), ends=True)
    with pytest.raises(SourceStalled, match="not now"):
        first.tick()
    assert first.remap.latest == START
    source.close()
    two.run(*changed("keyed"), *changed("whole"))
    again = Postgres.from_plain(two.url, source.to_plain())
    ingestion = ingest(client, again)
    # What happens while the second snapshot is read is not in it, for no table.
    wanted = {table: Counter(two.run(f"select * from {table}")) for table in TABLES}
    more = [f"update {t} set n = 7 where id = 1" for t in TABLES]
    ingestion.engine = Interrupted(two, tuple(more))
    ingestion.tick()
    for table in TABLES:
        snapshot_at, *_ = sorted(every_change(ingestion, table))
        assert contents(client, table, snapshot_at) == wanted[table]
        assert contents(client, table) == Counter(two.run(f"select * from {table}"))
    assert reasons(client) == []
    again.close()


def test_what_an_earlier_version_bound_and_lost_is_no_answer(two: Upstream, client: Client) -> None:
    source = two.source()
    first = ingest(client, source)
    # As it was: the binding alone is durable.
    time = first.oracle.write_ts()
    minted = mint(first.remap, partition_frontier({0: source.start.offset}), time)
    first._append_remap(minted.updates, first.remap.upper, minted.remap.upper)
    source.close()
    two.run(*changed("keyed"), *changed("whole"))
    again = Postgres.from_plain(two.url, source.to_plain())
    ingestion = ingest(client, again)
    tick = ingestion.tick()
    for table in TABLES:
        assert contents(client, table) == Counter(two.run(f"select * from {table}"))
        target = next(each for each in ingestion.outputs if each.name == table)
        assert time < (target.read.since.only() or 0) <= tick.time
    again.close()


@pytest.mark.parametrize("when", ["bound by an earlier version", "not bound"])
def test_a_source_that_ends_before_its_snapshot_says_so(
    two: Upstream, client: Client, when: str
) -> None:
    source = two.source()
    first = ingest(client, source)
    if when == "bound by an earlier version":
        minted = mint(
            first.remap, partition_frontier({0: source.start.offset}), first.oracle.write_ts()
        )
        first._append_remap(minted.updates, first.remap.upper, minted.remap.upper)
    source.close()
    two.run(f"select pg_drop_replication_slot('{source.slot}')")
    again = Postgres.from_plain(two.url, source.to_plain())
    ingestion = ingest(client, again)
    ingestion.tick()
    assert reasons(client) == [f'replication slot "{source.slot}" was dropped upstream']
    upper = ingestion.outputs[0].read.upper.only() or 0
    ingestion.tick()
    assert (ingestion.outputs[0].read.upper.only() or 0) > upper
    again.close()


@pytest.mark.parametrize(
    "end",
    [
        "drop table keyed",
        "alter table keyed drop column n",
        "alter table keyed alter n type text",
        "alter table keyed replica identity full",
    ],
)
@pytest.mark.parametrize("when", ["before", "while"])
def test_a_table_that_ends_before_its_snapshot_ends_alone(
    two: Upstream, client: Client, end: str, when: str
) -> None:
    source = two.source()
    ingestion = ingest(client, source)
    if when == "before":
        two.run(end)
    else:
        ingestion.engine = Interrupted(two, (end,))
        try:
            ingestion.tick()
        except SourceStalled:
            ingestion.engine = InPlaceEngine()
    ingestion.engine = InPlaceEngine()
    ingestion.tick()
    found = contents(client, "pg_errors")
    assert {row[0] for row in found} == {"keyed"}, found
    assert error_of(client, "keyed") is not None
    assert contents(client, "whole") == Counter(two.run("select * from whole"))
    if when == "before":
        # At no time is it a table without rows.
        snapshot_at, *_ = sorted(every_change(ingestion, "whole"))
        with pytest.raises(DefiniteError):
            contents(client, "keyed", snapshot_at)
    two.run("insert into whole values (2000, 1)")
    ingestion.tick()
    assert contents(client, "whole") == Counter(two.run("select * from whole"))
    source.close()


@pytest.mark.parametrize(
    "statement",
    [
        "truncate {}",
        "alter table {} add column r float default random()",
        "vacuum full {}",
    ],
)
@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_is_rewritten_before_it_was_read(
    two: Upstream, client: Client, statement: str, table: str
) -> None:
    """A snapshot that is older sees nothing there: another one is taken."""
    source = two.source()
    two.run(statement.format(table), f"insert into {table} (id, n) values (5000, 5)")
    ingestion = ingest(client, source)
    ingestion.tick()
    snapshot_at, *_ = sorted(every_change(ingestion, "keyed" if table == "whole" else "whole"))
    wanted = Counter(two.run(f"select id, n from {table}"))
    assert contents(client, table, snapshot_at) == wanted
    assert contents(client, table) == wanted
    assert reasons(client) == []
    source.close()


def test_a_table_that_is_truncated_again_and_again_waits_for_its_snapshot(
    two: Upstream, client: Client
) -> None:
    source = two.source()
    ingestion = ingest(client, source)
    ingestion.engine = Interrupted(two, ("truncate keyed",))
    with pytest.raises(SourceStalled, match="truncated or rewritten"):
        ingestion.tick()
    # The second snapshot holds locks.
    ingestion.engine = Interrupted(two, ("set lock_timeout = '50ms'", "truncate keyed"))
    with pytest.raises(psycopg.errors.LockNotAvailable):
        ingestion.tick()
    # They are gone when it could not be read.
    two.run("truncate keyed", "insert into keyed values (1, 1)", "set lock_timeout = 0")
    ingestion.engine = InPlaceEngine()
    ingestion.tick()
    two.run("truncate keyed")
    ingestion.tick()
    for table in TABLES:
        assert contents(client, table) == Counter(two.run(f"select * from {table}"))
    source.close()


def test_rows_of_a_table_that_inherits_are_not_its_parents(two: Upstream, client: Client) -> None:
    two.run(
        "create table heir (primary key (id)) inherits (keyed)",
        "insert into heir values (7000, 1), (7001, 1)",
    )
    source = two.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    for statement in ("update heir set n = 2", "truncate only keyed", "truncate keyed"):
        for table in (*TABLES, "heir"):
            wanted = Counter(two.run(f"select * from only {table}"))
            assert contents(client, table) == wanted, statement
        two.run(statement)
        ingestion.tick()
    assert contents(client, "heir") == Counter()
    source.close()


def test_a_session_of_the_snapshot_that_is_killed(two: Upstream, client: Client) -> None:
    source = two.source()
    two.run("select pg_terminate_backend(active_pid) from pg_replication_slots where active")
    kill = "select pg_terminate_backend(pid) from pg_stat_activity where application_name ="
    two.run(f"{kill} 'noonmark'", *changed("keyed"), *changed("whole"))
    ingestion = ingest(client, source)
    ingestion.tick()
    for table in TABLES:
        assert contents(client, table) == Counter(two.run(f"select * from {table}"))
    source.close()
