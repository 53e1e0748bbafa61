"""An execution that comes in one piece is answered as its messages one by one are: same bytes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from noonmark.adapter.contract import Session
from noonmark.adapter.database import Database
from noonmark.clock import SYSTEM
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire.batch import Batches, Values
from noonmark.serve.pgwire.protocol import Conversation
from support.serve.link import SYNC, MemoryLink, bind, describe, execute, parse, query, split
from support.serve.reading import connect, insert, with_database
from support.serve.sessions import Scripted

TEXT, BINARY = 0, 1
#: Statements, the oids of their parameters, and values in text and binary form.
BIG, INT, SMALL, STRING = 20, 23, 21, 25
STATEMENTS: list[tuple[str, tuple[int, ...]]] = [
    ("select k, v, n from t where k = $1", (BIG,)),
    ("select n, v from t where k = $1", (INT,)),
    ("select v from t where k = $1", (SMALL,)),
    ("select v, n from t where v = $1 order by n", (STRING,)),
    ("select n from t where k = $1 and v = $2", (BIG, STRING)),
    ("select count(*) from t where k = $1", (BIG,)),
    ("select 10 / n from t where k = $1", (BIG,)),
    ("select k, g from w where k = $1", (BIG,)),
    ("select * from t where k = $1", (BIG,)),
    ("select at from t where k = $1", (BIG,)),
    ("select v from t where v > $1", (STRING,)),
]
_SIZES = {BIG: 8, INT: 4, SMALL: 2}


class Client:
    """A client whose packets are answered as they come."""

    def __init__(self, session: Session, packets: Callable[[list[bytes]], list[bytes]]) -> None:
        self.link = MemoryLink(())
        self.link.frames.login()
        self._packets = packets
        self._talk = Conversation(self.link, session, Figures(), SYSTEM)

    async def say(self, *messages: bytes) -> bytes:
        """What is answered."""
        self.link.sent.clear()
        for packet in self._packets(list(messages)):
            self.link.frames.feed(packet)
            while not self._talk._answer():
                assert self._talk._rest is not None
                await self._talk._finish(*self._talk._rest)
                self._talk._rest = None
        return bytes(self.link.sent)


def in_one(messages: list[bytes]) -> list[bytes]:
    return [b"".join(messages)]


def one_by_one(messages: list[bytes]) -> list[bytes]:
    """The last two together, as drivers send them: what Sync stands behind is no transaction."""
    return [*messages[:-2], b"".join(messages[-2:])]


def value_of(chance: random.Random, oid: int, form: int) -> bytes | None:
    if chance.random() < 0.05:
        return None
    if oid == STRING:
        return chance.choice([b"a", b"b", b"nobody", b"", "ä".encode()])
    number = chance.choice([1, 2, 3, 4, 5, 99, -1])
    if chance.random() < 0.05:
        return chance.choice([b"", b"x", b"1 2 3", b"\xff" * 3])
    if form == TEXT:
        return str(number).encode()
    return number.to_bytes(_SIZES[oid], "big", signed=True)


def execution(chance: random.Random, at: int) -> list[bytes]:
    form, results = chance.choice([TEXT, BINARY]), chance.choice([(), (TEXT,), (BINARY,)])
    oids = STATEMENTS[at][1]
    values = [value_of(chance, oid, form) for oid in oids]
    message = bind(values, statement=f"s{at}", formats=(form,), results=results)
    described = [describe("P")] if chance.random() < 0.5 else []
    limit = chance.choice([0, 0, 0, 1])
    return [message, *described, execute(rows_max=limit), SYNC]


#: What a client does between its executions, and what others do.
OWN = [
    "set timezone = 'Europe/Vienna'",
    "set timezone = 'UTC'",
    "begin",
    "commit",
    "rollback",
    "set transaction_isolation = 'serializable'",
    "set transaction_isolation = 'strict serializable'",
    "set search_path = other, public",
    "reset search_path",
    "listen news",
    "set role ada",
    "reset role",
    "deallocate s0",
    "deallocate all",
    "select 1 / 0",
]
OTHERS = [
    "update t set n = n + 1",
    "delete from t where k = 5",
    "insert into t values (5, 'e', 5, '2024-01-01 00:00:00+00') on conflict do nothing",
    "alter table t add column if not exists more int",
    "create or replace view w as select k, n * 2 as g from t",
    "notify news, 'n'",
    "revoke select on t from ada",
    "grant select on t to ada",
    "create table if not exists other.t as select * from public.t",
    "drop table if exists other.t",
]


@pytest.mark.parametrize("seed", range(6))
def test_the_same_bytes(seed: int) -> None:
    @with_database
    async def go(opened: Database) -> None:
        chance = random.Random(seed)
        third = await connect(opened)
        for sql in (
            "create table t (k bigint primary key, v text, n int, at timestamptz)",
            "insert into t select g, chr(96 + g), g % 3, '2024-01-01 00:00:00+00' "
            "from generate_series(1, 5) g",
            "insert into t select 1000 + g, 'many', 1, null from generate_series(1, 1500) g",
            "create view w as select k, n as g from t",
            "create schema other",
            "create role ada",
            "grant select on t to ada",
        ):
            await third.ask(sql)
        fast = await opened.connect("noonmark", "noonmark", {}, "test")
        slow = await opened.connect("noonmark", "noonmark", {}, "test")
        both = Client(fast, in_one), Client(slow, one_by_one)

        async def say(*messages: bytes) -> None:
            one, other = [_without_senders(await each.say(*messages)) for each in both]
            assert one == other, messages

        for at, (sql, oids) in enumerate(STATEMENTS):
            await say(parse(sql, f"s{at}", oids), SYNC)
        for _ in range(260):
            step = chance.random()
            if step < 0.08:
                await say(query(chance.choice(OWN)))
            elif step < 0.14:
                await third.ask(chance.choice(OTHERS))
            elif step < 0.2:
                at = chance.randrange(len(STATEMENTS))
                await say(parse(STATEMENTS[at][0], f"s{at}", STATEMENTS[at][1]), SYNC)
            else:
                await say(*execution(chance, chance.randrange(len(STATEMENTS))))

    go()


def _without_senders(raw: bytes) -> list[tuple[str, bytes]]:
    """Who notified is another number for each."""
    return [(kind, body[4:] if kind == "A" else body) for kind, body in split(raw)]


def test_executions_in_one_piece_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge above says nothing if none of them is taken as one."""
    found: list[Values] = []
    plain = Batches.find

    def counting(self: Batches, *given: object) -> object:
        known = plain(self, *given)  # type: ignore[arg-type]
        if known is not None:
            found.append(known[1])
        return known

    monkeypatch.setattr(Batches, "find", counting)

    @with_database
    async def go(opened: Database) -> None:
        third = await connect(opened)
        await third.ask("create table t (k bigint primary key, v text)")
        await insert(opened, "t", (1, "a"), (2, "b"))
        client = Client(await opened.connect("noonmark", "noonmark", {}, "test"), in_one)
        await client.say(parse("select v from t where k = $1", "s", (BIG,)), SYNC)
        for key in (1, 2, 3, 1):
            said = [bind([b"%d" % key], statement="s"), describe("P"), execute(), SYNC]
            await client.say(*said)

    go()
    assert found[-2:] == [(3,), (1,)]


def test_many_rows_in_one_piece() -> None:
    async def go() -> None:
        sessions = Scripted()
        answers = []
        for packets in (in_one, one_by_one):
            client = Client(await sessions.connect("bob", "d", {}, "memory"), packets)
            await client.say(parse("quick 3", "s"), SYNC)
            said = [bind(statement="s"), describe("P"), execute(), SYNC]
            answers.append([await client.say(*said) for _ in range(3)])
            await client.say(parse("quick 2500", "many"), SYNC)
            said = [bind(statement="many"), execute(), SYNC]
            answers[-1] += [await client.say(*said) for _ in range(3)]
        assert answers[0] == answers[1]

    asyncio.run(go())
