"""A PostgreSQL source whose role upstream is an ordinary one: with settings, and policies on it.

What an administrator sets for a role must change no value, and lose no row: a session of a source
says itself what it depends on, and what it cannot get round is refused by name.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError, SourceStalled
from noonmark.persist.client import Client, open_location
from noonmark.rows.value import Interval
from noonmark.source.impl.postgres import Postgres, create
from support.ingest.logical_ingest import contents, ingest, reasons
from support.neighbour.logical import Upstream

#: What a role may have been given, each of them enough to lose or change something.
SETTINGS = (
    "DateStyle = 'SQL, DMY'",
    "IntervalStyle = sql_standard",
    "TimeZone = 'Asia/Kathmandu'",
    "bytea_output = escape",
    "extra_float_digits = -10",
    "client_encoding = LATIN1",
    "search_path = ''",
    "standard_conforming_strings = off",
    "statement_timeout = '1ms'",
    "lock_timeout = '1ms'",
    "idle_in_transaction_session_timeout = '1ms'",
    "idle_session_timeout = '200ms'",
    "transaction_timeout = '200ms'",
    "wal_sender_timeout = '200ms'",
    "default_transaction_read_only = on",
    "default_transaction_isolation = serializable",
    "synchronous_commit = off",
    "enable_tidscan = off",
)
_INTERVAL = Interval(0, 1, -3_723_000_000)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_location(tmp_path / "location") as opened:
        yield opened


@pytest.fixture
def role(upstream: Upstream) -> Iterator[str]:
    """A role that may replicate and read, and no more."""
    name = f"r_{SYSTEM.fresh_id()}"
    upstream.run(
        f"create role {name} login replication password 'x'",
        f"alter default privileges in schema public grant select on tables to {name}",
        f"grant execute on function pg_control_system() to {name}",
    )
    yield name
    upstream.run(
        "select pg_terminate_backend(active_pid) from pg_replication_slots"
        f" where database = '{upstream.name}' and active_pid is not null",
        f"drop owned by {name}",
        f"drop role {name}",
    )


def url_of(upstream: Upstream, role: str) -> str:
    return f"{upstream.url.partition('//')[0]}//{role}:x@{upstream.url.rpartition('@')[2]}"


def source_of(upstream: Upstream, role: str) -> Postgres:
    return asyncio.run(create(url_of(upstream, role), "p", f"slot_{upstream.name[-12:]}"))


def test_no_setting_of_the_role_changes_a_value_or_loses_a_row(
    upstream: Upstream, client: Client, role: str
) -> None:
    upstream.run(
        "create table t (id int primary key, d date, at timestamptz, i interval, b bytea,"
        " f float8, w text)",
        "create table whole (like t)",
        "alter table whole replica identity full",
        *(f"alter role {role} set {each}" for each in SETTINGS),
    )
    row = "'2024-02-01', '2024-02-01 10:00:00+00', '1 day -01:02:03', '\\x5c00ff', 0.1, E'\\\\é€'"
    for table in ("t", "whole"):
        upstream.run(f"insert into {table} select i, {row} from generate_series(1, 9) i")
    source = source_of(upstream, role)
    held = source._live.held
    assert held is not None
    ingestion = ingest(client, source)
    upstream.run("select pg_sleep(0.4)")
    assert held.is_alive()
    ingestion.tick()
    for table in ("t", "whole"):
        upstream.run(
            "set synchronous_commit = off",
            f"insert into {table} values (10, {row})",
            f"update {table} set f = 0.3 where id = 2",
            f"delete from {table} where id = 3",
        )
    ingestion.tick()
    assert reasons(client) == []
    for table in ("t", "whole"):
        found = [(*row[:3], row[3] == _INTERVAL, *row[4:]) for row in contents(client, table)]
        wanted = upstream.run(f"select id, d, at, true, b, f, w from {table}")
        assert Counter(found) == Counter(wanted)
    source.close()


def test_a_table_whose_rows_the_role_does_not_see_is_refused(
    upstream: Upstream, client: Client, role: str
) -> None:
    upstream.run(
        "create table t (id int primary key, n int)",
        "insert into t select i, i from generate_series(1, 9) i",
        "alter table t enable row level security",
        "create policy few on t using (n < 4)",
    )
    with pytest.raises(ConfigError, match="row-level security") as refused:
        source_of(upstream, role)
    assert "BYPASSRLS" in (refused.value.hint or "")
    upstream.run("alter table t disable row level security")
    source = source_of(upstream, role)
    ingestion = ingest(client, source)
    # It comes between the check and the snapshot: no part of the table is taken for all of it.
    upstream.run("alter table t enable row level security")
    with pytest.raises(SourceStalled, match="row-level security"):
        ingestion.tick()
    upstream.run(f"alter role {role} bypassrls")
    ingestion.tick()
    assert contents(client, "t") == Counter(upstream.run("select * from t"))
    source.close()
