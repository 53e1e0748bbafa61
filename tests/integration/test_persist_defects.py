"""Exceptions that nobody foresaw, below a write: who met one fails with its number, others go on.

The laws are those of `noonmark.persist.log.queue` and `noonmark.supervise`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.errors import BehindFailure, InternalError, Stopped
from noonmark.persist.client import Client
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.log import command as c
from noonmark.persist.log import machine
from noonmark.persist.log.state import State
from noonmark.persist.runtime import Runtime
from noonmark.rows.schema import Schema
from noonmark.tvc import Antichain

SCHEMA = Schema.of(a="bigint", b="text")


class DefectiveLog(BlobConsensus):
    """A log that fails when it is told to, as nobody expects, before it appends rows or after."""

    fails = ""

    async def append(self, seqno: int, entry: bytes) -> bool:
        if b"append" not in entry:  # what upkeep does meanwhile
            return await super().append(seqno, entry)
        fails, self.fails = self.fails, ""
        if fails == "before":
            raise ZeroDivisionError(fails)
        appended = await super().append(seqno, entry)
        if fails == "after":
            raise ZeroDivisionError(fails)
        return appended


@pytest.fixture
def log() -> DefectiveLog:
    return DefectiveLog(MemoryBlob(SYSTEM.fresh_id()))


@pytest.fixture
def client(log: DefectiveLog) -> Iterator[Client]:
    runtime, options = Runtime.start(), persist.Options(notify_host=None)
    blob = MemoryBlob(SYSTEM.fresh_id())
    opened = runtime.submit(Client.start(runtime, blob, log, options)).result()
    yield opened
    opened.stop()


def row(time: int) -> list[persist.Update[Any, int]]:
    return [persist.Update((time, "x"), time, 1)]


def together(client: Client, *transactions: Any) -> list[Any]:
    """Called before any is answered, so that they are one group; a type for each that failed."""

    async def call() -> list[Any]:
        futures = [asyncio.wrap_future(client.submit(each)) for each in transactions]
        return await asyncio.gather(*futures, return_exceptions=True)

    return [type(each) for each in client.runtime.submit(call()).result()]


def test_a_transaction_that_meets_a_defect_fails_alone(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, read = client.create_or_load("t", SCHEMA)
    _, other = client.create_or_load("u", SCHEMA)
    sound = machine.apply

    def defective(state: State, transaction: c.Transaction, now_ms: int) -> State:
        if any(isinstance(each, c.Append) for each in transaction):
            raise KeyError("the insides")
        return sound(state, transaction, now_ms)

    monkeypatch.setattr(machine, "apply", defective)
    seal = c.Seal(1, Antichain.of(5))
    calls = [
        (c.Seal(2, Antichain.of(3)),),
        (c.Append(1, 1, 1, 3, 3, 1),),
        (seal,),
        (c.Seal(2, Antichain.of(4)),),
    ]
    with caplog.at_level(logging.ERROR, "noonmark.defect"):
        assert together(client, *calls) == [State, InternalError, BehindFailure, State]
    assert "KeyError: 'the insides'" in caplog.text
    assert (read.upper, other.upper) == (Antichain.of(0), Antichain.of(4))
    assert client.trouble is None
    assert together(client, (seal,)) == [State]


def test_what_no_entry_can_hold_fails_alone(client: Client) -> None:
    client.create_or_load("t", SCHEMA)
    _, other = client.create_or_load("u", SCHEMA)
    beyond = (c.Seal(1, Antichain.of(1 << 70)),)
    later = (c.Seal(2, Antichain.of(4)),)
    assert together(client, beyond, later) == [InternalError, State]
    assert other.upper == Antichain.of(4)


def test_a_preparation_that_meets_a_defect_fails_alone(client: Client) -> None:
    client.create_or_load("t", SCHEMA)

    async def defective() -> c.Transaction:
        raise KeyError("the insides")

    async def cancelled() -> c.Transaction:
        raise asyncio.CancelledError

    seal = (c.Seal(1, Antichain.of(5)),)
    assert together(client, defective, cancelled, seal) == [InternalError, Stopped, State]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_log_that_fails_as_nobody_expects_holds_nobody_up(
    client: Client, log: DefectiveLog, moment: str
) -> None:
    """What was being put is in doubt, and the next entry decides it."""
    write, read = client.create_or_load("t", SCHEMA)
    log.fails = moment
    with pytest.raises(InternalError, match="internal error"):
        write.compare_and_append(row(3), 0, 4).result()
    client.runtime.submit(client.settle()).result()
    assert read.upper == Antichain.of(4 if moment == "after" else 0)
    lower = read.upper.only() or 0
    write.compare_and_append(row(lower), lower, lower + 1).result()
    assert len(read.snapshot(lower).result().rows()) == (2 if moment == "after" else 1)
    assert client.supervisor.deaths()["log writer"] == 1


def test_a_log_writer_that_is_killed_is_back(client: Client) -> None:
    write, _ = client.create_or_load("t", SCHEMA)

    async def kill() -> None:
        (writer,) = [w for w in client.supervisor.works() if w.life.kind == "log writer"]
        writer.alive.cancel()  # type: ignore[union-attr]

    client.runtime.submit(kill()).result()
    write.seal(7).result(10)
    assert client.supervisor.deaths()["log writer"] == 1
