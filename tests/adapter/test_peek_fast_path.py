"""What is answered at once, with parameters anywhere, is what the text with their values gives."""

from __future__ import annotations

from typing import Any

from noonmark.adapter.database import Database
from support.serve.reading import connect, with_database

ASKED: list[tuple[str, tuple[Any, ...]]] = [
    ("select k, v from t where k = $1::smallint", (1,)),
    ("select v from t where k = $1", (2,)),
    ("select v from t where k = $1", (None,)),
    ("select v from t where k = $1", (99,)),
    ("select v || $2 from t where k = $1", (1, "!")),
    ("select k from t where v = $1 and k > $2", ("a", 0)),
    ("select k from t where k in ($1, $2) order by k", (3, 1)),
    ("select k from t where k = $1 + 1", (1,)),
    ("select count(*) from t where v = $1", ("a",)),
    ("select l.k, r.v from t l join t r on l.v = r.v where l.k = $1 order by r.k", (1,)),
]


def written_out(sql: str, values: tuple[Any, ...]) -> str:
    for at, value in enumerate(values, 1):
        text = f"'{value}'" if isinstance(value, str) else "null" if value is None else str(value)
        sql = sql.replace(f"${at}", text)
    return sql


@with_database
async def test_values_in_their_places(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (k bigint, v text)")
    await client.ask("insert into t values (1, 'a'), (2, 'b'), (3, 'a'), (3, 'a'), (null, 'c')")
    quick = 0
    for sql, values in ASKED:
        wanted = await client.ask(written_out(sql, values))
        assert await client.ask(sql, *values) == wanted, sql
        answer = client.session.fast_path(await client.session.prepare(sql), values)
        if answer is not None:
            quick += 1
            assert answer.rows == wanted, sql
    assert quick >= 8, "most of these need no waiting"
