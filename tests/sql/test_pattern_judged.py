"""LIKE, SIMILAR TO and regular expressions against a PostgreSQL; and that none takes for ever.

The laws `exact` and `linear` of `noonmark.sql.functions.text.pattern`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import psycopg
import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import InvalidArgument, NoonmarkError
from noonmark.rows.schema import Schema
from noonmark.sql.functions.text import pattern
from noonmark.sql.ir.relation import Relation
from noonmark.sql.meaning.relation import evaluate
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify
from support.neighbour.servers import PostgresServer
from support.sql.patterns import Patterns
from support.sql.peer import connected

PATTERNS = 400

#: What is asked of both: SQL over a text, a pattern and options, with the one that is asked.
ASKED = {
    "like": ("%(text)s LIKE %(liked)s", "liked"),
    "ilike": ("%(text)s ILIKE %(liked)s", "liked"),
    "similar": ("%(text)s SIMILAR TO %(similarly)s", "similarly"),
    "match": ("%(text)s ~ %(regex)s", "regex"),
    "match i": ("%(text)s ~* %(regex)s", "regex"),
    "captures": ("regexp_match(%(text)s, %(regex)s, %(flags)s)", "regex"),
    "replace": (r"regexp_replace(%(text)s, %(regex)s, '<\1\&>', %(flags)s)", "regex"),
    "replace all": (r"regexp_replace(%(text)s, %(regex)s, '<\2>', 'g')", "regex"),
    "split": ("regexp_split_to_array(%(text)s, %(regex)s)", "regex"),
    "count": ("regexp_count(%(text)s, %(regex)s)", "regex"),
    "instr": ("regexp_instr(%(text)s, %(regex)s)", "regex"),
    "substring": ("substring(%(text)s from %(regex)s)", "regex"),
}


@pytest.fixture
def peer(postgres_server: PostgresServer) -> Iterator[psycopg.Connection]:
    with connected(postgres_server.dsn) as connection:
        yield connection


@pytest.mark.parametrize("asked", ASKED)
def test_every_pattern_means_what_it_means_to_postgres(
    peer: psycopg.Connection, asked: str
) -> None:
    sql, kind = ASKED[asked]
    generated = Patterns(sum(map(ord, asked)))
    matched = 0
    for at in range(PATTERNS):
        makers: dict[str, Callable[[], str]] = {
            "regex": generated.regex if at % 8 else generated.noise,
            "similarly": generated.similar,
            "liked": generated.like,
        }
        given = {"text": generated.text(), "flags": generated.flags(), kind: makers[kind]()}
        if asked == "captures":
            given["flags"] = given["flags"].replace("g", "")
        wanted, found = _theirs(peer, sql, given), _ours(sql, given)
        assert found == wanted, (sql, given)
        matched += wanted not in (False, None, "error 22")
    assert matched > PATTERNS / 20, "most patterns match nothing: the generator has a fault"


def _theirs(peer: psycopg.Connection, sql: str, given: dict[str, str]) -> Any:
    try:
        (found,) = peer.execute(f"SELECT {sql}", given).fetchone() or (None,)
    except psycopg.Error as error:
        return f"error {(error.sqlstate or '')[:2]}"
    return tuple(found) if isinstance(found, list) else found


@lru_cache
def _plan(sql: str, names: tuple[str, ...]) -> Relation:
    text = sql.replace("%(", "").replace(")s", "")
    return plan_query(
        f"SELECT {text} FROM t", {"t": Schema.of(**dict.fromkeys(names, "text"))}
    ).relation


def _ours(sql: str, given: dict[str, str]) -> Any:
    try:
        relation = _plan(sql, tuple(given))
        ((row, _),) = evaluate(relation, {"t": {tuple(given.values()): 1}}).items()
    except NoonmarkError as error:
        return f"error {error.sqlstate[:2]}"
    return row[0]


@pytest.mark.parametrize(
    ("text", "regex"),
    [
        ("a" * 30_000 + "b", "^(a+)+$"),
        ("a" * 30_000 + "b", "^(a|a)*$"),
        ("a" * 30_000 + "b", "^(a|aa)+$"),
        ("a" * 30_000, "(a*)*b"),
        ("a" * 30_000, "(.*)*(.*)*x"),
        ("a" * 2_000 + "b", r"^(a+)+\M$"),
        ("x" * 30_000, "(x+x+)+y"),
        ("a" * 20_000 + "!", "^([a-zA-Z0-9])(([-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}$"),
    ],
)
def test_no_pattern_takes_longer_than_its_text(text: str, regex: str) -> None:
    begun = SYSTEM.monotonic()
    assert not pattern.regex(regex).test(text)
    assert SYSTEM.monotonic() - begun < 2


def test_like_and_similar_take_no_longer_either() -> None:
    begun = SYSTEM.monotonic()
    assert not pattern.like("%a" * 200 + "%b").matches("a" * 30_000)
    assert not pattern.like("%_a" * 100 + "b", ignore_case=True).matches("A" * 30_000)
    assert not pattern.similar("(a|a)*" * 30 + "b").test("a" * 30_000)
    assert SYSTEM.monotonic() - begun < 2


def test_captures_of_a_long_text_are_found_in_little_time() -> None:
    begun = SYSTEM.monotonic()
    subject, spans = pattern.first("ab" * 3_000, pattern.regex("((a|ab)(b|c)*)*")) or (None, ())
    assert subject is not None
    assert spans[0] == (0, 6_000)
    assert SYSTEM.monotonic() - begun < 20


@pytest.mark.parametrize("regex", [r"(a)\1", r"(a|b)c\1", r"^(.+)\1+$"])
def test_back_references_are_known_to_be_unbounded(regex: str) -> None:
    assert not pattern.is_linear(regex)
    assert pattern.regex(r"(a+)\1b").test("aaaab")
    # What may take for ever is not asked while the statement is planned.
    relation = simplify(plan_query(f"SELECT 'aa' ~ '{regex}'", {}).relation)
    assert repr(regex) in str(relation)


@pytest.mark.parametrize(
    ("regex", "why"),
    [
        ("a{256}", "repetition"),
        ("(a", "parentheses"),
        ("[a", "brackets"),
        ("*a", "quantifier"),
        ("\\1", "backreference"),
        ("(" * 200 + ")" * 200, "nested"),
        ("[[:nothing:]]", "character class"),
        ("((((a{200}){200}){200}){200})", "too complex"),
    ],
)
def test_what_cannot_be_is_refused_by_name(regex: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        pattern.regex(regex)


def test_a_literal_pattern_is_folded() -> None:
    relation = simplify(plan_query("SELECT 'abc' LIKE 'a%'", {}).relation)
    assert "like" not in str(relation)
