"""``python -m support.kill.rival FOLDER FORM NAME``: one of two that want the same write lock.

Takes commands, a line each, from its standard input, and says on its standard output what comes of
them:

    open [REENTRANCE_ID]   ``opened EPOCH WHEN`` or ``held HOLDER``
    work N                 N operations, when it is open: ``s OP WHEN`` for each, and then ``a OP``
                           or ``n OP ERROR HOLDER``; ``done``
    zombie                 rollup, truncation, compaction and garbage collection, whoever it is by
                           now; ``done``
    stop                   ``stopped``

WHEN is of the machine's monotonic clock, so that moments of both can be compared.

FORM is ``files`` (local disk, watched by the operating system) or ``leased`` (the same files as a
store that many machines share: only a lease says who lives).
"""

from __future__ import annotations

import itertools
import os
import sys
from collections import deque
from concurrent.futures import Future
from typing import Any

from noonmark import persist
from noonmark.clock import SYSTEM, Clock
from noonmark.errors import LockHeld, NoonmarkError
from noonmark.persist.impl.files import FileBlob
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.location import Blob, Consensus
from noonmark.persist.runtime import Runtime
from noonmark.rows.schema import Schema
from support.store.doubles import HookedBlob

SCHEMA = Schema.of(op="text", at="bigint", rows="bigint", epoch="bigint")
NAMES = ("left", "right", "clock")
#: Never sealed while rivals write: only the lock, not the time, decides who may.
FAR = 10**15
LEASE_MS = 400
CONFIG = persist.Config(
    inline_bytes_max=2048,
    part_rows_max=30,
    rollup_entries=20,
    inline_batches_max=6,
    merge_fan_in=3,
    garbage_grace_ms=100,
    lock_lease_ms=LEASE_MS,
    retry_deadline_s=5.0,
    poll_s=0.01,
)
_LARGE_ROWS = 70


def open_as(
    blob: Blob,
    consensus: Consensus,
    reentrance_id: str | None,
    clock: Clock = SYSTEM,
    config: persist.Config = CONFIG,
) -> persist.Client:
    """A writer on stores that are given."""
    runtime = Runtime.start(clock)
    options = persist.Options(reentrance_id=reentrance_id, notify_host=None, config=config)
    try:
        return runtime.submit(persist.Client.start(runtime, blob, consensus, options)).result()
    except BaseException:
        runtime.stop()
        raise


def open_files(folder: str, form: str, reentrance_id: str | None) -> persist.Client:
    blob: Blob = FileBlob(folder)
    if form == "leased":
        blob = HookedBlob(blob)
    return open_as(blob, BlobConsensus(FileBlob(folder)), reentrance_id)


class Rival:
    """A writer that does operations until it is told otherwise."""

    def __init__(self, name: str, say: Any) -> None:
        self.name = name
        self._say = say
        self._numbers = itertools.count(1)
        self.client: persist.Client | None = None
        self._epoch = 0
        self._writes: dict[str, persist.WriteHandle] = {}
        self._reads: dict[str, persist.ReadHandle] = {}

    def adopt(self, client: persist.Client) -> None:
        self.client = client
        self._epoch = client.parts.epoch
        for name in NAMES:
            self._writes[name], self._reads[name] = client.create_or_load(name, SCHEMA, ("op",))

    def work(self, count: int, at_once: int = 4) -> None:
        waiting: deque[tuple[str, Future[Any]]] = deque()
        for _ in range(count):
            op = f"{self.name}.{self._epoch}.{next(self._numbers)}"
            self._say(f"s {op} {SYSTEM.monotonic()}")
            waiting.append((op, self._submit(op)))
            while len(waiting) >= at_once:
                self._answer(*waiting.popleft())
        while waiting:
            self._answer(*waiting.popleft())

    def _answer(self, op: str, future: Future[Any]) -> None:
        try:
            future.result()
        except NoonmarkError as error:
            self._say(f"n {op} {type(error).__name__} {error.fields.get('holder')}")
        else:
            self._say(f"a {op}")

    def _submit(self, op: str) -> Future[Any]:
        assert self.client is not None
        kind = int(op.rpartition(".")[2]) % 5
        together = self.client.atomic()
        if kind == 0:  # a tick: from exactly the upper that this process knows
            upper = self._reads["clock"].upper.only() or 0
            together.append(self._writes["clock"], self._rows(op, 1, upper), upper, upper + 1)
        elif kind == 1:
            together.write(self._writes["right"], self._rows(op, _LARGE_ROWS, FAR))
        elif kind == 2:
            together.write(self._writes["left"], self._rows(op, 2, FAR))
            together.write(self._writes["right"], self._rows(op, 2, FAR))
        else:
            together.write(self._writes["left"], self._rows(op, 1, FAR))
        return together.commit()

    def _rows(self, op: str, count: int, time: int) -> list[persist.Update[Any, int]]:
        return [persist.Update((op, at, count, self._epoch), time, 1) for at in range(count)]

    def zombie(self) -> None:
        """Everything that a writer does beside writing, by whoever does not know better."""
        assert self.client is not None
        client = self.client
        works = [client.journal.write_rollup(), client.upkeep.maintain(), client.upkeep._garbage()]
        for work in works:
            try:
                client.runtime.submit(work).result()
            except NoonmarkError as error:
                self._say(f"z {type(error).__name__}")

    def stop(self) -> None:
        if self.client is not None:
            self.client.stop()
            self.client = None


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def main(folder: str, form: str, name: str) -> None:
    rival = Rival(name, say)
    for line in sys.stdin:
        what, *rest = line.split()
        if what == "open":
            try:
                rival.adopt(open_files(folder, form, rest[0] if rest else None))
            except LockHeld as error:
                say(f"held {error.fields['holder']}")
            except NoonmarkError as error:
                rival.stop()  # taken over before its first write
                say(f"held {error.fields.get('holder')}")
            else:
                epoch = rival.client.parts.epoch if rival.client else 0
                say(f"opened {epoch} {SYSTEM.monotonic()}")
        elif what == "work":
            if rival.client is not None:
                rival.work(int(rest[0]))
            say("done")
        elif what == "zombie":
            if rival.client is not None:
                rival.zombie()
            say("done")
        elif what == "stop":
            rival.stop()
            say("stopped")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3])
