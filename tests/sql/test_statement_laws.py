"""Laws of reading statements: tokens cover the text, pieces mean what they mean alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as some

from noonmark.errors import NoonmarkError
from noonmark.sql.lexer import Token, tokens_of
from noonmark.sql.statement import parse_statements, split_statements

_PIECES = (
    *("select 1", "select 'a;b'", 'select ";"', "select $$;$$", "select E'\\';'", "table t"),
    *("begin", "insert into t values (1, ';')", "set x = 'y'", "drop table t", "show tables"),
    *("select 1 -- ;\n", "select /* ; */ 2", "subscribe t with (progress)"),
)
_BETWEEN = (";", " ; ", ";\n", ";;", "; -- x;y\n", ";/* a;b */")
_WORDS = (
    *("create", "table", "materialized", "view", "source", "from", "load", "generator", "select"),
    *("subscribe", "with", "as", "of", "up", "to", "insert", "into", "values", "update", "set"),
    *(
        "delete",
        "copy",
        "stdin",
        "(",
        ")",
        ",",
        ";",
        "'",
        '"',
        "$$",
        "$1",
        "1",
        "--",
        "/*",
        "=",
        ".",
    ),
    *(
        "t",
        "a",
        "'x'",
        "explain",
        "for",
        "show",
        "grant",
        "on",
        "begin",
        "fetch",
        "key",
        "mutually",
    ),
    *("recursive", "returning", "*", "default", "default values", "alter", "comment", "is", "null"),
)


def outcome(act: Callable[[], Any]) -> Any:
    """What it gives, or the error that it is refused with: anything else fails the test."""
    try:
        return act()
    except NoonmarkError as error:
        return error


@given(some.text())
@example("$a$b$a$ $1 1e5 .5 a.b->>'c' U&'x' /* /* */ */")
def test_tokens_cover_the_text(text: str) -> None:
    found = outcome(lambda: tokens_of(text))
    if isinstance(found, NoonmarkError):
        assert found.position is not None
        return
    tokens: list[Token] = found
    ends = [0, *(token.end for token in tokens)]
    for before, token in zip(ends, tokens, strict=False):
        assert before <= token.start <= token.end
        between = text[before : token.start]
        assert not between.strip() or between.lstrip().startswith(("--", "/*"))
    assert tokens[-1].kind == "end"
    assert tokens[-1].end == len(text)


@given(some.lists(some.tuples(some.sampled_from(_PIECES), some.sampled_from(_BETWEEN)), max_size=6))
def test_a_text_is_its_statements(parts: list[tuple[str, str]]) -> None:
    text = "".join(piece + between for piece, between in parts)
    found = parse_statements(text)
    alone = [parse_statements(piece)[0].statement for piece, _ in parts]
    assert [one.statement for one in found] == alone
    assert split_statements(text) == tuple(one.text for one in found)
    for one in found:
        assert text[one.position - 1 :].startswith(one.text)


def test_no_statement_at_all() -> None:
    for text in ("", " ", ";;", "-- nothing", "/* ; */ ;"):
        assert parse_statements(text) == ()


@given(some.lists(some.sampled_from(_WORDS), max_size=14))
@example(["with", "mutually", "recursive", "t", "("])
@example(["copy", "(", "subscribe", "t", ")", "to"])
def test_nonsense_is_refused_in_words(words: list[str]) -> None:
    found = outcome(lambda: parse_statements(" ".join(words)))
    if isinstance(found, NoonmarkError):
        assert found.sqlstate in ("42601", "0A000", "22P02", "42P02"), found
        assert "sqlglot" not in str(found)
