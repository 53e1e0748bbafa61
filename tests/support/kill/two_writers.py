"""Figure C8: two writers on one location; the one that lost the lock changes nothing any more.

`Book` has what both said; `Witness` reads the log beside them. At the end everything acknowledged
is there once, everything refused is not there, nothing is there in part; in the log epochs never go
back, and no row is in an entry of another epoch than the one that its writer believed in.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pyarrow as pa

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.errors import MissingObject
from noonmark.persist.impl.open import open_consensus
from noonmark.persist.log.command import Append, decode_entry
from noonmark.persist.log.frame import ENTRY, open_frame
from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows.arrow import arrow_schema
from support.kill.kills import Lines, start
from support.kill.rival import FAR, LEASE_MS, NAMES, SCHEMA, open_files
from support.store.history import Violation

_STORED = pa.schema([*arrow_schema(SCHEMA), (TIME, pa.int64()), (DIFF, pa.int64())])

#: Errors that promise that nothing happened: for their own reason, or because the lock is lost.
REFUSED = (
    "Fenced",
    "Stopped",
    "FrontierRegression",
    "ReadOnly",
    "Determinate",
    "BehindFailure",
)


@dataclass
class Book:
    """What became of every operation, as its writer was told."""

    answers: dict[str, str] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    submitted: dict[str, float] = field(default_factory=dict)
    opened: dict[int, float] = field(default_factory=dict)

    def hear(self, line: str) -> None:
        what, op, *rest = (*line.split(" "), "")
        if what == "s":
            self.answers[op] = "submitted"
            self.submitted[op] = float(rest[0])
        elif what == "a":
            self.answers[op] = "acknowledged"
        elif what == "n":
            self.answers[op] = rest[0]
            self.faults[f"refused {rest[0]}"] += 1
            if rest[0] == "Fenced" and rest[1] == "None":
                self.violations.append(f"{op} was not told who holds the lock")
        elif what == "opened":
            self.faults["opened"] += 1
            self.opened[int(op)] = float(rest[0])
        elif what == "held":
            self.faults["LockHeld"] += 1
            if "/" not in op:
                self.violations.append(f"refused without being told by whom: {line}")

    def _check_order(self) -> set[str]:
        """What was submitted after a later epoch had begun: it never happens, whatever is said."""
        late = set()
        ended: dict[int, float] = {}
        soonest = float("inf")
        for epoch in sorted(self.opened, reverse=True):
            ended[epoch] = soonest
            soonest = min(soonest, self.opened[epoch])
        for op, answer in self.answers.items():
            if self.submitted[op] > ended.get(int(op.split(".")[1]), float("inf")):
                late.add(op)
                if answer == "acknowledged":
                    self.violations.append(f"{op} of an epoch that was over got {answer}")
        self.faults["submitted too late"] += len(late)
        return late

    def check(self, contents: dict[str, pa.Table]) -> None:
        late = self._check_order()
        found: dict[str, Counter[str]] = {}
        for name, table in contents.items():
            counts = found[name] = Counter()
            for row in table.to_pylist():
                counts[row["op"]] += row[DIFF]
                if row["op"].split(".")[1] != str(row["epoch"]):
                    raise Violation(f"{row} was changed")
        for op, answer in self.answers.items():
            kind = int(op.rpartition(".")[2]) % 5
            wanted = {0: {"clock": 1}, 1: {"right": 70}, 2: {"left": 2, "right": 2}}
            whole = wanted.get(kind, {"left": 1})
            there = {name: found[name].pop(op) for name in NAMES if op in found[name]}
            if answer == "acknowledged" and there != whole:
                raise Violation(f"{op} was acknowledged; there is {there} of {whole}")
            if op in late and there:
                raise Violation(f"{op} of an epoch that was over is there")
            if answer in REFUSED and there:
                raise Violation(f"{op} was refused with {answer}; there is {there}")
            if there not in ({}, whole):
                raise Violation(f"{op} is there in part: {there} of {whole}")
        if any(found.values()):
            raise Violation(f"nobody wrote {[dict(c.most_common(2)) for c in found.values()]}")
        if self.violations:
            raise Violation("; ".join(self.violations[:5]))


class Witness:
    """Reads the log as it grows, in a thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ending = threading.Event()
        self.entries = 0
        self.missed = 0
        self.epoch = 0
        self.violations: list[str] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except Exception as error:
            self.violations.append(f"the witness saw {error!r}")

    async def _watch(self) -> None:
        consensus = open_consensus(self._url)
        following = 1
        while True:
            ending = self._ending.is_set()
            try:
                found = await consensus.read(following, 256)
            except MissingObject as error:
                self.missed += error.fields["floor"] - following
                following = error.fields["floor"]
                continue
            for seqno, data in enumerate(found, following):
                self._look(seqno, data)
            following += len(found)
            if ending and not found:
                break
            await SYSTEM.sleep(0.005)
        await consensus.close()

    def _look(self, seqno: int, data: bytes) -> None:
        entry = decode_entry(open_frame(f"log/{seqno}", ENTRY, data))
        self.entries += 1
        if entry.epoch and entry.epoch < self.epoch:
            self.violations.append(f"entry {seqno} is of epoch {entry.epoch} after {self.epoch}")
        self.epoch = max(self.epoch, entry.epoch)
        for transaction in entry.transactions:
            for command in transaction:
                if isinstance(command, Append) and command.inline is not None:
                    rows = pa.ipc.read_record_batch(pa.py_buffer(command.inline.data), _STORED)
                    if set(rows.column("epoch").to_pylist()) != {entry.epoch}:
                        self.violations.append(f"entry {seqno} has rows of another epoch")

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()
        if self.violations or not self.entries:
            raise Violation("; ".join(self.violations[:5]) or "the witness saw nothing")


