"""SQL/JSON paths against a real PostgreSQL: generated paths over generated documents."""

from __future__ import annotations

import json
import os
from random import Random

import psycopg
import pytest

from noonmark.errors import NoonmarkError
from noonmark.rows.coded.jsonpath import Jsonpath
from noonmark.rows.coded.path_syntax import parse
from noonmark.sql.functions import FUNCTIONS
from support.neighbour.servers import PostgresServer
from support.sql.jsonpaths import document, path

COUNT = int(os.environ.get("NOONMARK_COUNT", "1500"))
_VARIABLES = '{"x": "a", "y": 1}'
_NAMES = (
    "jsonb_path_query_array",
    "jsonb_path_query_first",
    "jsonb_path_exists",
    "jsonb_path_match",
)


def _ours(name: str, doc: str, text: str, silent: bool) -> object:
    function = FUNCTIONS.by_id[f"{name}(jsonb, jsonpath, jsonb, boolean)"]
    try:
        return function.meaning(doc, Jsonpath().parse(text), _VARIABLES, silent)
    except NoonmarkError as error:
        return error.sqlstate


def _theirs(peer: psycopg.Connection, name: str, doc: str, text: str, silent: bool) -> object:
    sql = f"select {name}(%s::jsonb, %s::jsonpath, %s::jsonb, %s)"
    try:
        found = peer.execute(sql, (doc, text, _VARIABLES, silent)).fetchone()
    except psycopg.Error as error:
        return error.sqlstate
    assert found is not None
    return found[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_paths_mean_what_they_mean_to_postgresql(
    seed: int, postgres_server: PostgresServer
) -> None:
    random, wrong, answered = Random(seed), [], 0
    with psycopg.connect(postgres_server.dsn, autocommit=True) as peer:
        peer.adapters.register_loader("jsonb", psycopg.types.string.TextLoader)
        for _ in range(COUNT // 2):
            doc, text = json.dumps(document(random)), path(random)
            name, silent = random.choice(_NAMES), random.random() < 0.3
            stored = peer.execute("select %s::jsonb::text", (doc,)).fetchone()
            assert stored is not None
            theirs = _theirs(peer, name, stored[0], text, silent)
            ours = _ours(name, stored[0], text, silent)
            answered += not (isinstance(theirs, str) and len(theirs) == 5)
            if theirs != ours:
                wrong.append(f"{name}({doc!r}, {text!r}, {silent}): {theirs!r}, ours {ours!r}")
    assert wrong == [], "\n".join(wrong[:20])
    assert answered > COUNT // 8, "most paths fail: the generator is of no use"


def test_the_text_of_a_path_is_postgresqls_or_the_same_path(
    postgres_server: PostgresServer,
) -> None:
    """Its text reads as the same tree; where PostgreSQL can read its own again, it is the same."""
    random, wrong, alike, kind = Random(3), [], 0, Jsonpath()
    with psycopg.connect(postgres_server.dsn, autocommit=True) as peer:
        peer.execute(
            "create function pg_temp.again(p text) returns text language plpgsql as "
            "$$ begin return p::jsonpath::text; exception when others then return sqlstate; end $$"
        )
        for _ in range(COUNT):
            text = path(random)
            try:
                mine = kind.show(kind.parse(text))
            except NoonmarkError as error:
                mine = error.sqlstate
            row = peer.execute("select p, pg_temp.again(p) from pg_temp.again(%s) p", (text,))
            theirs, again = row.fetchone() or ("", "")
            if len(mine) != 5 and parse(mine) != parse(kind.show(kind.parse(mine))):
                wrong.append(f"{text!r}: {mine!r} is another path")
            if theirs == again or len(mine) == 5:
                alike += theirs == mine
                if theirs != mine:
                    wrong.append(f"{text!r}: {theirs!r}, ours {mine!r}")
    assert wrong == [], "\n".join(wrong[:20])
    assert alike > COUNT // 2
