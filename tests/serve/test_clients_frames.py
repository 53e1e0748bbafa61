"""polars, connectorx and ADBC, in an environment of their own."""

from __future__ import annotations

import json

import psycopg

from support.neighbour.tool_venv import LOCKS, run_tool, tool_python
from support.serve.host import DatabaseHost


def test_data_frames(database_host: DatabaseHost) -> None:
    with psycopg.connect(database_host.dsn("noonmark"), autocommit=True) as connection:
        connection.execute(
            "create table goods (id int primary key, name text, price numeric(8,2), at timestamptz,"
            " ok boolean, d date, f float8)"
        )
        connection.execute(
            "insert into goods values"
            " (1, 'lamp', 2.50, '2026-01-01 00:00Z', true, '2026-01-01', 0.5)"
        )
        connection.execute("insert into goods (id) values (2)")
    url = f"postgresql://noonmark@127.0.0.1:{database_host.port}/noonmark"
    said = run_tool(tool_python("frames"), LOCKS / "run_frames.py", url)
    assert json.loads(said.splitlines()[-1]) == {
        "polars, connectorx": [2, 7],
        "polars, adbc": ["lamp", None],
        "connectorx, binary": [1, 2],
        "connectorx, csv": [1, 2],
        "connectorx, cursor": [1, 2],
        "connectorx, partitions": 2,
        "connectorx, no rows": [0, 7],
        "adbc, parameter": 1,
        "adbc, schema": ["id", "name", "price", "at", "ok", "d", "f"],
        "ingested": 4,
        "written": 2,
    }
