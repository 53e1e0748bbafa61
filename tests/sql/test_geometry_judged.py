"""Functions and operators of geometry against a real PostgreSQL: each, of generated values."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import psycopg
import pytest

from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.coded.geometry import Box, Circle, Line, Lseg, Path, Point
from noonmark.rows.pg.text import format_value, parse_value
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.geometry.table import TABLE
from support.neighbour.servers import PostgresServer

COUNT = int(os.environ.get("NOONMARK_COUNT", "4000"))
_SPECIAL = ("0.5", "1.5", "-2.25", "0.1", "1e-07", "3.0000001", "-0.0", "0.3333333333333333")
_EXTREME = ("NaN", "Infinity", "-Infinity", "1e300", "1e-300")


def _number(random: Random) -> str:
    kind = random.random()
    if kind < 0.6:
        return str(random.randint(-3, 3))
    if kind < 0.85:
        return random.choice(_SPECIAL)
    return repr(random.uniform(-5, 5)) if kind < 0.97 else random.choice(_EXTREME)


def _text(random: Random, kind: type[t.SqlType]) -> str:
    """The text of a value, which may be none."""

    def point() -> str:
        return f"({_number(random)},{_number(random)})"

    if kind is t.Integer:
        return str(random.randint(0, 8))
    if kind is t.Double:
        return _number(random)
    if kind is Line and random.random() < 0.5:
        return f"{{{_number(random)},{_number(random)},{_number(random)}}}"
    if kind is Circle:
        return f"<{point()},{_number(random).lstrip('-')}>"
    count = {Point: 1, Lseg: 2, Box: 2, Line: 2}.get(kind, random.randint(1, 5))
    points = ",".join(point() for _ in range(count))
    if kind is Lseg or (kind is Path and random.random() < 0.5):
        return f"[{points}]"
    return points if kind in (Point, Box, Line) else f"({points})"


def _value(random: Random, kind: type[t.SqlType]) -> tuple[str, Any]:
    while True:
        text = _text(random, kind)
        try:
            return text, parse_value(text, kind())
        except NoonmarkError:
            continue


def _call(function: Function, texts: list[str]) -> str:
    kinds = [kind.spelling for kind in function.parameters]  # type: ignore[union-attr]
    made = [f"'{text}'::{kind}" for text, kind in zip(texts, kinds, strict=True)]
    if function.name.isidentifier():
        return f"{function.name}({', '.join(made)})"
    return f"{made[0]} {function.name} {made[1]}" if made[1:] else f"{function.name} {made[0]}"


def _ours(function: Function, values: list[Any]) -> str | None:
    try:
        found = function.meaning(*values)
    except NoonmarkError as error:
        return error.sqlstate
    assert isinstance(function.result, t.SqlType)
    if isinstance(found, bool):
        return str(found).lower()
    return None if found is None else format_value(found, function.result)


@pytest.mark.parametrize("seed", [1, 2])
def test_shapes_mean_what_they_mean_to_postgresql(
    seed: int, postgres_server: PostgresServer
) -> None:
    random, wrong, answered = Random(seed), [], 0
    with psycopg.connect(postgres_server.dsn, autocommit=True) as peer:
        for at in range(max(COUNT // 2, len(TABLE))):
            function = TABLE[at % len(TABLE)]
            pairs = [_value(random, kind) for kind in function.parameters]  # type: ignore[arg-type]
            call = _call(function, [text for text, _ in pairs])
            try:
                row = peer.execute(f"select ({call})::text".encode()).fetchone()
                theirs = None if row is None else row[0]
                answered += 1
            except psycopg.Error as error:
                theirs = error.sqlstate
            ours = _ours(function, [value for _, value in pairs])
            if ours != theirs:
                wrong.append(f"{call}: {theirs!r}, ours {ours!r}")
    assert wrong == [], "\n".join(wrong[:20])
    assert answered > COUNT // 4, "most calls fail: the generator is of no use"
