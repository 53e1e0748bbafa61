"""The catalog in its location: one commit with what it names, and the same after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from noonmark import persist
from noonmark.adapter.database import Database
from noonmark.errors import LockHeld, NameTaken
from noonmark.persist.client import Options
from noonmark.rows.schema import Schema
from support.serve.reading import NoSpark, connect, database


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    async def first() -> dict[str, Any]:
        async with database(str(tmp_path)) as opened:
            client = await connect(opened)
            await client.ask("create schema s")
            await client.ask("create table s.t (a int primary key, b text default 'x')")
            await client.ask("create table u (c jsonb) with (retain history for '5s')")
            await client.ask("create view v as select a, b from s.t where a > 1")
            await client.ask("create source n from load generator counter")
            await client.ask("comment on column s.t.b is 'the second'")
            await client.ask("insert into s.t values (1, 'one'), (2, 'two')")
            await client.ask("drop table u")
            return dict(opened.catalog.by_number)

    async def second(before: dict[str, Any]) -> None:
        async with database(str(tmp_path)) as opened:
            client = await connect(opened)
            assert dict(opened.catalog.by_number) == before
            assert await client.ask("select * from v") == [(2, "two")]
            assert await client.ask("select b from s.t order by a") == [("one",), ("two",)]
            await client.ask("create table u (a int)")
            # Every number before it was given already, also that of the table that is gone.
            numbers = [each.number for each in opened.catalog.items() if each.kind != "system"]
            assert opened.catalog.resolve(("u",)).number > max(before)
            assert len(set(numbers)) == len(numbers)

    asyncio.run(second(asyncio.run(first())))


def test_an_object_and_its_collection_are_one_commit(tmp_path: Path) -> None:
    async def go() -> None:
        async with database(str(tmp_path)) as opened:
            client = await connect(opened)
            for statement, made in (
                ("create table t (a int)", 1),
                ("create source s from load generator counter", 3),
                ("create view v as select * from t", 0),
            ):
                state = opened.client.state
                await client.ask(statement)
                after = opened.client.state
                new = set(after.names) - set(state.names)
                assert len(new) == made, statement

    asyncio.run(go())
    # In the log: what makes collections also appends to the catalog.
    with persist.open(tmp_path, options=Options(mode="independent")) as reader:
        log = reader.runtime.submit(_entries(reader)).result()
    creating = [kinds for kinds in log if "create" in kinds and "catalog" not in kinds]
    assert [kinds.count("create") for kinds in creating] == [1, 3]
    assert all("append" in kinds for kinds in creating)


async def _entries(reader: persist.Client) -> list[list[str]]:
    """The commands of each transaction in the log, by kind."""
    from noonmark.persist.log.command import Create, decode_entry
    from noonmark.persist.log.frame import ENTRY, open_frame

    found = []
    for at, data in enumerate(await reader.consensus.read(1, 1_000), 1):
        entry = decode_entry(open_frame(f"log/{at}", ENTRY, data))
        for transaction in entry.transactions:
            kinds = [type(command).__name__.lower() for command in transaction]
            if any(isinstance(c, Create) and c.name == "noonmark_catalog" for c in transaction):
                kinds.append("catalog")
            found.append(kinds)
    return found


def test_a_location_without_a_catalog_keeps_what_it_has(tmp_path: Path) -> None:
    with persist.open(tmp_path, options=Options(notify_host=None)) as client:
        write, _ = client.create_or_load("mine", Schema.of(a="bigint"))
        write.write([persist.Update((1,), 10, 1)])
        write.seal(11).result()

    async def go() -> None:
        async with database(str(tmp_path)) as opened:
            session = await connect(opened)
            with pytest.raises(NameTaken):
                await session.ask("create table mine (a int)")
            await session.ask("create table other (a int)")
            read = opened.client.create_or_load("mine")[1]
            assert (await asyncio.wrap_future(read.snapshot(10))).as_of == 10

    asyncio.run(go())
    with persist.open(tmp_path, options=Options(mode="independent")) as client:
        assert client.create_or_load("mine")[1].snapshot(10).result().rows() == [(1,)]


def test_times_go_on_after_a_restart(tmp_path: Path) -> None:
    async def write() -> int:
        async with database(str(tmp_path)) as opened:
            client = await connect(opened)
            await client.ask("create table if not exists t (a int)")
            return await opened.tables.commit({"t": [((1,), 1)]})

    times = [asyncio.run(write()) for _ in range(3)]
    assert times == sorted(set(times))


def test_two_databases_on_one_location(tmp_path: Path) -> None:
    async def go() -> None:
        async with database(str(tmp_path)):
            with pytest.raises(LockHeld) as refused:
                await Database.open(str(tmp_path), session=NoSpark())  # type: ignore[arg-type]
            assert "is being written by" in str(refused.value)
            assert refused.value.hint

    asyncio.run(go())
