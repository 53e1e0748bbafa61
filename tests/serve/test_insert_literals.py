"""INSERT of many rows of literals: the same rows or error as when each cell is planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noonmark.sql.statement import parse_statements, split_statements
from noonmark.sql.statement import statement as s
from noonmark.sql.statement.literals import LiteralRows, literal_insert
from support.serve.host import DatabaseHost

KINDS = (
    "smallint", "int", "bigint", "numeric", "numeric(6,2)", "double precision", "boolean", "text",
    "varchar(4)", "char(3)", "uuid", "date", "timestamp", "real", "jsonb",
)  # fmt: skip
NUMBERS = ("0", "1", "-1", "-0", "007", "-0.0", "1.50", "2.5", "32767", "-32768", "32768", "0.1",
           "2147483648", "9223372036854775807", "-9223372036854775808", "123456789012345678901",
           "123456.789", "16777217", "9007199254740993")  # fmt: skip
TEXTS = ("", "a", "it''s", "abcd  ", "abcde", "\\\\", "1", " 1 ", "-0", "1.5", "t", "yes", "NaN",
         "2024-02-29", "2024-02-30", "2024-02-29 10:20:30.5", "today", "now", "infinity", "0x10",
         "a;b", "--", "a,b)", "(", "5f2b3b34-1c3e-4bd7-9c2c-000000000001", "null", "{}",
         "2024-02-29 25:00", "é")  # fmt: skip
CELLS = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(TEXTS).map(lambda text: f"'{text}'"),
    st.sampled_from(["null", "NULL", "true", "False"]),
)
FITTING = {
    "smallint": ["1", "-2", "null", "'3'"],
    "int": ["1", "-2", "null", "'3'"],
    "bigint": ["1", "-2", "null", "9223372036854775807"],
    "numeric": ["1.50", "-2", "'NaN'", "null"],
    "numeric(6,2)": ["1.555", "-2", "null"],
    "double precision": ["1.5", "-2", "'1e300'", "0"],
    "boolean": ["true", "False", "'t'", "null"],
    "text": ["'a'", "'it''s'", "''", "null"],
    "varchar(4)": ["'a'", "'abcd  '"],
    "char(3)": ["'a'", "'abc'"],
    "uuid": ["'5f2b3b34-1c3e-4bd7-9c2c-000000000001'", "null"],
    "date": ["'2024-02-29'", "null"],
    "timestamp": ["'2024-02-29 10:20:30.5'", "'2024-02-29 10:20'"],
    "real": ["1.5", "null"],
    "jsonb": ["'{}'", "null"],
}


@pytest.fixture(scope="module")
def connection(database_host: DatabaseHost) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_host.dsn("noonmark"), autocommit=True) as opened:
        opened.prepare_threshold = None
        columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(KINDS))
        opened.execute(f"create table literal_rows ({columns})".encode())
        yield opened


def outcome(connection: psycopg.Connection[Any], text: str, columns: str) -> Any:
    """What is there after the statement, or its error."""
    try:
        with connection.transaction(force_rollback=True):
            done = connection.execute(text.encode())
            shown = f"select {columns} from literal_rows".encode()
            found = connection.execute(shown).fetchall()
            return done.statusmessage, sorted(map(repr, found))
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_as_if_each_were_planned(connection: psycopg.Connection[Any], data: st.DataObject) -> None:
    places = data.draw(
        st.lists(st.integers(0, len(KINDS) - 1), min_size=1, max_size=4, unique=True)
    )
    wild = data.draw(st.booleans())
    cell = [CELLS if wild else st.sampled_from(FITTING[KINDS[at]]) for at in places]
    rows = data.draw(st.lists(st.tuples(*cell), min_size=4, max_size=6))
    columns = ", ".join(f"c{at}" for at in places)
    values = ", ".join(f"({', '.join(row)})" for row in rows)
    text = f"insert into literal_rows ({columns}) values {values}"
    assert literal_insert(text) is not None
    assert literal_insert(text + " /**/") is None
    shown = ", ".join(f"c{at}::text" for at in range(len(KINDS)))
    assert outcome(connection, text, shown) == outcome(connection, text + " /**/", shown)


@pytest.mark.parametrize(
    "text",
    [
        "insert into t values (1, 'a'), (2, 'b'), (3, null), (4, 'd;')",
        "  INSERT INTO s.t (a, \"B\") VALUES\n(1,'a') ,( 2 ,'b'),(-3,'it''s'),(4.5,TRUE) ; ",
    ],
)
def test_the_parser_agrees(text: str) -> None:
    (fast,), (slow,) = parse_statements(text), parse_statements(text.rstrip("; ") + " /**/")
    assert isinstance(fast.statement, s.Insert)
    assert isinstance(slow.statement, s.Insert)
    assert isinstance(fast.statement.query, LiteralRows)
    assert slow.statement.query is not None
    assert not isinstance(slow.statement.query, LiteralRows)
    assert fast.statement.query.tree == slow.statement.query.tree
    assert fast.statement.query.position == slow.statement.query.position
    assert (fast.text, fast.position) == (slow.text, slow.position)
    assert (fast.statement.table, fast.statement.columns) == (
        slow.statement.table,
        slow.statement.columns,
    )
    assert split_statements(text) == (fast.text,)


@pytest.mark.parametrize(
    "end",
    [
        ", (5)", ", (5, 'a'), ", "; select 1", " returning a", " on conflict do nothing",
        ", (5, 'a' 'b')", ", (5, e'a')", ", (1 + 1, 'a')", ", (5, 'a') -- more", ", (5, 'a",
        ", (5, $1)", ", (1e3, 'a')", ", (5, default)", ", (5, 'a'::text)", " union select 1, 'a'",
    ],
)  # fmt: skip
def test_anything_else_is_for_the_parser(end: str) -> None:
    text = "insert into t values (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')"
    assert literal_insert(text) is not None
    assert literal_insert(text + end) is None
