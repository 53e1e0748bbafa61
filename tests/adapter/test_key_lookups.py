"""Writes by key ask the mirror of their table once it has one, and are judged the same."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.table.lookups import Stored
from noonmark.errors import NoonmarkError
from support.serve.reading import connect, with_database


@with_database
async def test_a_table_that_is_written_by_key_gets_a_mirror(opened: Database) -> None:
    client = await connect(opened)
    reads = 0
    plain = Stored._look_up

    async def counted(self: Stored, *given: Any) -> Any:
        nonlocal reads
        reads += 1
        return await plain(self, *given)

    await client.ask("create table t (k numeric, v text, primary key (v, k))")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stored, "_look_up", counted)
        chance, rows = random.Random(7), {}
        for number in range(150):
            v, k = chance.choice("ab"), chance.choice(["1", "1.0", "2", "10", "1e1", "NaN"])
            key = (v, "nan" if k == "NaN" else float(k))
            if chance.random() < 0.3:
                tag = await client.ask(f"delete from t where v = '{v}' and k = '{k}'")
                assert tag == f"DELETE {int(rows.pop(key, None) is not None)}"
                continue
            insert = f"insert into t values ('{k}', '{v}')"
            if key in rows:
                with pytest.raises(NoonmarkError) as told:
                    await client.ask(insert)
                assert told.value.sqlstate == "23505"
            else:
                assert await client.ask(insert) == "INSERT 0 1"
                rows[key] = number
            await asyncio.sleep(0)
    assert 0 < reads < 15, "persist is asked until the mirror is there"
    assert await client.ask("select count(*) from t") == [(len(rows),)]


@with_database
async def test_a_column_that_is_added_does_not_hide_a_key(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (k int primary key)")
    for k in range(20):
        await client.ask(f"insert into t values ({k})")
        await asyncio.sleep(0.01)
    await client.ask("alter table t add column v text")
    with pytest.raises(NoonmarkError, match="duplicate key"):
        await client.ask("insert into t values (7, 'x')")
    await client.ask("update t set v = 'y' where k = 7")
    assert await client.ask("delete from t where k = 7 returning v") == [("y",)]
    assert await client.ask("insert into t values (7, 'x')") == "INSERT 0 1"
