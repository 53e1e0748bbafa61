"""PostgreSQL's functions, operators and types: what `docs/sql/functions.md` says of them is so.

``NOONMARK_REWRITE=1`` tries every call on both servers and writes the page (a minute). Without it
everything that the page calls the same is asked in a few queries of many columns, and what it calls
refused is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from support.house.repository import ROOT
from support.neighbour.servers import PostgresServer
from support.serve.host import DatabaseHost
from support.sql.cases import REWRITE
from support.sql.functions.page import Tried, page, read, share_refused
from support.sql.functions.trials import SETUP, Named, families, operators, sign, tried, types
from support.sql.seen import ask

PAGE = ROOT / "docs" / "sql" / "functions.md"
#: What the page may call refused, of the functions.
REFUSED_MAX = 0.15


@pytest.fixture(scope="module")
def ours() -> Iterator[psycopg.Connection]:
    host = DatabaseHost()
    with psycopg.connect(host.dsn("noonmark"), autocommit=True) as connection:
        for statement in SETUP:
            ask(connection, statement)
        yield connection
    host.close()


@pytest.fixture(scope="module")
def peer(postgres_server: PostgresServer) -> Iterator[psycopg.Connection]:
    options = "-c timezone=UTC -c search_path=public -c statement_timeout=5000"
    with psycopg.connect(postgres_server.dsn, autocommit=True) as beside:
        beside.execute("drop database if exists functions_table")
        beside.execute("create database functions_table")
        dsn = f"{postgres_server.dsn.rpartition(chr(47))[0]}/functions_table"
        with psycopg.connect(dsn, autocommit=True, options=options) as connection:
            for statement in SETUP:
                connection.execute(statement.encode())
            yield connection
        beside.execute("drop database functions_table")


def all_calls(one: Named) -> dict[str, list[str]]:
    calls = dict(one.by_signature)
    if one.calls or (one.moment and not calls):
        calls["as the manual writes it"] = one.calls or [f"{one.name}()"]
    return calls


def everything(ours: psycopg.Connection, peer: psycopg.Connection) -> Tried:
    functions, reasons = families()
    sign(functions, peer)
    found = Tried(reasons=reasons)
    for key, one in functions.items():
        found.functions[key] = one, tried(all_calls(one), ours, peer, moment=one.moment)
    for name, calls in operators(peer).items():
        found.operators[name] = tried(calls, ours, peer, moment=False)
    for kind, several in types().items():
        found.types[kind] = tried({kind: several}, ours, peer, moment=False)
    return found


def test_the_page_is_what_both_servers_say(
    ours: psycopg.Connection, peer: psycopg.Connection
) -> None:
    if REWRITE:
        found = everything(ours, peer)
        PAGE.write_text(page(found))
        assert share_refused(found) <= REFUSED_MAX
    said = read(PAGE.read_text())
    functions, _ = families()
    sign(functions, peer)
    lines = {key: all_calls(one) for key, one in functions.items() if not one.moment}
    lines |= {("Operators", name): calls for name, calls in operators(peer).items()}
    lines |= {("Types", kind): {kind: calls} for kind, calls in types().items()}
    known = {key for key in said if key[0] not in ("Operators", "Types")}
    assert set(functions) == known, "the page has other functions: NOONMARK_REWRITE=1 writes it"
    same = [
        call
        for key, calls in lines.items()
        if said.get(key) == "same"
        for several in calls.values()
        for call in several
    ]
    answered = [call for call in same if not ask(peer, f"select {call}").state]
    wrong = [
        one
        for at in range(0, len(answered), 40)
        for one in unlike(answered[at : at + 40], ours, peer)
    ]
    assert wrong == [], "not the same as in PostgreSQL:\n" + "\n".join(wrong)
    refused = [key for key in functions if said[key] == "refused"]
    answered_now = [key for key in refused if any_answer(functions[key], ours)]
    assert answered_now == [], "not refused any more: NOONMARK_REWRITE=1 writes the page"
    assert len(refused) / len(functions) <= REFUSED_MAX


def unlike(calls: list[str], ours: psycopg.Connection, peer: psycopg.Connection) -> list[str]:
    """The calls that both answer otherwise: asked together, and one by one if that differs."""
    together = "select " + ", ".join(f"{call} as x{at}" for at, call in enumerate(calls))
    mine, theirs = (ask(server, together) for server in (ours, peer))
    if not theirs.state and mine.text() == theirs.text():
        return []
    wrong = []
    for call in calls:
        theirs = ask(peer, f"select {call} as x")
        if not theirs.state and ask(ours, f"select {call} as x").text() != theirs.text():
            wrong.append(call)
    return wrong


def any_answer(one: Named, ours: psycopg.Connection) -> bool:
    """Whether a function that is called refused answers the first of its calls."""
    first = next((call for calls in all_calls(one).values() for call in calls), None)
    return first is not None and not ask(ours, f"select {first} as x").state
