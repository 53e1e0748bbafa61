"""The API of the seed on real files: write, seal, allow_compaction, snapshot, listen."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from noonmark import persist
from noonmark.errors import (
    BeforeSince,
    CapabilityInvalid,
    FrontierRegression,
    NotYetComplete,
    ReadOnly,
    SchemaMismatch,
    Stopped,
)
from noonmark.persist import Config, Options, Update, notify
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import parse_type
from noonmark.tvc import EMPTY, Antichain

ORDERS = Schema.of(id="bigint", item="text")
SMALL = Config(inline_batches_max=4, rollup_entries=8, garbage_grace_ms=0, inline_bytes_max=1024)


def updates(*triples: tuple[int, str, int, int]) -> list[Update]:
    return [Update((id_, item), time, diff) for id_, item, time, diff in triples]


def rows(read: persist.ReadHandle, as_of: int, **query: object) -> Counter[tuple[object, ...]]:
    return read.snapshot(as_of, **query).result(10).counts()


def test_a_write_is_durable_before_it_is_sealed(tmp_path: Path) -> None:
    with persist.open(tmp_path) as client:
        write, _ = client.create_or_load("orders", ORDERS, ("id",))
        write.write(updates((1, "lamp", 10, 1))).result(10)
    with persist.open(tmp_path) as client:
        write, read = client.create_or_load("orders")
        write.seal(11).result(10)
        assert rows(read, 10) == {(1, "lamp"): 1}


def test_calls_are_applied_in_the_order_of_calls(tmp_path: Path) -> None:
    with persist.open(tmp_path, options=Options(config=SMALL)) as client:
        write, read = client.create_or_load("orders", ORDERS, ("id",))
        big = pa.table(
            {"id": range(5000), "item": ["x" * 20] * 5000, "_time": [5] * 5000, "_diff": [1] * 5000}
        )
        first = write.write(big)  # must be written as a part, so it is slow ...
        second = write.seal(6)  # ... and this one is quick, and must wait for it
        refused = write.write(updates((1, "late", 5, 1)))
        third = write.write(updates((1, "next", 6, 1)))
        assert second.result(10).seqno >= first.result(10).seqno
        third.result(10)
        assert refused.exception(10) is not None
        assert sum(rows(read, 5).values()) == 5000


def test_many_threads_share_commits(tmp_path: Path) -> None:
    with persist.open(tmp_path) as client:
        write, read = client.create_or_load("orders", ORDERS, ("id",))

        def work(who: int) -> None:
            futures = [write.write(updates((who, str(i), i, 1))) for i in range(50)]
            for future in futures:
                future.result(30)

        threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        write.seal(100).result(10)
        assert sum(rows(read, 99).values()) == 200
        assert client.status()["commits"] < 200


def test_atomic_over_several_collections(tmp_path: Path) -> None:
    with persist.open(tmp_path) as client:
        one, read_one = client.create_or_load("one", ORDERS)
        two, read_two = client.create_or_load("two", ORDERS)
        two.seal(5).result(10)
        both = (
            client.atomic().write(one, updates((1, "a", 1, 1))).write(two, updates((1, "a", 1, 1)))
        )
        assert both.commit().exception(10) is not None  # below the upper of the second
        one.seal(5).result(10)
        assert rows(read_one, 4) == {}
        both = (
            client.atomic().write(one, updates((1, "a", 7, 1))).write(two, updates((1, "a", 7, 1)))
        )
        state = both.seal(one, 8).seal(two, 8).commit().result(10)
        assert rows(read_one, 7) == rows(read_two, 7) == {(1, "a"): 1}
        assert state.collection("one").upper == state.collection("two").upper == Antichain.of(8)


def test_compare_and_append_refuses_a_second_author(tmp_path: Path) -> None:
    with persist.open(tmp_path) as client:
        write, read = client.create_or_load("orders", ORDERS)
        write.compare_and_append(updates((1, "a", 3, 1)), 0, 10).result(10)
        again = write.compare_and_append(updates((1, "a", 3, 1)), 0, 10).exception(10)
        assert isinstance(again, FrontierRegression)
        assert again.fields["expected"] == Antichain.of(0)
        assert rows(read, 9) == {(1, "a"): 1}


def test_every_time_between_since_and_upper_is_exact(tmp_path: Path) -> None:
    with persist.open(tmp_path, options=Options(config=SMALL)) as client:
        write, read = client.create_or_load("orders", ORDERS, ("id",))
        expected: dict[int, Counter[tuple[object, ...]]] = {}
        contents: Counter[tuple[object, ...]] = Counter()
        for time in range(1, 60):
            batch = updates((time % 7, f"v{time}", time, 1))
            if time > 7:
                batch += updates((time % 7, f"v{time - 7}", time, -1))
                contents[(time % 7, f"v{time - 7}")] -= 1
            contents[(time % 7, f"v{time}")] += 1
            write.write(batch)
            expected[time] = +contents
        write.seal(60).result(10)
        for time in (1, 8, 30, 59):
            assert rows(read, time) == expected[time]
        write.allow_compaction(30).result(10)
        client.compact("orders").result(30)
        for time in (30, 45, 59):
            assert rows(read, time) == expected[time]
        assert rows(read, 59, keys=[3]) == {k: v for k, v in expected[59].items() if k[0] == 3}
        where = rows(read, 59, where={"id": (2, 4)})
        assert where == {k: v for k, v in expected[59].items() if 2 <= k[0] <= 4}
        with pytest.raises(BeforeSince) as refused:
            rows(read, 29)
        assert refused.value.fields["since"] == Antichain.of(30)
        assert client.upkeep.compactions > 0


def test_listen_gives_every_update_once_with_progress(tmp_path: Path) -> None:
    with persist.open(tmp_path, options=Options(config=SMALL)) as client:
        write, read = client.create_or_load("orders", ORDERS)
        write.write(updates((1, "before", 1, 1)))
        write.seal(2).result(10)
        listen = read.listen(1)
        seen: list[Update] = []
        for time in range(2, 40):
            write.write(updates((time, "x", time, 1)))
            write.seal(time + 1)
        write.seal(EMPTY).result(10)
        for step in listen:
            assert all(not step.progress.less_equal(update.time) for update in step.updates)
            seen += step.updates
        assert sorted(update.time for update in seen) == list(range(2, 40))
        assert listen.progress == EMPTY


def test_a_listener_holds_since_back(tmp_path: Path) -> None:
    with persist.open(tmp_path) as client:
        write, read = client.create_or_load("orders", ORDERS)
        write.seal(10).result(10)
        listen = read.listen(3)
        write.allow_compaction(8).result(10)
        assert read.since == Antichain.of(3)
        client.runtime.submit(listen.close()).result(10)
        assert read.since == Antichain.of(8)


def test_snapshot_waits_or_says_that_it_would(tmp_path: Path) -> None:
    with persist.open(tmp_path) as client:
        write, read = client.create_or_load("orders", ORDERS)
        with pytest.raises(NotYetComplete):
            read.snapshot(5, wait=False).result(10)
        waiting = read.snapshot(5)
        write.write(updates((1, "a", 5, 1)))
        assert not waiting.done()
        write.seal(6)
        assert waiting.result(10).rows() == [(1, "a")]


def test_a_schema_grows_and_old_rows_read_as_null(tmp_path: Path) -> None:
    with persist.open(tmp_path, options=Options(config=SMALL)) as client:
        write, _ = client.create_or_load("orders", ORDERS, ("id",))
        write.write([Update((i, "old"), 1, 1) for i in range(200)]).result(10)
        write.write(updates((1000, "inline", 1, 1))).result(10)
        client.evolve("orders", (Column("price", parse_type("numeric(10,2)")),)).result(10)
        write, read = client.create_or_load("orders")
        from decimal import Decimal

        write.write([Update((2000, "new", Decimal("9.50")), 2, 1)])
        write.seal(3).result(10)
        contents = rows(read, 2)
        assert contents[(5, "old", None)] == contents[(1000, "inline", None)] == 1
        assert contents[(2000, "new", Decimal("9.50"))] == 1
        client.compact("orders").result(10)
        assert rows(read, 2) == contents
        wrong = Column("bad", parse_type("text"), nullable=False)
        with pytest.raises(SchemaMismatch):
            client.evolve("orders", (wrong,)).result(10)


def test_readers_in_three_forms(tmp_path: Path) -> None:
    with persist.open(tmp_path) as client:
        write, _ = client.create_or_load("orders", ORDERS)
        for mode in ("notified", "polling", "independent"):
            with persist.open(tmp_path, options=Options(mode=mode)) as reader:
                _, read = reader.create_or_load("orders")
                at = client.state.collection("orders").upper.only() or 0
                waiting = read.snapshot(at)
                write.write(updates((1, mode, at, 1)))
                write.seal(at + 1)
                assert waiting.result(10).counts()[(1, mode)] == 1
                with pytest.raises(ReadOnly):
                    reader.drop("orders")
                seqno = client.state.seqno
                if mode == "independent":
                    with pytest.raises(ReadOnly):
                        read.listen(at, hold=True)
                    assert client.state.seqno == seqno
                else:
                    held = reader.runtime.submit(reader.acquire(1, Antichain.of(at))).result(10)
                    write.allow_compaction(at + 1).result(10)
                    assert client.state.collection("orders").since == Antichain.of(at)
                    reader.runtime.submit(held.release()).result(10)


def test_a_reader_at_a_wrong_address_follows_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port of a writer may be that of a stranger on the reader's machine, who says nothing."""
    silent = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{silent.getsockname()[1]}"
    monkeypatch.setattr(notify, "_address", lambda _: address)
    with persist.open(tmp_path) as client:
        write, _ = client.create_or_load("orders", ORDERS)
        with persist.open(tmp_path, options=Options(mode="notified")) as reader:
            _, read = reader.create_or_load("orders")
            stranger, _ = silent.accept()
            for at in range(3):
                write.write(updates((at, "x", at, 1)))
                write.seal(at + 1).result(10)
                assert read.snapshot(at).result(10).counts()[(at, "x")] == 1
        stranger.close()
    silent.close()


