"""`noonmark backup` and `restore`: one commit, while money moves; a copy leaves upstream alone."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from noonmark.cli import app
from noonmark.errors import Corrupt, DefiniteError, LockHeld, UsageError
from noonmark.persist import Config, Options, Update
from noonmark.persist import open as open_location
from noonmark.rows.schema import Schema
from support.kill.backups import back_up
from support.neighbour.logical import Upstream
from support.serve.reading import connect, database

ACCOUNTS, CENTS = 20, 100
#: Everything is stored, compacted and deleted early.
HASTY = Config(inline_bytes_max=256, rollup_entries=8, garbage_grace_ms=0, lock_lease_ms=600_000)


@pytest.fixture(autouse=True)
def key_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("NOONMARK_SECRET_KEY", raising=False)


def run(*words: object) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def contents(place: Path, name: str) -> tuple[int, list[tuple[Any, ...]]]:
    """The newest complete time of a collection, and its rows then."""
    with open_location(place, options=Options(mode="independent")) as client:
        read = client.create_or_load(name)[1]
        upper = read.upper.only()
        assert upper is not None
        rows: list[tuple[Any, ...]] = read.snapshot(upper - 1).result(60).rows()
        return upper - 1, rows


def test_backups_under_load_are_each_of_one_commit(tmp_path: Path) -> None:
    """Transfers, compaction and deletion go on; every copy has all the money, as of one commit."""
    data, store = tmp_path / "data", tmp_path / "store"
    random, stopping, history = Random(5), threading.Event(), {}
    with open_location(data, options=Options(config=HASTY, notify_host=None)) as client:
        write, _ = client.create_or_load(
            "account", Schema.of(id="bigint not null", cents="bigint not null"), ("id",)
        )
        cents = dict.fromkeys(range(ACCOUNTS), CENTS)
        write.write([Update((n, c), 0, 1) for n, c in cents.items()])
        write.seal(1).result(60)
        history[0] = dict(cents)

        def transfer() -> None:
            time = 1
            while not stopping.is_set():
                giver, taker = random.sample(range(ACCOUNTS), 2)
                changed = {giver: cents[giver] - 1, taker: cents[taker] + 1}
                write.write(
                    [Update((n, cents[n]), time, -1) for n in changed]
                    + [Update((n, c), time, 1) for n, c in changed.items()]
                )
                cents.update(changed)
                history[time] = dict(cents)
                write.seal(time + 1)
                write.allow_compaction(max(0, time - 3)).result(60)
                time += 1

        thread = threading.Thread(target=transfer)
        thread.start()
        try:
            for at in range(6):
                run("backup", store, "--data", data)
                copy = tmp_path / f"copy-{at}"
                run("restore", store, "--data", copy)
                time, rows = contents(copy, "account")
                assert dict(rows) == history[time], at
                report = json.loads(run("shard", "verify", "--data", copy, "--json").stdout)
                assert report["findings"] == []
        finally:
            stopping.set()
            thread.join()
    with open_location(tmp_path / "copy-0", options=Options(notify_host=None)) as client:
        write, read = client.create_or_load("account")
        upper = read.upper.only()
        assert upper is not None
        write.write([Update((99, 1), upper, 1)])
        write.seal(upper + 1).result(60)


@pytest.mark.server
@pytest.mark.spark
def test_a_copy_is_what_the_server_was(tmp_path: Path) -> None:
    """Twenty of these are `make prove ONLY=C22`."""
    wrong, done = back_up(tmp_path, 2, seed=1)
    assert wrong == []
    assert done["backups restored"] == 2
    assert done["transfers"] > 0


def test_a_second_backup_copies_what_is_new_and_old_ones_go(tmp_path: Path) -> None:
    data, store = tmp_path / "data", tmp_path / "store"
    options = Options(config=Config(inline_bytes_max=16), notify_host=None)
    with open_location(data, options=options) as client:
        write, _ = client.create_or_load("t", Schema.of(a="bigint"), ("a",))
        outputs = []
        for time in range(3):
            write.write([Update((n,), time, 1) for n in range(100)])
            write.seal(time + 1).result(60)
            outputs.append(run("backup", store, "--data", data).stdout)
    assert [output.split(": ")[1].split(" parts")[0] for output in outputs] == ["1", "1", "1"]
    assert "2 were there" in outputs[2]
    first, *_ = sorted(int(each.name) for each in (store / "backup").iterdir())
    run("restore", store, "--data", tmp_path / "first", "--entry", first)
    assert len(contents(tmp_path / "first", "t")[1]) == 100
    assert "removed" in run("backup", store, "--data", data, "--keep", 1).stdout
    with pytest.raises(UsageError, match="no backup of entry"):
        run("restore", store, "--data", tmp_path / "gone", "--entry", first)
    run("restore", store, "--data", tmp_path / "last")
    assert len(contents(tmp_path / "last", "t")[1]) == 300


def test_a_damaged_backup_and_a_place_that_is_taken_are_refused(tmp_path: Path) -> None:
    data, store = tmp_path / "data", tmp_path / "store"
    options = Options(config=Config(inline_bytes_max=16), notify_host=None)
    with open_location(data, options=options) as client:
        write, _ = client.create_or_load("t", Schema.of(a="bigint"), ("a",))
        write.write([Update((n,), 0, 1) for n in range(100)])
        write.seal(1).result(60)
    run("backup", store, "--data", data)
    with pytest.raises(UsageError, match="not empty"):
        run("restore", store, "--data", data)
    (part,) = store.glob("part/*/*/*.parquet")
    part.chmod(0o600)
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(Corrupt, match="does not match its checksum"):
        run("restore", store, "--data", tmp_path / "copy")


def test_a_copy_that_is_not_detached_yet_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, store, copy = tmp_path / "data", tmp_path / "store", tmp_path / "copy"
    with open_location(data, options=Options(notify_host=None)) as client:
        client.create_or_load("t", Schema.of(a="bigint"), ("a",))[0].seal(1).result(60)
    run("backup", store, "--data", data)

    def killed(*_: object) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr("noonmark.backup.detach.detach", killed)
    with pytest.raises(RuntimeError, match="killed"):
        run("restore", store, "--data", copy)
    with pytest.raises(LockHeld, match="restore again, to an empty place"):
        open_location(copy, options=Options(notify_host=None))


def test_a_copy_leaves_the_upstream_of_its_original_alone(
    tmp_path: Path, upstream: Upstream
) -> None:
    """Both go on beside each other, and both end with what is upstream."""
    data, store, copy = str(tmp_path / "data"), tmp_path / "store", str(tmp_path / "copy")
    slots = "select slot_name from pg_replication_slots where database = current_database()"

    async def original() -> None:
        async with asyncio.timeout(120), database(data) as opened:
            client = await connect(opened, real_time_recency="on")
            upstream.run("create table a (id int primary key, word text)")
            upstream.run("insert into a values (1, 'one')", "create publication q for table a")
            parts = urlsplit(upstream.url)
            await client.ask(
                f"create connection pg to postgres (host '{parts.hostname}', port {parts.port}, "
                f"user '{parts.username}', database '{upstream.name}')"
            )
            await client.ask(
                "create source s from postgres connection pg (publication 'q') for all tables"
            )
            assert await client.ask("select * from a") == [(1, "one")]
            await asyncio.to_thread(run, "backup", store, "--data", data)
            before = upstream.run(slots)
            told = (await asyncio.to_thread(run, "restore", store, "--data", copy)).stdout
            assert "ALTER SOURCE s REFRESH" in told
            upstream.run("insert into a values (2, 'two')")
            async with database(copy) as other:
                there = await connect(other, real_time_recency="on")
                with pytest.raises(DefiniteError):
                    await there.ask("select * from a")
                assert upstream.run(slots) == before
                await there.ask("alter source s refresh")
                assert await there.ask("select * from a order by 1") == [(1, "one"), (2, "two")]
                assert await client.ask("select * from a order by 1") == [(1, "one"), (2, "two")]
                await there.ask("drop source s cascade")
            assert upstream.run(slots) == before
            upstream.run("delete from a where id = 1")
            assert await client.ask("select * from a") == [(2, "two")]

    asyncio.run(original())