class Process:
    """A rival in a process of its own."""

    def __init__(self, folder: str, form: str, name: str, book: Book) -> None:
        self._arguments = (folder, form, name)
        self._book = book
        self._lives = 0
        self.start()

    def start(self) -> None:
        folder, form, name = self._arguments
        self._lives += 1
        life = f"{name}{self._lives}"
        self.child: subprocess.Popen[bytes] = start("kill.rival", folder, form, life)
        self._lines = Lines(self.child)
        self._early: deque[str] = deque()
        self.alive = True

    def tell(self, command: str) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(f"{command}\n".encode())
        self.child.stdin.flush()

    def hear(self, seconds: float, *until: str) -> str:
        """Pass on what it says, for so long, or until a line that begins with one of these.

        What it answered while nobody waited for an answer (it may be faster than us) is kept.
        """
        if until and self._early and self._early[0].startswith(until):
            return self._early.popleft()
        deadline = SYSTEM.monotonic() + seconds
        while not self._lines.ended and (left := deadline - SYSTEM.monotonic()) > 0:
            line = self._lines.read(left)
            if line is None:
                continue
            self._book.hear(line)
            if until and line.startswith(until):
                return line
            if not until and line.startswith("done"):
                self._early.append(line)
        if until and not self._lines.ended:
            raise Violation(f"a rival did not answer {until} within {seconds} s")
        return ""

    def ask(self, command: str, *until: str) -> str:
        self.tell(command)
        return self.hear(60, *until)

    def open(self, reentrance_id: str = "") -> bool:
        return self.ask(f"open {reentrance_id}", "opened", "held").startswith("opened")

    def signal(self, number: signal.Signals) -> None:
        self.child.send_signal(number)
        self._book.faults[number.name] += 1

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.hear(60)
        self.close()
        self.start()

    def close(self) -> None:
        self.child.kill()
        self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout):
            assert pipe is not None
            pipe.close()


Workload = Callable[[list[Process], Random, Book], None]


def hammer(rivals: list[Process], random: Random, _: Book) -> None:
    """Both open, write and close as fast as they can."""
    for rival in rivals:
        for _ in range(3):
            rival.tell("open")
            rival.tell(f"work {random.randrange(1, 9)}")
            rival.tell("stop")
    for rival in rivals:
        for _ in range(3):
            rival.hear(60, "stopped")


def reenter(rivals: list[Process], random: Random, book: Book) -> None:
    """The second takes over by reentrance id while the first is writing."""
    first, second = rivals
    if first.open("one"):
        first.tell(f"work {random.randrange(10, 40)}")
        first.hear(random.random() * 0.05)
        if second.open("one"):
            book.faults["takeover by id"] += 1
            second.tell("work 15")
            second.hear(60, "done")
        first.hear(60, "done")
        first.ask("work 3", "done")
    for rival in rivals:
        rival.ask("stop", "stopped")
    rivals.reverse()


