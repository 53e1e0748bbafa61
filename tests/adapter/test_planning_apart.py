"""Long queries are planned by a process of their own: the laws of `adapter.peek.remote`."""

from __future__ import annotations

import time
from typing import Any

import pytest

from noonmark.adapter.catalog.item import KINDS
from noonmark.adapter.database import Database
from noonmark.adapter.peek import remote
from noonmark.adapter.peek.planning import PlannedQuery, plan_query
from noonmark.adapter.planner import SHORT_MAX
from noonmark.adapter.session.session import AdapterSession
from noonmark.adapter.weight import text_weight
from noonmark.errors import InsufficientPrivilege, NoonmarkError, TooComplex
from noonmark.sql.dialect import parse
from support.hostile.statements import PLANNING
from support.serve.reading import Conversation, connect, with_database

#: Longer than what is planned here.
LONG = f"/* {'long ' * SHORT_MAX} */"


async def prepared(opened: Database) -> Conversation:
    client = await connect(opened)
    await client.ask("create table kv (k int primary key, v text)")
    await client.ask("insert into kv values (1, 'a'), (2, 'b')")
    await client.ask("create view few as select k, v || '!' as w from kv where k < 2")
    return client


async def both(session: AdapterSession, text: str) -> tuple[PlannedQuery, PlannedQuery]:
    query = remote.UnreadQuery(text, 1)
    apart = await remote.plan(session, query, (), None, "SELECT")
    return apart, plan_query(session, parse(text))


@pytest.mark.parametrize("name", sorted(PLANNING))
def test_a_plan_is_the_same_wherever_it_is_made(name: str) -> None:
    @with_database
    async def run(opened: Database) -> None:
        client = await prepared(opened)
        apart, here = await both(client.session, PLANNING[name](100))
        assert apart == here

    run()


@with_database
async def test_so_is_one_that_asks_the_session_the_catalog_and_parameters(opened: Database) -> None:
    client = await prepared(opened)
    await client.ask("create sequence numbers")
    for text in (
        "select current_user, current_setting('TimeZone'), now(), pg_backend_pid() from kv",
        "select w, k + $1 from few where k = $2 order by w limit $3",
        "select nextval('numbers'), has_table_privilege('kv', 'select')",
        "select relname from pg_class join pg_namespace n on n.oid = relnamespace",
        "select last_value from numbers",
    ):
        apart, here = await both(client.session, text)
        assert apart == here, text
        assert apart.catalog is client.session.catalog


@with_database
async def test_so_is_one_that_names_types(opened: Database) -> None:
    client = await prepared(opened)
    await client.ask("create schema s")
    for made in ("mood", 's."Odd one"'):
        await client.ask(f"create type {made} as enum ('sad', 'ok')")
    await client.ask("create domain brief as varchar(3) default 'x' check (value <> '')")
    await client.ask("create domain liked as mood not null check (value > 'sad')")
    await client.ask("create table felt (k int primary key, m mood)")
    await client.ask("insert into felt values (1, 'ok')")
    await client.ask("create view good as select k, m from felt where m > 'sad'::mood")
    for text in (
        "select 'ok'::mood, null::mood[], m from felt",
        "select mood 'ok' < m, s.\"Odd one\" 'sad' from felt",
        "select 'ab'::brief, 'ok'::liked, brief 'a' from felt",
        "select m, enum_range(m) from good where m >= 'ok'",
    ):
        apart, here = await both(client.session, text)
        assert apart == here, text
        long = await client.ask(f"{LONG} {text}")
        assert long == await client.ask(text)
        assert len(long) == 1


def test_of_every_kind_of_item_it_is_known_whether_it_is_sent() -> None:
    # What is kept back is what no query names: whatever else there will be, a name finds it.
    assert remote._UNSENT == {"connection", "secret", "sink"} < set(KINDS)


@with_database
async def test_a_long_text_gives_its_answer(opened: Database) -> None:
    client = await prepared(opened)
    assert await client.ask(f"{LONG} select 1") == [(1,)]
    terms = " + ".join(["k"] * 700)
    assert text_weight(terms) > SHORT_MAX
    assert await client.ask(f"select {terms}, current_user from kv where k = 2") == [
        (1400, "noonmark"),
    ]
    assert await client.ask(f"select {terms} from few") == [(700,)]
    ready = await client.session.prepare(f"select {terms} + $1 from kv where v = $2")
    assert isinstance(ready.statement.query, remote.UnreadQuery)  # type: ignore[attr-defined]
    for value in (1, 2):
        rows = await client.session.execute(ready, (value, "a"))
        assert [row async for chunk in rows.chunks for row in chunk] == [(700 + value,)]  # type: ignore[union-attr]


@with_database
async def test_errors_are_those_of_any_statement(opened: Database) -> None:
    client = await prepared(opened)
    terms = " + ".join(["k"] * 700)
    for text in (
        f"select {terms} from nowhere",
        f"select {terms} frm kv",
        f"select {terms} + nothing from kv",
        f"select {terms} + (select from kv",
    ):
        short = text.replace(terms, "k", 1)
        with pytest.raises(NoonmarkError) as here:
            await client.ask(short)
        with pytest.raises(NoonmarkError) as apart:
            await client.ask(text)
        assert str(apart.value) == str(here.value)
        assert apart.value.sqlstate == here.value.sqlstate


@with_database
async def test_rights_are_asked_for(opened: Database) -> None:
    client = await prepared(opened)
    await client.ask("alter role noonmark password 'x'")  # else everybody is a superuser
    await client.ask("create role her login")
    hers = Conversation(await opened.connect("her", "noonmark", {}, "test"))
    with pytest.raises(InsufficientPrivilege, match="kv"):
        await hers.ask("select " + " + ".join(["k"] * 700) + " from kv")


@with_database
async def test_no_secret_is_sent(opened: Database) -> None:
    client = await prepared(opened)
    await client.ask("create role her login password 'planted-password'")
    await client.ask("create secret key as 'planted-secret'")
    sent = remote.sent_catalog(client.session.catalog)
    assert b"kv" in sent
    for planted in (b"planted", b"SCRAM"):
        assert planted not in sent


@with_database
async def test_the_server_itself_hardly_works_for_it(opened: Database) -> None:
    client = await prepared(opened)
    text = PLANNING["columns"](2_000)
    here = time.process_time()
    plan_query(client.session, parse(text))
    here = time.process_time() - here
    await client.session.prepare(PLANNING["columns"](300))  # the first worker is forked
    taken: list[float] = []
    for more in range(3):  # the best of them: others work in this process too
        begun = time.process_time()
        await client.session.prepare(PLANNING["columns"](2_000 + more))
        taken.append(time.process_time() - begun)
    assert min(taken) < here / 3


# The end may come while a callback of the collector of garbage runs, which is Hypothesis's in the
# process of all tests: it is lost there, and said again.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_planning_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PROCESSOR_S", 0.0)
    monkeypatch.setattr(remote, "_LOOK_S", 0.005)
    reading: Any = remote.Reading(PLANNING["columns"](3_000))
    with pytest.raises(TooComplex, match="cannot be planned"):
        reading.rows({})
