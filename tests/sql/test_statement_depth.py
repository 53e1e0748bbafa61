"""Statements that are long or deep: answered, or refused with 54001; never an internal error."""

from __future__ import annotations

import pytest

from noonmark.adapter.database import Database
from noonmark.errors import TooComplex
from noonmark.sql.dialect import DEPTH_MAX
from support.serve.reading import connect, with_database

ROW, NEST = 400, 120

ANSWERED = {
    " || ".join(["'a'"] * ROW): "a" * ROW,
    " + ".join(["1"] * ROW): ROW,
    " and ".join(["true"] * ROW): True,
    " or ".join(["1 = 2"] * ROW): False,
    "1" + "::int" * ROW: 1,
    "(" * NEST + "1" + ")" * NEST: 1,
    "not " * NEST + "true": True,
    "abs(" * NEST + "1" + ")" * NEST: 1,
    "- " * NEST + "1": 1,
    "case when true then " * NEST + "1" + " end" * NEST: 1,
}


@with_database
async def test_what_postgresql_answers_is_answered(opened: Database) -> None:
    client = await connect(opened)
    for sql, value in ANSWERED.items():
        assert await client.ask(f"select {sql}") == [(value,)]


@with_database
async def test_what_is_too_deep_is_refused(opened: Database) -> None:
    client = await connect(opened)
    for sql in ("(" * 5000 + "1" + ")" * 5000, "not " * 5000 + "true", "f(" * 5000):
        with pytest.raises(TooComplex, match="stack depth limit exceeded") as refused:
            await client.ask(f"select {sql}")
        assert f"{DEPTH_MAX:,} levels" in (refused.value.hint or "")
    assert await client.ask("select 1") == [(1,)]