def kill(rivals: list[Process], random: Random, book: Book) -> None:
    """The holder is killed; the other opens at once, without an id."""
    first, second = rivals
    if not first.open():
        raise Violation("nobody holds the lock, and it cannot be had")
    first.tell("work 100000")
    first.hear(random.uniform(0.05, 0.5))
    first.kill()
    if not second.open():
        raise Violation("the lock of a dead process is not free at once")
    book.faults["takeover from the dead"] += 1
    second.ask("work 20", "done")
    second.ask("stop", "stopped")
    rivals.reverse()


def pause(rivals: list[Process], random: Random, book: Book) -> None:
    """The holder is stopped, loses the lock by reentrance id, and comes back."""
    _pause(rivals, random, book, "one")


def outlive(rivals: list[Process], random: Random, book: Book) -> None:
    """The holder is stopped until its lease has run out, loses the lock, and comes back."""
    _pause(rivals, random, book, "")


def _pause(rivals: list[Process], random: Random, book: Book, reentrance_id: str) -> None:
    first, second = rivals
    if not _open_soon(first, reentrance_id):
        raise Violation("nobody holds the lock, and it cannot be had")
    first.tell(f"work {random.randrange(20, 60)}")
    first.hear(random.random() * 0.1)
    first.signal(signal.SIGSTOP)
    if not _open_soon(second, reentrance_id):
        raise Violation("the lock of a stopped process cannot be taken over")
    book.faults["takeover from the stopped"] += 1
    second.tell(f"work {random.randrange(10, 30)}")
    second.hear(random.random() * 0.05)
    first.signal(signal.SIGCONT)
    first.hear(60, "done")
    first.ask("work 4", "done")
    first.ask("zombie", "done")
    second.hear(60, "done")
    second.ask("work 5", "done")
    for rival in rivals:
        rival.ask("stop", "stopped")
    rivals.reverse()


def _open_soon(rival: Process, reentrance_id: str) -> bool:
    """Open, trying again for as long as a lease may last, and some more on a busy machine."""
    deadline = SYSTEM.monotonic() + 20 * LEASE_MS / 1000
    while not rival.open(reentrance_id):
        if SYSTEM.monotonic() > deadline:
            return False
        rival.hear(LEASE_MS / 1000 / 4)
    return True


#: Form of the store, and what happens on it.
WORKLOADS: dict[str, tuple[str, Workload]] = {
    "files, open and close": ("files", hammer),
    "files, reentrance": ("files", reenter),
    "files, killed": ("files", kill),
    "files, paused": ("files", pause),
    "leased, open and close": ("leased", hammer),
    "leased, reentrance": ("leased", reenter),
    "leased, paused beyond the lease": ("leased", outlive),
}


def run_processes(name: str, folder: Path, seed: int, operations: int, book: Book) -> Iterator[int]:
    """Rounds of a workload until there were so many operations; gives how many so far."""
    form, workload = WORKLOADS[name]
    random = Random(f"rivals/{seed}")
    open_files(str(folder), form, None).stop()
    witness = Witness(str(folder))
    rivals = [Process(str(folder), form, name, book) for name in ("a", "b")]
    try:
        while len(book.answers) < operations:
            workload(rivals, random, book)
            yield len(book.answers)
    finally:
        for rival in rivals:
            rival.close()
        witness.stop()
    book.faults["entries witnessed"] += witness.entries
    verify(open_files(str(folder), "files", None), book)


def verify(client: persist.Client, book: Book) -> None:
    """Seal everything, read it, compare."""
    with client:
        reads = {name: client.create_or_load(name)[1] for name in NAMES}
        for name in ("left", "right"):
            client.create_or_load(name)[0].seal(FAR + 1).result()
        last = (reads["clock"].upper.only() or 0) - 1
        times = {"left": FAR, "right": FAR, "clock": last}
        book.check(
            {n: reads[n].snapshot(times[n]).result().to_arrow() for n in NAMES if times[n] >= 0}
        )
