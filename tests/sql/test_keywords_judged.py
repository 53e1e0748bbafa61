"""PostgreSQL's keywords as names: wherever PostgreSQL takes one, so do we, and answer the same."""

from __future__ import annotations

import random

import psycopg
import pytest

from support.house.counts import counted
from support.sql.any.versus import both

pytestmark = pytest.mark.server

FORMS = (
    "select 1 as {0}",
    "select {0}.a from (select 1 as a) as {0}",
    "select 1 from (select 1 as a) {0}",
    'select {0} + 1 from (select 1 as "{0}") as x',
    'select x.{0} from (select 1 as "{0}") as x where x.{0} = 1 order by {0}',
    "with {0} as (select 1 as a) select a from {0}",
    "select {0} from (select 1) as x({0})",
    'select count(*) from (select 1 as "{0}") as x group by x.{0}',
    'select 1 from (select 1 as "{0}") x join (select 1 as "{0}") y using ({0})',
)
#: Words that begin or join something else for many parsers: tried at every run.
ALWAYS = ("alter", "between", "drop", "insert", "revoke", "rollback", "value", "type", "name")
#: Words that mean something else here at every place: nobody gives something such a name.
SET_APART = {"into", "not", "select", "recursive", "values", "lock", "cube", "rollup", "if"}


def asked(connection: psycopg.Connection, sql: str) -> object:
    try:
        cursor = connection.execute(sql)
    except psycopg.Error:
        return None
    assert cursor.description is not None
    return [each.name for each in cursor.description], cursor.fetchall()


def test_keywords_are_names_where_they_are_in_postgres() -> None:
    with both() as pair:
        found = pair.peer.execute("select word from pg_get_keywords()").fetchall()
        words = sorted({word for (word,) in found} - SET_APART - {"current_user", "session_user"})
        some = random.Random(1).sample(words, counted(40, len(words)))
        taken = 0
        for word in dict.fromkeys((*ALWAYS, *some)):
            for form in FORMS:
                wanted = asked(pair.peer, form.format(word))
                if wanted is not None and not word.startswith("current_"):
                    assert asked(pair.ours, form.format(word)) == wanted, form.format(word)
                    taken += 1
        assert taken > len(ALWAYS) * len(FORMS)
