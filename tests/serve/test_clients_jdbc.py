"""pgjdbc runs a real script: metadata, batches, binary values, portals, COPY, errors, a timeout."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from support.neighbour.servers import PostgresServer
from support.serve.host import DatabaseHost
from support.serve.jdbc import METADATA, run_script

VALUES = (
    "1099511627776 0.5 -12.30 2024-02-29 2024-01-02 03:04:05.6 true [0, 1] "
    "00000000-0000-0000-0000-000000000007 [1, null, 3]"
)


@pytest.mark.slow
def test_a_java_program(database_host: DatabaseHost) -> None:
    url = f"jdbc:postgresql://{database_host.host}:{database_host.port}/noonmark"
    assert run_script(url) == [
        "insert: 2",
        "product: PostgreSQL",
        "table: goods",
        "column: id int4 NO",
        "column: name text NO",
        "key: id",
        "batch: [1, 1, 1, 1]",
        *(f"row: {turn} {VALUES}" for turn in range(4)),
        "sum: 5050",
        "good: 1 lamp",
        "good: 2 desk",
        "good: 4 bed",
        "copied: 1",
        "copy: a,b",
        "error: 42P01",
        "error: 22012",
        "error: 23505",
        "timeout: 57014",
    ]


OBJECTS = (
    "create schema jdbc",
    "create table jdbc.goods (id int primary key, name varchar(20) not null,"
    " price numeric(8,2) default 1, at timestamptz, tags text[], doc jsonb)",
    "create table jdbc.sales (id bigint, goods_id int)",
    "create view jdbc.cheap as select id, name from jdbc.goods where price < 1",
    "create index by_name on jdbc.goods (name)",
    "comment on table jdbc.goods is 'goods'",
    "comment on column jdbc.goods.name is 'its name'",
)
#: What two databases cannot have in common: their names, functions, types, sizes of indexes, and
#: the types of rows, which Noonmark does not name.
OWN = ("getCatalogs:", "getSchemas:", "getFunction", "getTypeInfo:", "getIndexInfo:", "getUDTs:")


def metadata(host: str, port: int, user: str, database: str) -> list[str]:
    dsn = f"host={host} port={port} user={user} dbname={database}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        for text in OBJECTS:
            connection.execute(text.encode())
    url = f"jdbc:postgresql://{host}:{port}/{database}?user={user}"
    owner = f"| {user} "
    return [line.replace(owner, "| owner ") for line in run_script(url, METADATA)]


@pytest.mark.server
def test_every_question_about_the_database(tmp_path: Path, postgres_server: PostgresServer) -> None:
    """DatabaseMetaData, which DBeaver, DataGrip, Metabase and Tableau ask through pgjdbc."""
    host = DatabaseHost(str(tmp_path))
    ours = metadata(host.host, host.port, "noonmark", "noonmark")
    host.close()
    assert [line for line in ours if " failed: " in line] == []
    assert "getIndexInfo: null | jdbc | goods | t | null | by_name" in "\n".join(ours)
    theirs = metadata(postgres_server.host, postgres_server.port, "postgres", "postgres")
    same = [line for line in ours if not line.startswith(OWN)]
    assert same == [line for line in theirs if not line.startswith(OWN)]
    assert len(same) > 60
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("drop schema jdbc cascade")
