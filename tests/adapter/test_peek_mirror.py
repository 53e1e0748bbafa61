"""Mirrors follow persist: whatever was written, sealed, compacted and asked for, in any order."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noonmark import persist
from noonmark.adapter.peek.mirror import Mirror
from noonmark.adapter.peek.mirrors import Mirrors, row_count
from noonmark.errors import IntegrityError
from noonmark.persist import Config, Options, Update
from noonmark.persist.client import Client
from noonmark.persist.log.state import Collection
from noonmark.persist.read.plan import Query
from noonmark.rows.schema import Schema

SCHEMA = Schema.of(id="bigint", item="text", size="double precision", tags="text[]")
# Small batches become parts soon, so that a mirror meets both kinds.
SMALL = Config(inline_batches_max=3, inline_bytes_max=400, garbage_grace_ms=0)

rows = st.tuples(
    st.none() | st.integers(0, 3),
    st.sampled_from(["x", "y"]),
    st.sampled_from([1.0, float("nan")]),
    st.none() | st.lists(st.sampled_from("ab"), max_size=2),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(rows, max_size=4)),
        st.tuples(st.just("delete"), st.integers(0, 9)),
        st.tuples(st.just("seal"), st.integers(1, 3)),
        st.tuples(st.just("compact"), st.none()),
        st.tuples(st.just("read"), st.integers(0, 4)),
    ),
    max_size=25,
)


@pytest.fixture(scope="module")
def client() -> Any:
    with persist.open("memory:mirrors", options=Options(config=SMALL, notify_host=None)) as opened:
        yield opened


def plain(row: tuple[Any, ...]) -> str:
    """A row as text: one NaN, and arrays as they are shown."""
    return repr([list(x) if isinstance(x, tuple) else x for x in row])


def contents(client: Client, name: str, time: int) -> Counter[str]:
    table = client.create_or_load(name)[1].snapshot(time).result(10).to_arrow()
    found: Counter[str] = Counter()
    for entry in table.to_pylist():
        row = tuple(entry[column] for column in SCHEMA.names)
        found[plain(row)] += entry["_diff"]
    return +found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_a_mirror_is_the_collection_at_every_time_that_is_asked(
    client: Client, history: list[tuple[str, Any]]
) -> None:
    name = client.clock.fresh_id()
    write, _ = client.create_or_load(name, SCHEMA, ("id",))
    mirrors = Mirrors(client)
    time, present = 1, []
    for act, argument in history:
        if act == "write":
            write.write([Update(row, time, 1) for row in argument]).result(10)
            present += argument
        elif act == "delete" and argument < len(present):
            write.write([Update(present.pop(argument), time, -1)]).result(10)
        elif act == "seal":
            time += argument
            write.seal(time).result(10)
        elif act == "compact" and time > 3:
            write.allow_compaction(time - 3).result(10)
            client.compact(name).result(10)
        elif act == "read" and time > 1:
            collection = client.state.collection(name)
            at = max(time - 1 - argument, collection.since.only() or 0)
            mirror = asyncio.run(mirrors.at(collection, at))
            if mirror is None:  # a time before the last change that the mirror has taken in
                assert at < time - 1
                continue
            assert mirror.covers(at)
            got = Counter({plain(row): count for row, count in mirror.rows.items()})
            assert got == contents(client, name, at)
            by_index = mirror.find((0, 1), (1, "x"))
            assert sorted(map(repr, by_index)) == sorted(
                repr(pair) for pair in mirror.rows.items() if pair[0][:2] == (1, "x")
            )


@pytest.fixture(scope="module")
def inlining() -> Any:
    """A location whose small writes stay in its log."""
    with persist.open("memory:inlining", options=Options(notify_host=None)) as opened:
        yield opened


def test_what_did_not_change_is_answered_without_waiting(inlining: Client) -> None:
    client = inlining
    name = client.clock.fresh_id()
    write, _ = client.create_or_load(name, SCHEMA, ("id",))
    write.write([Update((1, "x", 1.0, None), 1, 1)]).result(10)
    write.seal(5).result(10)
    mirrors = Mirrors(client)
    assert mirrors.now(client.state.collection(name), 4) is None, "nothing was asked for yet"
    asyncio.run(mirrors.at(client.state.collection(name), 4))
    write.seal(9).result(10)
    write.write([Update((2, "y", 1.0, None), 9, 1)]).result(10)
    write.seal(10).result(10)
    before = mirrors.now(client.state.collection(name), 8)
    assert before is not None
    assert len(before) == 1
    after = mirrors.now(client.state.collection(name), 9)
    assert after is not None
    assert len(after) == 2
    assert mirrors.now(client.state.collection(name), 8) is None, "the mirror is beyond that"


def test_mirrors_are_bounded(client: Client) -> None:
    mirrors = Mirrors(client, rows_max=10, total_rows_max=15)
    names = [client.clock.fresh_id() for _ in range(3)]
    for size, name in zip((8, 9, 11), names, strict=True):
        write, _ = client.create_or_load(name, SCHEMA, ("id",))
        write.write([Update((n, "x", 1.0, None), 1, 1) for n in range(size)]).result(10)
        write.seal(2).result(10)
    first, second, third = (client.state.collection(name) for name in names)
    assert asyncio.run(mirrors.at(third, 1)) is None, "too large by itself"
    assert asyncio.run(mirrors.at(first, 1)) is not None
    assert asyncio.run(mirrors.at(second, 1)) is not None
    assert len(mirrors) == 9, "the older one made room"
    assert mirrors.now(first, 1) is None


def test_what_counts_is_what_is_left_of_a_history(client: Client) -> None:
    name = client.clock.fresh_id()
    write, _ = client.create_or_load(name, SCHEMA, ("id",))
    row = (1, "x", 1.0, None)
    for time in range(1, 40):
        gone = [Update(row, time, -1)] if time > 1 else []
        write.write([*gone, Update(row, time, 1)]).result(10)
    write.seal(40).result(10)
    assert row_count(client.state.collection(name)) == 1
    mirror = asyncio.run(Mirrors(client, rows_max=5).at(client.state.collection(name), 39))
    assert mirror is not None
    assert list(mirror.rows.values()) == [1]


def test_a_mirror_that_grew_is_let_go(inlining: Client) -> None:
    client = inlining
    name = client.clock.fresh_id()
    write, _ = client.create_or_load(name, SCHEMA, ("id",))
    write.seal(2).result(10)
    mirrors = Mirrors(client, rows_max=2)
    assert asyncio.run(mirrors.at(client.state.collection(name), 1)) is not None
    write.write([Update((n, "x", 1.0, None), 2, 1) for n in range(5)]).result(10)
    write.seal(3).result(10)
    grown = asyncio.run(mirrors.at(client.state.collection(name), 2))
    assert grown is not None
    assert len(grown) == 5
    assert len(mirrors) == 0
    assert asyncio.run(mirrors.at(client.state.collection(name), 2)) is None


def test_a_row_that_is_there_less_than_never_is_an_integrity_error() -> None:
    mirror = Mirror("t", Schema.of(a="bigint"), [((1,), 1)], 0)
    with pytest.raises(IntegrityError, match='"t" has rows with negative multiplicity'):
        mirror.advance([((1,), 1, -2)], 1)


class Overtaken(Mirrors):
    """Mirrors whose reads of storage are overtaken by a reader of an older state."""

    def by(self, collection: Collection, time: int) -> Overtaken:
        self.older = (collection, time)
        return self

    async def _read(self, collection: int, query: Query) -> list[pa.Table]:
        found = await super()._read(collection, query)
        self.now(*self.older)
        return found


@pytest.mark.parametrize("overtaken_at", [3, 5, 6])
def test_a_mirror_that_others_move_takes_each_update_once(
    inlining: Client, overtaken_at: int
) -> None:
    client = inlining
    name = client.clock.fresh_id()
    write, _ = client.create_or_load(name, SCHEMA, ("id",))
    write.seal(2).result(10)
    mirrors = Overtaken(client)
    empty = asyncio.run(mirrors.by(client.state.collection(name), 1).at(mirrors.older[0], 1))
    assert empty is not None
    for time in range(2, 7):
        write.write([Update((time, "x", 1.0, None), time, 1)]).result(10)
    write.seal(7).result(10)
    inline = client.state.collection(name)
    write.allow_compaction(1).result(10)
    client.compact(name).result(10)
    stored = client.state.collection(name)
    assert all(batch.inline is None for batch in stored.batches), "only storage has them now"
    found = asyncio.run(mirrors.by(inline, overtaken_at).at(stored, 5))
    if overtaken_at > 5:
        assert found is None, "it is beyond that time by now"
        found = asyncio.run(mirrors.at(stored, 6))
    assert found is not None
    assert sorted(row[0] for row in found.rows) == list(range(2, max(5, overtaken_at) + 1))
    assert set(found.rows.values()) == {1}


def test_an_empty_mirror_answers_at_its_time_while_others_move_on(inlining: Client) -> None:
    client = inlining
    name = client.clock.fresh_id()
    write, _ = client.create_or_load(name, SCHEMA, ("id",))
    write.seal(2).result(10)
    before = client.state.collection(name)
    write.write([Update((1, "x", 1.0, None), 2, 1)]).result(10)
    write.seal(3).result(10)
    mirrors = Overtaken(client).by(client.state.collection(name), 2)

    async def read() -> int | None:
        mirror = await mirrors.at(before, 1)
        return None if mirror is None else len(mirror)

    async def together() -> list[int | None]:
        return await asyncio.gather(read(), read())

    assert asyncio.run(together()) == [0, 0]


def test_mirrors_are_bounded_by_their_bytes(inlining: Client) -> None:
    client = inlining
    mirrors = Mirrors(client, bytes_max=4 << 20)
    names = [client.clock.fresh_id() for _ in range(6)]
    for count, name in zip((1, 1, 1, 1, 1, 3), names, strict=True):
        write, _ = client.create_or_load(name, SCHEMA, ("id",))
        long = "x" * 900_000
        write.write([Update((n, long, 1.0, None), 1, 1) for n in range(count)]).result(10)
        write.seal(2).result(10)
    collections = [client.state.collection(name) for name in names]
    for each in collections[:5]:
        assert asyncio.run(mirrors.at(each, 1)) is not None
    assert len(mirrors) == 4, "the oldest made room"
    assert asyncio.run(mirrors.at(collections[5], 1)) is None, "more than a quarter by itself"
    write, _ = client.create_or_load(names[4], SCHEMA, ("id",))
    write.write([Update((n, "y" * 900_000, 1.0, None), 2, 1) for n in range(2)]).result(10)
    write.seal(3).result(10)
    assert asyncio.run(mirrors.at(client.state.collection(names[4]), 2)) is None, "it grew"
    write.write([Update((n, "y" * 900_000, 1.0, None), 3, -1) for n in range(2)]).result(10)
    write.seal(4).result(10)
    again = asyncio.run(mirrors.at(client.state.collection(names[4]), 3))
    assert again is not None
    assert len(again) == 1
