"""PostgreSQL's own grammar stands before the parser: what it refuses, where, what it may cost."""

from __future__ import annotations

import threading
import time

import pytest

from noonmark.errors import InvalidSyntax, TooComplex, UsageError, WindowingError
from noonmark.sql import dialect, gate

LENIENT = ("insert into t values (1) (2)", "select a.k from a join b", "values (1) (2, 3)")


@pytest.mark.parametrize("text", LENIENT)
def test_a_text_that_lacks_something_is_refused_where_it_is_sent(text: str) -> None:
    with pytest.raises(InvalidSyntax, match="syntax error at"):
        dialect.read(text)


@pytest.mark.parametrize("text", LENIENT)
def test_what_is_stored_is_read_as_it_was(text: str) -> None:
    """A view that an earlier version took goes on."""
    assert dialect.parse(text)


def test_the_position_is_that_of_the_whole_text() -> None:
    with pytest.raises(InvalidSyntax, match='at or near "1"') as caught:
        gate.check("select 'éé', 'ü' 1", offset=100)
    assert caught.value.position == 118


def test_what_the_grammar_itself_refuses_has_its_own_code() -> None:
    with pytest.raises(WindowingError, match="frame"):
        gate.check("select sum(a) over (rows 1 following) from t")
    with pytest.raises(InvalidSyntax, match="LIMIT #,#"):
        gate.check("select 1 limit 1, 2")


@pytest.mark.parametrize(
    "text", ["select 1 /* a /* b */ c */ + 2 -- d", "select 'a' /* b */\n 'c'"]
)
def test_comments_are_blanks(text: str) -> None:
    gate.check(text)
    with pytest.raises(InvalidSyntax, match='at or near "\\)"') as caught:
        gate.check(f"{text}\n)")
    assert caught.value.position == len(text) + 2


NESTED = {
    "brackets": "select " + "(" * 300_000 + "1" + ")" * 300_000,
    "operators": "select " + "1+" * 300_000 + "1",
    "not": "select " + "not " * 300_000 + "true",
    "casts": "select x" + "::int" * 300_000,
    "unions": "select 1 " + "union all select 1 " * 100_000,
    "comments": "select " + "/*" * 20_000 + "*/" * 20_000 + " 1",
    "rows": "values " + "(1,2)," * 300_000 + "(1,2)",
}


@pytest.mark.parametrize("kind", NESTED)
def test_no_depth_ends_the_process(kind: str) -> None:
    """In a thread with a small stack: it would not be an error, but the end."""
    found: list[BaseException | float] = []

    def check() -> None:
        begun = time.thread_time()
        try:
            gate.check(NESTED[kind])
        except (InvalidSyntax, TooComplex) as error:
            found.append(error)
        found.append(time.thread_time() - begun)

    before = threading.stack_size(512 << 10)
    thread = threading.Thread(target=check)
    thread.start()
    threading.stack_size(before)
    thread.join()
    *errors, took = found
    assert isinstance(took, float)
    assert took < 5
    assert all(isinstance(error, UsageError) for error in errors)
