"""Figure C3: power is lost at every point of a recorded run, and the location is opened again.

A run records what a writer and two readers do to the disk, with marks for what was submitted,
acknowledged and read. For every prefix of the record some states that power loss could leave are
made; in each, the location opens without help, what was acknowledged and what any reader saw is
there, nothing is there in part, and work goes on. The next run begins with one of those states, so
that power is also lost during recovery.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from noonmark import persist
from noonmark.errors import NoonmarkError
from noonmark.persist.client import Mode
from noonmark.persist.impl.file_system import FileSystem
from noonmark.persist.impl.files import FileBlob
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.runtime import Runtime
from support.store.disk import Disk, Recorder
from support.store.history import CONFIG, NAMES, Ledger, Load, Violation, read_digest

LOCATION = "data"


def open_with(folder: Path, system: FileSystem | None, mode: Mode = "write") -> persist.Client:
    """A client whose file operations go through `system`."""
    runtime = Runtime.start()
    blob = FileBlob(folder, system=system)
    consensus = BlobConsensus(FileBlob(folder, system=system))
    options = persist.Options(mode=mode, config=CONFIG, notify_host=None)
    try:
        return runtime.submit(persist.Client.start(runtime, blob, consensus, options)).result()
    except BaseException:
        runtime.stop()
        raise


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder in memory where there is one: what is durable there is decided by `Disk` alone."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        yield Path(folder)


def record(base: Path, ledger: Ledger, operations: int, forgets: frozenset[str]) -> Recorder:
    """A writer at work and two readers beside it, on `base`."""
    recorder = Recorder(str(base), forgets)
    writer = open_with(base / LOCATION, recorder)
    load = Load(writer, ledger.seed, ledger.next, recorder.mark)
    load.seal_all()
    readers = [open_with(base / LOCATION, recorder, mode) for mode in ("polling", "independent")]
    held = readers[0].create_or_load(NAMES[0])[1].listen(ledger.next - 1)
    for _ in range(operations):
        load.step(at_once=4)
        for reader in readers:
            _look(reader, recorder)
    load.finish()
    held.cancel()
    for client in (*readers, writer):
        client.stop()
    return recorder


def _look(reader: persist.Client, recorder: Recorder) -> None:
    for name in NAMES:
        _, read = reader.create_or_load(name)
        since, upper = read.since.only() or 0, read.upper.only() or 0
        recorder.mark(f"f {name} {since} {upper}")
        if since < upper:
            try:
                recorder.mark(f"v {name} {upper - 1} {read_digest(read, upper - 1)}")
            except NoonmarkError as error:
                if since == (read.since.only() or 0):
                    raise Violation(f"a reader beside the writer got {error}") from error


@dataclass
class PowerLoss:
    """One run of the figure: `states` states in `folder`, from one seed."""

    folder: Path
    seed: int
    forgets: frozenset[str] = frozenset()
    faults: Counter[str] = field(default_factory=Counter)
    prefixes: int = 0
    kept: int = 0

    def states(self, count: int, per_run: int, operations: int = 25) -> Iterator[Path]:
        """Make and check states, one at a time; gives the path of each that has passed."""
        random = Random(f"power/{self.seed}")
        base, ledger, made = self.folder / "base", Ledger(self.seed), 0
        base.mkdir()
        while made < count:
            disks = [Disk(ordered=False), Disk(ordered=True)]
            for disk in disks:
                disk.load(base)
            recorder = record(base, ledger, operations, self.forgets)
            chosen = self._chosen(recorder, random, min(per_run, count - made))
            follow: tuple[Path, Ledger] | None = None
            for place, change in enumerate(recorder.changes):
                if change.what == "mark":
                    self._hear(ledger, change.arguments[0])
                for disk in disks:
                    disk.replay(change)
                for _ in range(chosen[place]):
                    made += 1
                    target = self.folder / f"state-{made}"
                    disk = random.choice(disks)
                    self.faults.update(disk.lose_power(random, target))
                    self.faults["ordered" if disk.ordered else "strict"] += 1
                    found = self._check(target, ledger, random, f"state {made} at {place}")
                    yield target
                    keep = follow is None or random.random() < 0.2
                    old = follow[0] if follow and keep else target
                    follow = (target, found) if keep else follow
                    if old != target or not keep:
                        shutil.rmtree(old)
            assert follow is not None
            shutil.rmtree(base)
            follow[0].rename(base)
            ledger = follow[1]

    def _chosen(self, recorder: Recorder, random: Random, count: int) -> Counter[int]:
        """How many states to make after each change: the same for all, the rest by chance."""
        places = [at for at, change in enumerate(recorder.changes) if change.what != "mark"]
        self.prefixes += len(places)
        each, rest = divmod(count, len(places))
        return Counter(dict.fromkeys(places, each)) + Counter(random.sample(places, rest))

    def _hear(self, ledger: Ledger, line: str) -> None:
        what, *rest = line.split()
        if what in "sa":
            ledger.hear(line)
        elif what == "f":
            since, upper = ledger.frontiers[rest[0]]
            ledger.frontiers[rest[0]] = (max(since, int(rest[1])), max(upper, int(rest[2])))
        else:
            ledger.note_read(rest[0], int(rest[1]), int(rest[2]))

    def _check(self, base: Path, before: Ledger, random: Random, where: str) -> Ledger:
        """Open what is left; returns the ledger that is true of it."""
        ledger = copy.deepcopy(before)
        try:
            if random.random() < 0.5:  # the first to open it may also be a reader
                self._read_all(base, copy.deepcopy(before))
            with open_with(base / LOCATION, None) as client:
                load = Load(client, ledger.seed, ledger.next, lambda _: None)
                load.seal_all()
                reads = {name: client.create_or_load(name)[1] for name in NAMES}
                last = ledger.next - 1
                acknowledged = ledger.acknowledged
                self.kept += ledger.settle({n: read_digest(r, last) for n, r in reads.items()})
                self.kept -= acknowledged
                for name, read in reads.items():
                    since, upper = read.since.only() or 0, read.upper.only() or 0
                    ledger.note_frontiers(name, since, upper)
                    as_of = random.randrange(since, upper) if since < upper else None
                    if as_of is not None:
                        ledger.note_read(name, as_of, read_digest(read, as_of))
                ledger.verify_reads()
        except (NoonmarkError, Violation, OSError) as error:
            raise Violation(f"seed {self.seed}, {where}: {error}") from error
        return ledger

    def _read_all(self, base: Path, ledger: Ledger) -> None:
        """As a reader that cannot write finds it: no frontier behind what was promised."""
        with open_with(base / LOCATION, None, "independent") as client:
            for name in NAMES:
                if name not in client.state.names:
                    if ledger.frontiers[name] != (0, 0) or ledger.sealed[name]:
                        raise Violation(f"{name} is gone")
                    continue
                _, read = client.create_or_load(name)
                since, upper = read.since.only() or 0, read.upper.only() or 0
                ledger.note_frontiers(name, since, upper)
                if since < upper:
                    read_digest(read, upper - 1)
