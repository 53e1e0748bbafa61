"""Power loss at every call: nothing acknowledged or seen is lost, nothing half-written is shown.

A workload of appends, truncations, puts and deletes runs on a disk in memory that loses power at
call k, for every k; the disk is then recovered in several ways, and what `FileBlob` and the log
over it show must fit what the workload was told. The planted bugs show that the check can fail.
"""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest

from noonmark.clock import SYSTEM
from noonmark.persist.impl.files import FileBlob
from noonmark.persist.impl.log import BlobConsensus, entry_key
from support.store.losing_disk import Disk, PowerLoss

ROOT = "/data/location"
ENTRIES = 8
RECOVERIES = 20

T = TypeVar("T")


class Violation(AssertionError):
    """The recovered disk does not fit what was promised."""


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end what never waits: small objects are stored and read inline."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("it waited")


def entry(seqno: int) -> bytes:
    return b"entry %d " % seqno * 3


def part(number: int) -> bytes:
    return b"part %d " % number * 3


@dataclass
class Promises:
    """What the workload and its reader were told so far."""

    head: int = 0
    floor_asked: int = 1
    parts: set[int] = field(default_factory=set)

    def saw(self, seqno: int) -> None:
        self.head = max(self.head, seqno)


def workload(disk: Disk, promises: Promises) -> None:
    blob = FileBlob(ROOT, SYSTEM, disk)
    log = BlobConsensus(FileBlob(ROOT, SYSTEM, disk))
    reader = FileBlob(ROOT, SYSTEM, disk)

    def look() -> None:
        """A reader in another process, at the worst moment: linked and not yet fsynced."""
        seqno = promises.head + 1
        disk.on_link = None
        if drive(reader.get(entry_key(seqno))) is not None:
            promises.saw(seqno)
        disk.on_link = look

    disk.on_link = look
    for seqno in range(1, ENTRIES + 1):
        drive(blob.put(f"part/{seqno}", part(seqno)))
        promises.parts.add(seqno)
        assert drive(log.append(seqno, entry(seqno)))
        promises.saw(seqno)
        if seqno % 3 == 0:
            promises.floor_asked = seqno - 1
            drive(log.truncate(seqno - 1))
            promises.parts.discard(seqno - 1)
            drive(blob.delete(f"part/{seqno - 1}"))
            drive(blob.put(f"part/{seqno}", part(seqno)))
    for handle in (blob, log, reader):
        drive(handle.close())


def check(disk: Disk, promises: Promises) -> None:
    """The laws, on a disk that came back; then work goes on."""
    blob = FileBlob(ROOT, SYSTEM, disk)
    log = BlobConsensus(FileBlob(ROOT, SYSTEM, disk))
    head = drive(log.head())
    if head < promises.head:
        raise Violation(f"head {head}, but {promises.head} was seen")
    for seqno in range(promises.floor_asked, head + 1):
        if (found := drive(blob.get(entry_key(seqno)))) != entry(seqno):
            raise Violation(f"entry {seqno} is {found!r}")
    listed = {int(key.partition("/")[2]) for key, _ in drive(blob.list("part/"))}
    if not promises.parts <= listed:
        raise Violation(f"parts {promises.parts - listed} are gone")
    for number in listed:
        if (found := drive(blob.get(f"part/{number}"))) != part(number):
            raise Violation(f"part {number} is {found!r}")
    assert drive(log.append(head + 1, entry(head + 1)))
    assert drive(log.head()) == head + 1
    for handle in (blob, log):
        drive(handle.close())


def states(ignores: frozenset[str] = frozenset()) -> int:
    """Check every recovery of every crash; how many there were."""
    whole_run = Disk(ignores=ignores)
    workload(whole_run, Promises())
    checked = 0
    for calls in range(whole_run.calls + 1):
        disk, promises = Disk(calls, ignores), Promises()
        with suppress(PowerLoss):  # what happened is on the disk, what was promised is written down
            workload(disk, promises)
        for seed in range(RECOVERIES):
            check(disk.after(Random(seed * 1009 + calls), whole=seed == 0), promises)
            checked += 1
    return checked


def test_every_crash_of_the_workload() -> None:
    assert states() > 2000


@pytest.mark.parametrize("bug", ["fsync", "fsync_folder", "links"])
def test_a_planted_bug_is_found(bug: str) -> None:
    """No fsync of files; none of folders; a reader that does not make durable what it sees."""
    with pytest.raises(Violation):
        states(frozenset({bug}))


def test_the_disk_of_the_test_is_like_a_real_one(tmp_path: Path) -> None:
    """The same workload leaves the same objects on a real disk."""
    real, model = FileBlob(tmp_path), Disk()
    workload(model, Promises())
    double = FileBlob(ROOT, SYSTEM, model)
    real_log = BlobConsensus(real)
    for seqno in range(1, ENTRIES + 1):
        drive(real.put(f"part/{seqno}", part(seqno)))
        assert drive(real_log.append(seqno, entry(seqno)))
        if seqno % 3 == 0:
            drive(real_log.truncate(seqno - 1))
            drive(real.delete(f"part/{seqno - 1}"))
    assert drive(real.list("")) == drive(double.list(""))
    drive(real.close())
