"""A table that is published, and then is not, for a while: what its log lacks is not known.

Rows of the table in ``docs/sources/faults.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from noonmark.persist.client import Client, open_location
from support.ingest.logical_ingest import Running, contents, error_of, ingest
from support.neighbour.logical import Upstream


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_location(tmp_path / "location") as opened:
        yield opened


@pytest.fixture
def running(upstream: Upstream, client: Client) -> Iterator[Running]:
    made = Running(upstream, client)
    yield made
    made.source.close()


def test_a_publication_that_is_changed_and_changed_back_ends_its_table(running: Running) -> None:
    """What was done while a table was not published is not in the log: nobody would see it."""
    running.upstream.run("drop publication p", "create publication p for table a, b")
    reason = (
        "the publication of table public.{} was changed: what it left out meanwhile is not known"
    )
    source = running.upstream.source(slot="again")
    again = ingest(running.client, source, "again", ["again_a", "again_b"])
    again.tick()
    running.upstream.run(
        "alter publication p drop table a",
        "insert into a values (2, 'unseen')",
        "alter publication p add table a",
        "insert into b values (2, 'seen')",
    )
    again.tick()
    assert error_of(running.client, "again_a") == reason.format("a")
    assert len(contents(running.client, "again_b")) == 2
    running.upstream.run(
        "alter publication p set (publish = 'insert')",
        "delete from b",
        "alter publication p set (publish = 'insert, update, delete, truncate')",
    )
    again.tick()
    assert error_of(running.client, "again_b") == reason.format("b")
    source.close()


@pytest.mark.parametrize(
    ("out", "back"),
    [
        (
            "alter publication p drop tables in schema public",
            "alter publication p add tables in schema public",
        ),
        ("alter table {} set schema elsewhere", "alter table elsewhere.{} set schema public"),
    ],
    ids=["schema", "table"],
)
def test_a_schema_that_is_published_no_more_and_again(
    running: Running, out: str, back: str
) -> None:
    running.upstream.run(
        "create schema elsewhere",
        "drop publication p",
        "create publication p for tables in schema public",
    )
    source = running.upstream.source(slot="again")
    again = ingest(running.client, source, "again", ["again_a", "again_b"])
    again.tick()
    assert error_of(running.client, "again_a") is None
    where = "elsewhere." if "{}" in out else ""
    running.upstream.run(
        out.format("a"), f"insert into {where}a values (2, 'unseen')", back.format("a")
    )
    again.tick()
    assert "what it left out meanwhile is not known" in (error_of(running.client, "again_a") or "")
    assert (error_of(running.client, "again_b") is None) is bool(where)
    source.close()


@pytest.mark.parametrize("published", ["table whole", "tables in schema one"])
def test_a_partition_that_is_detached_and_attached_again(
    upstream: Upstream, client: Client, published: str
) -> None:
    name = "one.whole" if "schema" in published else "whole"
    upstream.run(
        "create schema one",
        f"create table {name} (id int primary key, word text) partition by range (id)",
        f"create table few partition of {name} for values from (0) to (9)",
        f"create table many partition of {name} for values from (9) to (99)",
        f"insert into {name} values (1, 'few'), (10, 'many')",
        "drop publication p",
        f"create publication p for {published}",
    )
    source = upstream.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    assert len(contents(client, "few")) == 1
    upstream.run(
        f"alter table {name} detach partition few",
        "insert into few values (2, 'unseen')",
        f"alter table {name} attach partition few for values from (0) to (9)",
        f"insert into {name} values (3, 'few'), (11, 'many')",
    )
    ingestion.tick()
    assert "what it left out meanwhile is not known" in (error_of(client, "few") or "")
    assert len(contents(client, "many")) == 2
    source.close()


@pytest.mark.parametrize("table", ["a", "b"])
def test_a_table_that_is_not_logged_ends(running: Running, table: str) -> None:
    running.after(f"alter table {table} set unlogged", f"insert into {table} values (2, 'x')")
    assert set(running.ended()) == {table}
    running.after(f"alter table {table} set logged")
    assert set(running.ended()) == {table}, "what was written meanwhile is not in the log"


def test_what_is_published_by_name_stays_logged(running: Running) -> None:
    running.upstream.run("create publication named for table a")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="publication"):
        running.upstream.run("alter table a set unlogged")
