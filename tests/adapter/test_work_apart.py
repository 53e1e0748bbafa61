"""What an expression takes is nobody else's time, wherever in a statement it stands.

A pattern with back references may take for ever on a short text, and nothing in the process that
asks for it can end it. So it is asked by a worker, which is killed; and where a statement's plan or
a post depends on its value, it is refused.
"""

from __future__ import annotations

import ast
import threading
from typing import Any

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.statement.dml import change
from noonmark.adapter.table import enforce, keys
from noonmark.clock import SYSTEM
from noonmark.errors import NoonmarkError, QueryCanceled, TooComplex, Unsupported
from support.house.repository import module_name, python_files, tree
from support.serve.reading import connect, with_database

pytestmark = pytest.mark.alone

TEXT, PATTERN = "repeat('ab', 40) || 'c'", "'^((ab|a|b)+)+\\1$'"
ENDLESS = f"(({TEXT}) ~ {PATTERN})"
NUMBER = f"(case when {ENDLESS} then 1 else 2 end)"
PAIR = f"({TEXT}, {PATTERN})"

#: Ended by the timeout.
ENDED = [
    f"update t set a = 1 where a = {NUMBER}",
    f"delete from t where a in ({NUMBER}, 3)",
    f"select * from flags where b = {ENDLESS}",
    f"alter table t add column c int default {NUMBER}",
    f"alter table t alter column a type int using {NUMBER}",
    f"alter table t add check ({ENDLESS})",
    "alter table pairs add check (x ~ y)",
    f"insert into checked values (2, {TEXT}, {PATTERN})",
    "insert into checked values (1, 'b', 'b') on conflict (k) do update "
    f"set x = {TEXT}, y = {PATTERN}",
    f"merge into checked c using (values {PAIR}) v (x, y) on c.x = v.x "
    "when not matched then insert values (3, v.x, v.y)",
]
#: Refused before it is asked.
REFUSED = [
    f"select a from t limit {NUMBER}",
    f"select a from t order by a offset {NUMBER}",
    f"select sum(a) over (order by a range between {NUMBER} preceding and current row) from t",
    f"select percentile_cont({NUMBER}) within group (order by a) from t",
    f"create source posted from webhook body format text check ({ENDLESS})",
    "create source posted from webhook body format text check (body ~ body)",
    f"subscribe (select a from t where mz_now() < a * 1000 + {NUMBER})",
    "create table wrong (a int, b int default (select 1))",
]


async def _prepared(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int)")
    await client.ask("insert into t select * from generate_series(1, 100)")
    await client.ask("create table flags (b boolean)")
    await client.ask("insert into flags values (true)")
    await client.ask("create table pairs (x text, y text)")
    await client.ask(f"insert into pairs values {PAIR}")
    await client.ask("create table checked (k int primary key, x text, y text, check (x ~ y))")
    await client.ask("insert into checked values (1, 'b', 'b')")
    await opened.workers.warm()


@pytest.mark.timeout(120, method="signal")
@with_database
async def test_an_expression_is_ended_or_refused_wherever_it_stands(opened: Database) -> None:
    await _prepared(opened)
    client, other = await connect(opened), await connect(opened)
    await client.ask("set statement_timeout = 200")
    for sql in ENDED:
        begun = SYSTEM.monotonic()
        with pytest.raises(QueryCanceled):
            await client.ask(sql)
        assert SYSTEM.monotonic() - begun < 5, sql
        # Nothing of it is there, and nobody waits for it.
        assert await other.ask("select count(*), min(a) from t") == [(100, 1)]
        await other.ask("create table beside (a int)")
        await other.ask("drop table beside")
    for sql in REFUSED:
        with pytest.raises((TooComplex, Unsupported)):
            await other.ask(sql)


@with_database
async def test_checks_are_asked_of_every_row_of_every_way_to_write(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table c (k int primary key, n int check (n < 1000))")
    await client.ask("insert into c select g, g % 1000 from generate_series(1, 5000) g")
    for sql in (
        "insert into c select g + 10000, g from generate_series(1, 1000) g",
        "insert into c values (20000, 1000)",
        "insert into c values (1, 5) on conflict (k) do update set n = 1000",
        "insert into c values (1, 1000) on conflict do nothing",
        "update c set n = n + 1",
        "merge into c using (values (1)) v (k) on c.k = v.k when matched then update set n = 1000",
        "merge into c using (values (-1)) v (k) on c.k = v.k when not matched then "
        "insert values (-1, 1000)",
        "alter table c alter column n type int using n + 1",
        "alter table c add check (n < 999)",
        "alter table c add column m int default 7 check (m < 7)",
    ):
        with pytest.raises(NoonmarkError) as found:
            await client.ask(sql)
        assert found.value.sqlstate == "23514", sql
    assert await client.ask("select count(*), sum(n) from c") == [(5000, 2497500)]


#: Who may ask for the value of a scalar in the server's own process, and why that is little.
ASKS = {
    "noonmark.sql.evaluate": "the meaning itself",
    "noonmark.sql.rules.fold": "what takes a millisecond at most",
    "noonmark.sql.plan.sets": "literals",
    "noonmark.adapter.peek.gather": "keys, which `shape` bounds, and leaves without a filter",
    "noonmark.adapter.peek.lookup": "keys of a shape, which bounds them",
    "noonmark.adapter.peek.shape": "keys, which it bounds",
    "noonmark.adapter.subscribe.turns": "without patterns that have no bound",
    "noonmark.adapter.worker.job": "runs in a worker, or where `effort` says that it is little",
    "noonmark.adapter.worker.values": "where `effort` says that it is little",
}


def test_nobody_else_asks_for_the_value_of_an_expression() -> None:
    found = set()
    for path in python_files("src"):
        name = module_name(path)
        if not name.startswith(("noonmark.adapter", "noonmark.sql", "noonmark.serve")):
            continue
        if name.startswith("noonmark.sql.meaning"):
            continue  # relations: asked by a job
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module == "noonmark.sql.evaluate":
                found |= {name for each in node.names if each.name == "evaluate"}
    assert found <= ASKS.keys()


def test_a_write_of_many_rows_leaves_the_loop_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = threading.get_ident()
    here: list[str] = []

    def watched(owner: Any, name: str, rows_at: int) -> None:
        act = getattr(owner, name)

        def asked(*given: Any) -> Any:
            rows = given[rows_at]
            lists = [each for each in getattr(rows, "values", list)() if isinstance(each, list)]
            if max(len(rows), *map(len, lists), 0) > 300 and threading.get_ident() == loop:
                here.append(name)
            return act(*given)

        monkeypatch.setattr(owner, name, asked)

    watched(keys.Keys, "tried", 1)
    watched(keys.Keys, "take", 1)
    watched(enforce.Constraints, "check", 2)
    watched(change, "_wholes", 1)

    @with_database
    async def scenario(opened: Database) -> None:
        client = await connect(opened)
        await client.ask("create table many (k int primary key, v text, unique (v))")
        rows = ", ".join(f"({k}, 'v{k}')" for k in range(500))
        await client.ask(f"insert into many values {rows}")
        await client.ask("update many set v = v || 'x'")
        await client.ask("delete from many")

    scenario()
    assert here == []
