"""Figure C2: a writer is killed again and again while it works and while others read.

After every kill the next writer starts at once, and this process checks, from outside, everything
that `support.store.history` says must hold.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from noonmark import persist
from noonmark.clock import SYSTEM
from support.neighbour.ready import ready
from support.store.history import CONFIG, NAMES, Ledger, Violation, read_digest

TESTS = Path(__file__).resolve().parents[2]
MODES = ("polling", "notified", "independent")
#: A writer that waited for a lease to end would take its 15 s; a busy machine alone takes less.
OPEN_MS_MAX = 14_000
#: Kills by where they fall: so many lines after the writer began to work, of which each operation
#: has two, and within so many seconds from there. Counted in lines, because not every machine is as
#: fast, and a kill before the first write shows little.
_MOMENTS = {"early": (1, 20), "load": (20, 200), "term": (20, 100)}
_STARTING_S = 0.9
_AFTER_S = 0.02


def start(module: str, *arguments: object) -> subprocess.Popen[bytes]:
    """A child process that runs a module of tests/support."""
    return subprocess.Popen(
        [sys.executable, "-m", f"support.{module}", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )


def environment() -> dict[str, str]:
    """That of a child which finds these tests, and the product where this process finds it."""
    given = os.environ.get("PYTHONPATH")
    path = f"{given}{os.pathsep}{TESTS}" if given else str(TESTS)
    return {**os.environ, "PYTHONPATH": path}


@contextmanager
def running(module: str, *arguments: object) -> Iterator[tuple[subprocess.Popen[bytes], Lines]]:
    """Such a child and its lines; in the end it is gone, killed if it still ran."""
    child = start(module, *arguments)
    try:
        yield child, Lines(child)
    finally:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            pipe.close()


class Lines:
    """The standard output of a child, line by line; nothing that it wrote before dying is lost."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        self._file = child.stdout.fileno()
        self._rest = b""
        self._lines: deque[str] = deque()
        self._closed = False

    @property
    def ended(self) -> bool:
        return self._closed and not self._lines

    def read(self, seconds: float) -> str | None:
        """The next line, if one comes within so long."""
        while not self._lines:
            if self._closed or not ready(self._file, seconds):
                return None
            data = os.read(self._file, 1 << 16)
            self._closed = not data
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines += [line.decode() for line in lines]
        return self._lines.popleft()


@dataclass
class Kills:
    """One run: a location, its writers one after the other, its readers."""

    folder: str
    seed: int
    ledger: Ledger = field(init=False)
    random: Random = field(init=False)
    faults: Counter[str] = field(default_factory=Counter)
    open_ms: list[int] = field(default_factory=list)
    reader_errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.seed)
        self.random = Random(f"kills/{self.seed}")
        self._lock = threading.Lock()
        self._readers: list[tuple[subprocess.Popen[bytes], threading.Thread]] = []

    def start_readers(self) -> None:
        for mode in MODES:
            child = start("kill.crash_reader", self.folder, mode, self.seed)
            thread = threading.Thread(target=self._collect, args=(child, mode))
            thread.start()
            self._readers.append((child, thread))

    def _collect(self, child: subprocess.Popen[bytes], mode: str) -> None:
        lines, seen = Lines(child), dict.fromkeys(NAMES, (0, 0))
        while not lines.ended:
            line = lines.read(1.0)
            if line is None:
                continue
            what, name, *rest = line.split(" ")
            if what == "v":
                with self._lock:
                    self.ledger.note_read(name, int(rest[0]), int(rest[1]))
            elif what == "f":
                now = (int(rest[0]), int(rest[1]))
                if now[0] < seen[name][0] or now[1] < seen[name][1]:
                    self.reader_errors.append(f"{mode}: {name} went back, {seen[name]} {now}")
                seen[name] = now
            else:
                self.reader_errors.append(f"{mode}: {line}")

    def stop_readers(self) -> None:
        while self._readers:
            child, thread = self._readers.pop()
            assert child.stdin is not None
            child.stdin.close()
            if child.wait(60) != 0:
                self.reader_errors.append(f"a reader ended with status {child.returncode}")
            thread.join()
            assert child.stdout is not None
            child.stdout.close()

    def round(self, how: int = signal.SIGKILL) -> None:
        """Start a writer, check what it found, end it at a random moment."""
        moments = ("starting", "early", "load", "load")
        moment = "term" if how == signal.SIGTERM else self.random.choice(moments)
        given = (self.folder, self.seed, self.ledger.next)
        with running("kill.crash_writer", *given) as (child, lines):
            if moment == "starting":
                self._hear(lines, self.random.uniform(0, _STARTING_S), until="r")
            elif self._hear(lines, 60, until="r"):
                self._check()
                assert child.stdin is not None
                child.stdin.write(b"go\n")
                child.stdin.flush()
                self._hear(lines, 60, count=self.random.randrange(*_MOMENTS[moment]))
                self._hear(lines, self.random.uniform(0, _AFTER_S))
            else:
                raise Violation(f"a writer did not start: status {child.poll()}")
            child.send_signal(how)
            self.faults[f"{signal.Signals(how).name} {moment}"] += 1
            self._hear(lines, 60, until="e")
            child.wait(60)
        if how == signal.SIGTERM and self.ledger.acknowledged < len(self.ledger.doubtful):
            raise Violation("an orderly stop left operations without an answer")

    def _hear(self, lines: Lines, seconds: float, until: str = "", count: int = 0) -> bool:
        """Tell the ledger what the writer says: for so long, to this line, or so many lines."""
        heard = 0
        deadline = SYSTEM.monotonic() + seconds
        while not lines.ended and (left := deadline - SYSTEM.monotonic()) > 0:
            line = lines.read(left)
            if line is None:
                continue
            if line.startswith("o "):
                self.open_ms.append(int(line[2:]))
            elif line[0] in "sa":
                with self._lock:
                    self.ledger.hear(line)
            heard += 1
            if line == until or heard == count:
                return True
        return False

    def _check(self) -> None:
        """Everything before the running writer's first operation is sealed: compare it."""
        options = persist.Options(mode="independent", config=CONFIG)
        with persist.open(self.folder, options=options) as client, self._lock:
            reads = {name: client.create_or_load(name)[1] for name in NAMES}
            if self.ledger.doubtful or self.ledger.next == 1:
                last = self.ledger.next - 1
                found = {name: read_digest(read, last) for name, read in reads.items()}
                self.ledger.settle(found)
            for name, read in reads.items():
                since, upper = read.since.only() or 0, read.upper.only() or 0
                self.ledger.note_frontiers(name, since, upper)
                for _ in range(2 if since < self.ledger.next else 0):
                    as_of = self.random.randrange(since, self.ledger.next)
                    self.ledger.note_read(name, as_of, read_digest(read, as_of))
            self.ledger.verify_reads()

    def finish(self) -> None:
        """A last writer in good order, and every answer that was given is verified."""
        self.round(signal.SIGTERM)
        self.stop_readers()
        self.round(signal.SIGTERM)
        with persist.open(self.folder, options=persist.Options(config=CONFIG)) as client:
            together = client.atomic()
            for name in NAMES:
                together.seal(client.create_or_load(name)[0], self.ledger.next)
            together.commit().result()
        self._check()
        if self.ledger.unverified:
            raise Violation(f"{len(self.ledger.unverified)} reads are ahead of every writer")
        if self.reader_errors:
            raise Violation("; ".join(self.reader_errors[:5]))
        if max(self.open_ms) > OPEN_MS_MAX:
            raise Violation(f"a restart took {max(self.open_ms)} ms")
