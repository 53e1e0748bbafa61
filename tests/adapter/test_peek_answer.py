"""Every way to answer a peek gives the answer that `sql.meaning.relation` defines."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from noonmark import persist
from noonmark.adapter.peek import answer, columns, tables
from noonmark.adapter.peek.answer import Answers, Columns, Path, Peek, path_of
from noonmark.adapter.peek.gather import Gatherer, query_of
from noonmark.adapter.peek.mirrors import Mirrors
from noonmark.adapter.system.relations import relations
from noonmark.adapter.worker.limits import Limits
from noonmark.adapter.worker.pool import Pool
from noonmark.errors import DivisionByZero, EvaluationError
from noonmark.persist import Options, Update
from noonmark.persist.client import Client
from noonmark.sql.meaning.relation import evaluate, in_order
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify
from support.sql import queries as sql_queries

TIME = 10
# Where the key decides, also with NULLs, alternatives and contradictions.
LOOK_UPS = """
select * from t where a = 1
select b from t where a = 1 and c > 2
select a, b from t where b = 'uno' and a = 1
select * from t where a = 1 and a = 2
select * from t where a in (1, 4, 99)
select * from t where a in (1, null)
select * from t where a = null
select * from t where 1 = a order by b desc limit 1
select count(*) from t where a = 4
select t.b, u.y from t join u on t.a = u.a where t.a = 1
select z, l from v where k = 3
select * from t where a = 1 union all select * from t where a = 4
"""


def queries() -> list[str]:
    lines = sql_queries.TEXT.strip().splitlines() + LOOK_UPS.strip().splitlines()
    return [line for line in lines if line and not line.startswith("--")]


@pytest.fixture(scope="module")
def client() -> Any:
    with persist.open("memory:answers", options=Options(notify_host=None)) as opened:
        for name, schema in sql_queries.SCHEMAS.items():
            key = (schema.names[0],)
            write, _ = opened.create_or_load(name, schema, key)
            rows = sql_queries.ROWS[name].items()
            listed = [(tuple(list(x) if isinstance(x, tuple) else x for x in row), n)
                      for row, n in rows]  # fmt: skip
            write.write([Update(row, 5, count) for row, count in listed]).result(10)
            write.seal(TIME + 1).result(10)
        yield opened


def peek_of(sql: str) -> Peek:
    query = plan_query(sql, sql_queries.SCHEMAS)
    return Peek.of(simplify(query.ordered), query.order, len(query.names))


def expected(peek: Peek) -> list[Any]:
    rows = evaluate(peek.relation, sql_queries.ROWS)
    if peek.order:
        found = in_order(rows, peek.relation, peek.order)
    else:
        found = [row for row, count in rows.items() for _ in range(count)]
    return [shown(row[: peek.width]) for row in found]


def shown(row: tuple[Any, ...]) -> str:
    return repr([list(x) if isinstance(x, tuple) else x for x in row])


def no_system(name: str) -> Any:
    raise AssertionError(f"{name} is no system relation")


async def no_spark(*_: Any) -> Any:
    raise AssertionError("this needs no Spark")


async def collect(chunks: AsyncIterator[Any]) -> list[str]:
    return [shown(row) async for chunk in chunks for row in chunk]


def test_pieces_give_the_same_answers(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "PIECE_ROWS", 1)
    monkeypatch.setattr(columns, "_PIECE_ROWS_MIN", 1)
    monkeypatch.setattr(tables, "BATCH_ROWS", 2)
    pieced = 0
    for sql in queries():
        peek = peek_of(sql)
        if not peek.has_kernels or not peek.shape.leaves:
            continue
        sizes = answer.sizes_of(peek, client.state)
        pieced += Columns(0, 1 << 30, 1 << 30).pieces(peek, sizes) is not None
        try:
            wanted = expected(peek)
        except EvaluationError as error:
            with pytest.raises(type(error)):
                ask(client, peek, Path("columns", "in pieces"), Mirrors(client))
            continue
        got = ask(client, peek, Path("columns", "in pieces"), Mirrors(client))
        if peek.order:
            assert got == wanted, sql
        else:
            assert Counter(got) == Counter(wanted), sql
    assert pieced > 20


def ask(client: Client, peek: Peek, path: Path | None, mirrors: Mirrors) -> list[str]:
    async def go() -> list[str]:
        pool = Pool(Limits())
        answers = Answers(Gatherer(client, mirrors), lambda: client.state, pool)
        try:
            chunks = await answers.ask(peek, TIME, no_system, no_spark, path)
            return await collect(aiter(chunks))
        finally:
            await pool.close()

    return asyncio.run(go())


@pytest.mark.parametrize("sql", queries())
def test_every_way_gives_the_same_answer(client: Client, sql: str) -> None:
    peek = peek_of(sql)
    try:
        wanted = expected(peek)
    except EvaluationError as error:
        with pytest.raises(type(error)):
            ask(client, peek, None, Mirrors(client))
        return
    ways = {"in memory": Mirrors(client), "from storage": Mirrors(client, rows_max=0)}
    for way, mirrors in ways.items():
        paths = [Path("in process", way)]
        if peek.shape.linear and not peek.order:
            paths.append(Path("stream", way))
        if peek.has_kernels and peek.shape.leaves:
            paths.append(Path("columns", way))
        for path in paths:
            got = ask(client, peek, path, mirrors)
            if peek.order:
                assert got == wanted, path
            else:
                assert Counter(got) == Counter(wanted), path
    warm = Answers(Gatherer(client, ways["in memory"]), lambda: client.state, Pool(Limits()))
    at_once = warm.fast_path(peek, (), TIME)
    if at_once is not None:
        assert Counter(map(shown, at_once)) == Counter(wanted)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(answer, "is_little_over", lambda *_: False)
        assert Counter(ask(client, peek, None, ways["in memory"])) == Counter(wanted), "a worker"


def test_what_is_little_is_answered_at_once(client: Client) -> None:
    mirrors = Mirrors(client)
    answers = Answers(Gatherer(client, mirrors), lambda: client.state, Pool(Limits()))
    asyncio.run(mirrors.at(client.state.collection("t"), TIME))
    assert answers.fast_path(peek_of("select b, count(*) from t group by b"), (), TIME) is not None
    much = "with recursive r (n) as (select a from t union all select n + 1 from r) select * from r"
    for sql in (
        "select repeat(b, 100000) from t",
        "select * from t, generate_series(1, 10000)",
        much,
    ):
        assert answers.fast_path(peek_of(sql), (), TIME) is None, sql


def test_look_ups_ask_persist_by_key(client: Client) -> None:
    by_key = {}
    for sql in LOOK_UPS.strip().splitlines():
        peek = peek_of(sql)
        if not peek.shape.leaves:
            by_key[sql] = None  # no row is equal to NULL: nothing is asked
            continue
        leaf = peek.shape.leaves[0]
        query = query_of(leaf, client.state.collection(leaf.collection), TIME)
        by_key[sql] = query.keys
    assert by_key["select * from t where a = 1"] == [(1,)]
    assert sorted(by_key["select * from t where a in (1, 4, 99)"]) == [(1,), (4,), (99,)]
    assert by_key["select z, l from v where k = 3"] == [(3,)]


def test_the_way_is_chosen_by_what_must_be_looked_at(client: Client) -> None:
    def way(sql: str, rows_max: int) -> str:
        return path_of(peek_of(sql), client.state, rows_max).kind

    assert way("select 1", 0) == "constant"
    assert way("select count(*) from t", 100) == "statistics"
    assert way("select count(distinct b) from t", 100) == "in process"
    assert way("select count(distinct b) from t", 3) == "spark"
    assert way("select * from t where a = 1", 1) == "in process", "by key: one row is touched"
    assert way("select * from t where b = 'x'", 1) == "in process", "by an index in memory"
    assert way("select * from t where b > 'x'", 3) == "stream"

    assert way("select * from t where b > 'x' order by a", 3) == "spark"


def test_kernels_are_for_many_rows_that_fit(client: Client) -> None:
    def way(sql: str, rows_min: int = 3, memory: int = 1 << 20) -> str:
        return path_of(peek_of(sql), client.state, 1, Columns(rows_min, memory, 1 << 30)).kind

    assert way("select max(b) from t") == "columns"
    assert way("select * from t where b > 'x'") == "columns"
    assert way("select * from t where a = 1") == "in process", "by key: one row is touched"
    assert way("select * from t") == "stream", "the client takes all of it"
    assert way("select max(b) from t", rows_min=100) == "spark"
    assert way("select max(b) from t", memory=100) == "spark"
    assert way("select j from v order by j::text") == "spark", "documents have no order there"


def test_an_error_of_a_row_is_the_answer(client: Client) -> None:
    peek = peek_of("select 1 / x from u where x = 10 union all select 1 / (x - 10) from u")
    with pytest.raises(DivisionByZero):
        ask(client, peek, None, Mirrors(client))


def test_system_relations_are_asked_at_the_moment() -> None:
    name = "noonmark.frontiers"
    schema = relations()[name].schema
    query = plan_query(f"select kind from {name} where name = 'b'", {name: schema})
    peek = Peek.of(simplify(query.relation), system=frozenset({name}))
    asked = []

    def system(which: str) -> list[Any]:
        asked.append(which)
        rows = [{"name": "a", "kind": "table"}, {"name": "b", "kind": "source"}]
        return [tuple(row.get(column) for column in schema.names) for row in rows]

    async def go() -> list[str]:
        with persist.open("memory:system", options=Options(notify_host=None)) as client:
            pool = Pool(Limits())
            answers = Answers(Gatherer(client, Mirrors(client)), lambda: client.state, pool)
            return await collect(aiter(await answers.ask(peek, TIME, system, no_spark)))

    assert asyncio.run(go()) == ["['source']"]
    assert asked == [name]


def test_the_limits_are_stated() -> None:
    assert answer.IN_PROCESS_ROWS_MAX == 100_000