def test_a_hold_that_expired_is_an_error(tmp_path: Path) -> None:
    config = Config(hold_lease_ms=50)
    with persist.open(tmp_path, options=Options(config=config)) as client:
        write, _ = client.create_or_load("orders", ORDERS)
        write.seal(10).result(10)
        held = client.runtime.submit(client.acquire(1, Antichain.of(5))).result(10)
        client.holds.clear()  # as if this process had died: nobody renews
        write.allow_compaction(9).result(10)
        released = threading.Event()
        client.runtime.submit(_when_since(client, released)).result(10)
        with pytest.raises(CapabilityInvalid):
            client.runtime.submit(held.downgrade(Antichain.of(6))).result(10)


async def _when_since(client: persist.Client, _: threading.Event) -> None:
    await client.journal.wait_for(lambda s: s.collection("orders").since == Antichain.of(9))


def test_stop_finishes_what_was_queued_and_refuses_the_rest(tmp_path: Path) -> None:
    client = persist.open(tmp_path)
    write, _ = client.create_or_load("orders", ORDERS)
    futures = [write.write(updates((i, "x", i, 1))) for i in range(100)]
    client.stop()
    assert all(future.exception(0) is None for future in futures)
    with pytest.raises(Stopped):
        write.seal(5).result(10)


