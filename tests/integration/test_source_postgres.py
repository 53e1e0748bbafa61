"""FROM POSTGRES with a real server: snapshot and stream joined exactly, and every way to change.

What is right is what the upstream table itself has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from noonmark.persist.client import Client, open_location
from support.logical import Upstream
from support.logical_ingest import contents, ingest, reasons


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_location(tmp_path / "location") as opened:
        yield opened


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
    for table in ("full_t", "keyed_t"):
        assert contents(client, table) == Counter(upstream.run(f"select * from {table}"))
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
    for table in ("full_t", "keyed_t"):
        assert contents(client, table) == Counter(upstream.run(f"select * from {table}"))
    assert reasons(client) == []
    source.close()
