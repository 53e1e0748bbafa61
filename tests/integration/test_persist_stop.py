"""Stopping a client: whatever is under way gets an answer, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from noonmark import persist
from noonmark.errors import Stopped
from noonmark.persist.impl.files import FileBlob
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.runtime import Runtime
from noonmark.rows.schema import Schema
from support.store.doubles import HookedBlob

SCHEMA = Schema.of(id="bigint", name="text")
# Nothing is compacted unless a test asks for it.
CONFIG = persist.Config(inline_bytes_max=0, merge_fan_in=100, inline_batches_max=1000)


def rows(time: int, count: int) -> list[persist.Update[Any, int]]:
    return [persist.Update((number, "x"), time, 1) for number in range(count)]


class SlowParts(HookedBlob):
    """A store whose parts never come once `stuck` is set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(FileBlob(folder), before=self._wait)
        self.stuck = False
        self.waiting = asyncio.Event()

    async def _wait(self, method: str, key: str) -> None:
        if self.stuck and method == "get" and key.startswith("part/"):
            self.waiting.set()
            await asyncio.Event().wait()


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[persist.Client, SlowParts]]:
    runtime = Runtime.start()
    blob = SlowParts(tmp_path / "data")
    consensus = BlobConsensus(FileBlob(tmp_path / "data"))
    options = persist.Options(config=CONFIG)
    client = runtime.submit(persist.Client.start(runtime, blob, consensus, options)).result()
    yield client, blob
    client.stop()


def stopped(future: Future[Any]) -> Stopped:
    with pytest.raises(Stopped) as caught:
        future.result(timeout=20)
    assert caught.value.hint
    return caught.value


@pytest.mark.timeout(60)
def test_a_worker_that_waits_for_a_part_does_not_hold_up_the_end(
    slow: tuple[persist.Client, SlowParts],
) -> None:
    client, blob = slow
    write, _ = client.create_or_load("c", SCHEMA, ("id",))
    for time in (1, 2):
        write.write(rows(time, 10)).result()
    blob.stuck = True
    compaction = client.compact("c")
    client.runtime.submit(blob.waiting.wait()).result(timeout=20)
    client.stop()
    stopped(compaction)


@pytest.mark.timeout(60)
def test_a_snapshot_that_waits_for_its_time_is_told(tmp_path: Path) -> None:
    client = persist.open(tmp_path / "data")
    _, read = client.create_or_load("c", SCHEMA)
    waiting = read.snapshot(1_000)
    client.stop()
    stopped(waiting)


def test_every_call_after_the_stop_is_refused(tmp_path: Path) -> None:
    client = persist.open(tmp_path / "data")
    write, read = client.create_or_load("c", SCHEMA)
    write.write(rows(1, 2))
    write.seal(2).result()
    snapshot, listen = read.snapshot(1).result(), read.listen(1)
    client.stop()
    stopped(write.write(rows(3, 1)))
    stopped(write.seal(4))
    stopped(read.snapshot(1))
    stopped(client.compact("c"))
    for call in (snapshot.rows, lambda: read.listen(1), lambda: list(listen)):
        with pytest.raises(Stopped):
            call()
    listen.cancel()
    client.stop()