def test_ids_are_never_used_again(tmp_path: Path) -> None:
    with persist.open(tmp_path) as client:
        first, _ = client.create_or_load("orders", ORDERS)
        client.drop("orders").result(10)
    with persist.open(tmp_path) as client:
        second, _ = client.create_or_load("orders", ORDERS)
        assert second.collection > first.collection


def test_large_reads_are_merged_in_bounded_memory(tmp_path: Path) -> None:
    config = Config(prefetch_bytes_max=0, merge_rows_max=1000, part_rows_max=3000, merge_fan_in=99)
    with persist.open(tmp_path, options=Options(config=config)) as client:
        write, read = client.create_or_load("orders", ORDERS, ("id",))
        count = 20_000
        for time, diff in ((1, 1), (2, -1), (3, 1)):
            ids = [i for i in range(count) if time != 2 or i % 2]
            table = {"id": ids, "item": ["x"] * len(ids)}
            table |= {"_time": [time] * len(ids), "_diff": [diff] * len(ids)}
            write.write(pa.table(table))
        write.seal(4).result(30)
        assert sum(rows(read, 2).values()) == count // 2
        tables = list(read.snapshot(3).result(10).tables())
        assert max(table.num_rows for table in tables) <= 1000
        total = sum(sum(table.column("_diff").to_pylist()) for table in tables)
        assert total == count + count // 2
        write.allow_compaction(3).result(10)
        client.compact("orders").result(30)
        (batch,) = client.state.collection("orders").batches
        assert batch.rows == count
        assert len(batch.parts) >= count // 4000
        assert sum(rows(read, 3).values()) == total


def test_rows_may_have_arrays(tmp_path: Path) -> None:
    with persist.open(tmp_path) as client:
        schema = Schema.of(k="bigint", numbers="integer[]")
        write, read = client.create_or_load("arrays", schema)
        write.write([persist.Update((1, [2, None]), 0, 2), persist.Update((2, None), 0, 1)])
        write.seal(1).result()
        assert read.snapshot(0).result().rows() == [(1, (2, None)), (1, (2, None)), (2, None)]
