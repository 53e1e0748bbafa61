"""to_number against a real PostgreSQL: generated texts under generated templates."""

from __future__ import annotations

import os
from random import Random

import psycopg
import pytest

from noonmark.errors import NoonmarkError
from noonmark.sql.functions import FUNCTIONS
from support.neighbour.servers import PostgresServer

COUNT = int(os.environ.get("NOONMARK_COUNT", "2000"))
_DIGITS = ("9", "0", "9", "9", "99", ".", "D", ",")
_PATTERNS = (
    *_DIGITS,
    "G",
    "S",
    "MI",
    "PL",
    "SG",
    "PR",
    "FM",
    "L",
    "TH",
    "th",
    "V",
    "x",
    '"a"',
    "é",
)
_WHOLE = (
    *("99G999D9S", "S999.99", "999MI", "FM999.99", "9V9", "99V99", "999PR", "PL99", "SG99"),
    *("L999", "99TH", "9,999,999.99"),
)
_PIECES = (
    *("1", "2", "0", "12", "345", ".", ",", "-", "+", " ", "<", ">", "x", "th", "é", "$", "a"),
)


def _template(random: Random) -> str:
    if random.random() < 0.4:
        return random.choice(_WHOLE)
    some = [_DIGITS if random.random() < 0.7 else _PATTERNS for _ in range(random.randint(1, 7))]
    return "".join(random.choice(each) for each in some)


@pytest.mark.parametrize("seed", [1, 2])
def test_numbers_are_read_as_postgresql_reads_them(
    seed: int, postgres_server: PostgresServer
) -> None:
    random, wrong, answered = Random(seed), [], 0
    meaning = FUNCTIONS.by_id["to_number(text, text)"].meaning
    with psycopg.connect(postgres_server.dsn, autocommit=True) as peer:
        for _ in range(COUNT // 2):
            template = _template(random)
            text = "".join(random.choice(_PIECES) for _ in range(random.randrange(7)))
            try:
                found = peer.execute("select to_number(%s, %s)::text", (text, template)).fetchone()
                theirs = None if found is None else found[0]
                answered += theirs is not None
            except psycopg.Error as error:
                theirs = f"{error.sqlstate} {error.diag.message_primary}"
            try:
                made = meaning(text, template)
                ours = None if made is None else f"{made:f}"
            except NoonmarkError as error:
                ours = f"{error.sqlstate} {error.message}"
            if ours != theirs:
                wrong.append(f"to_number({text!r}, {template!r}): {theirs!r}, ours {ours!r}")
    assert wrong == [], "\n".join(wrong[:20])
    assert answered > COUNT // 8, "most texts are none: the generator is of no use"
