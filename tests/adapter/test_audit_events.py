"""Who did what to the catalog: `adapter.catalog.audit`, `mz_audit_events` and its neighbours."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from noonmark.adapter.catalog import audit
from noonmark.adapter.catalog.audit import differences
from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.adapter.database import Database
from support.serve.reading import Conversation, connect, database, with_database

_EVENTS = """
    select event_type, object_type, details->>'item', details->>'old_name', details->>'role',
           details->>'rights', "user"
    from mz_audit_events order by id
"""

_ITEMS = st.builds(
    Item,
    number=st.integers(1, 4),
    kind=st.just("table"),
    schema_name=st.just("public"),
    name=st.sampled_from("ab"),
    owner=st.sampled_from("xy"),
    comments=st.sampled_from([{}, {"": "said"}]),
    grants=st.sampled_from([{}, {"x": frozenset({"SELECT"})}, {"y": frozenset({"INSERT"})}]),
    retain_ms=st.sampled_from([None, 5]),
)
_CATALOGS = st.lists(_ITEMS, unique_by=lambda item: item.number).map(
    # Names are free again here: the law is about items, by number.
    lambda items: Catalog.of([_own_name(item) for item in items])
)


def _own_name(item: Item) -> Item:
    return Item(**{**item.__dict__, "name": f"{item.name}{item.number}"})


@given(_CATALOGS, _CATALOGS)
def test_no_difference_means_the_same_objects(one: Catalog, other: Catalog) -> None:
    same = dict(one.by_number) == dict(other.by_number)
    assert (list(differences(one, other)) == []) == same
    assert (list(differences(other, one)) == []) == same


@with_database
async def test_every_change_is_an_event_of_its_role(opened: Database) -> None:
    client = await connect(opened)
    for sql in (
        "create role amy",
        "create table t (a int)",
        "alter table t rename to u",
        "grant select, insert on u to amy",
        "revoke insert on u from amy",
        "comment on table u is 'said'",
        "create temporary table mine (a int)",
        "insert into u values (1)",
        "begin",
        "create view w as select a from u",
        "drop table mine",
        "commit",
        "alter view w owner to amy",
        "drop view w",
    ):
        await client.ask(sql)
    assert await client.ask(_EVENTS) == [
        ("create", "role", "amy", None, None, None, "noonmark"),
        ("create", "table", "t", None, None, None, "noonmark"),
        ("alter", "table", "u", "t", None, None, "noonmark"),
        ("grant", "table", "u", None, "amy", "INSERT, SELECT", "noonmark"),
        ("revoke", "table", "u", None, "amy", "INSERT", "noonmark"),
        ("comment", "table", "u", None, None, None, "noonmark"),
        ("create", "view", "w", None, None, None, "noonmark"),
        ("alter", "view", "w", None, None, None, "noonmark"),
        ("drop", "view", "w", None, None, None, "noonmark"),
    ]


def test_events_outlive_the_process(tmp_path: Path) -> None:
    async def made() -> list[tuple[object, ...]]:
        async with database(str(tmp_path)) as opened:
            client = await connect(opened)
            await client.ask("create table t (a int)")
            await client.ask("drop table t")
            return await client.ask("select * from mz_audit_events")

    async def found() -> list[tuple[object, ...]]:
        async with database(str(tmp_path)) as opened:
            client = await connect(opened)
            before = await client.ask("select * from mz_audit_events")
            await client.ask("create table t (a int)")
            numbers = await client.ask("select id from mz_audit_events order by id")
            assert [number for (number,) in numbers] == [1, 2, 3]
            return before

    assert asyncio.run(made()) == asyncio.run(found())


@with_database
async def test_only_the_newest_events_are_kept(opened: Database) -> None:
    most, audit.EVENTS_MAX = audit.EVENTS_MAX, 5
    try:
        client = await connect(opened)
        for at in range(8):
            await client.ask(f"create table t{at} (a int)")
        numbers = [number for (number,) in await client.ask("select id from mz_audit_events")]
        assert sorted(numbers) == [4, 5, 6, 7, 8]
        opened.store.audit.load()
        assert [event[0] for event in opened.store.audit.events] == [4, 5, 6, 7, 8]
    finally:
        audit.EVENTS_MAX = most


@with_database
async def test_a_session_and_its_address_are_its_own(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create role amy login")
    amy = Conversation(await opened.connect("amy", "noonmark", {}, "test"))
    rows = (
        "select s.client_ip is null, r.name from mz_sessions s join mz_roles r on r.id = s.role_id"
    )
    assert sorted(await client.ask(rows)) == [(False, "amy"), (False, "noonmark")]
    assert sorted(await amy.ask(rows)) == [(False, "amy"), (True, "noonmark")]
