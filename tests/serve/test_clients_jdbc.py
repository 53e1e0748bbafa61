"""pgjdbc runs a real script: metadata, batches, binary values, portals, COPY, errors, a timeout."""

from __future__ import annotations

import pytest

from support.pgwire_host import DatabaseHost
from support.pgwire_jdbc import run_script

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
