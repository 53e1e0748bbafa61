"""Small ticks without Spark: works done by processes of this machine.

While Spark starts, or starts again because its JVM died, small changes need not wait for it: a
work is a value, and `perform` needs nothing of Spark. Nor need they wait for residents that are
still cold (`noonmark.compute.runner.resident.runner`). A process is started when one is needed,
kept for the next work, and ended when none came for `KEEP_S`. It has the memory of a Python worker
of Spark at most, and a cache of parts of its own.

Law: it is the same who does a work, and how often (`noonmark.compute.runner.runner`). A process
that dies fails the works that it had. What Spark does not end because its JVM or a Python worker
died is done here at once.

Where it runs: `LocalProcesses` and `OrLocalProcesses` on the driver, any thread; `serve` in the
process itself.
"""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from noonmark.clock import SYSTEM, Clock
from noonmark.compute.jvm.session import OpenSession, Session
from noonmark.compute.runner.job import TickResult, TickTask, timed
from noonmark.compute.runner.runner import Named, Ran, Runner, brought_forward
from noonmark.compute.trace.by_key import TraceReader
from noonmark.errors import Determinate, NoonmarkError, Stopped
from noonmark.persist import task

#: A process without work is ended after so long.
KEEP_S = 60.0
_HEAD = struct.Struct("!Q")
_DETAIL_MAX = 500


@dataclass(eq=False)
class _Process:
    """One process, from the driver's side."""

    process: subprocess.Popen[bytes]
    link: socket.socket
    used_s: float = 0.0
    #: The views that it has brought forward.
    warm: set[str] = field(default_factory=set)

    def ask(self, packed: bytes) -> bytes:
        """Send works, and wait for what they made."""
        with suppress(OSError):
            self.link.sendall(_HEAD.pack(len(packed)) + packed)
        return self.receive()

    def receive(self) -> bytes:
        """What it says next.

        Raises:
            Determinate: it has ended.
        """
        found = None
        with suppress(OSError):
            found = _received(self.link)
        if found is None:
            raise Determinate(
                "the process of a tick has ended",
                detail=f"Its exit status is {self.process.poll()}.",
                hint="It is tried again by itself.",
            )
        return found

    def end(self) -> None:
        """End it at once; from any thread."""
        self.process.kill()

    def close(self) -> None:
        """End it, and let go of it."""
        self.end()
        self.link.close()
        self.process.wait()


class LocalProcesses:
    """See the module.

    Args:
        memory_mb: what one process may use.
        clock: the door to time.
        most: how many processes there may be.
    """

    def __init__(self, memory_mb: int, clock: Clock = SYSTEM, most: int | None = None) -> None:
        self._memory_mb = memory_mb
        self._clock = clock
        self._most = most or max(2, os.cpu_count() or 1)
        self._changed = threading.Condition()
        self._free: list[_Process] = []
        self._busy: set[_Process] = set()
        self._starting = 0
        #: Who works for a tick.
        self._groups: dict[str, _Process] = {}
        self._folder: Path | None = None
        self._closed = False

    def run(self, works: Sequence[Named], group: str) -> Ran:
        """What the works make.

        Raises:
            Interrupted: they were ended.
            Determinate: their process has ended.
        """
        process = self._take(group, [name for name, _ in works])
        try:
            found: list[TickResult | NoonmarkError] = pickle.loads(process.ask(pickle.dumps(works)))
        except BaseException:
            self._drop(process)
            raise
        finally:
            with self._changed:
                self._groups.pop(group, None)
        process.warm |= brought_forward(works)
        self._give_back(process)
        return Ran(found, 0)

    def warm(self) -> set[str]:
        """The views that one of the processes has brought forward."""
        with self._changed:
            return {name for each in (*self._free, *self._busy) for name in each.warm}

    def end(self, group: str) -> None:
        """End the works of a group, from another thread."""
        with self._changed:
            process = self._groups.get(group)
            if process is not None:
                process.end()

    def tidy(self) -> None:
        """End the processes that nobody needed for a while."""
        if not self._free:
            return
        before = self._clock.monotonic() - KEEP_S
        with self._changed:
            old = [each for each in self._free if each.used_s < before]
            self._free = [each for each in self._free if each not in old]
        for each in old:
            each.close()

    def close(self) -> None:
        """End all processes; what they do fails."""
        with self._changed:
            self._closed = True
            free, self._free = self._free, []
            for each in self._busy:
                each.end()
            self._changed.notify_all()
        for each in free:
            each.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _take(self, group: str, names: Sequence[str]) -> _Process:
        with self._changed:
            while not self._free:
                if self._closed:
                    raise Stopped("the database is closed")
                if len(self._busy) + self._starting < self._most:
                    break
                self._changed.wait()
            if self._free:
                most = max(self._free, key=lambda each: len(each.warm.intersection(names)))
                self._free.remove(most)
                return self._lent(most, group)
            self._starting += 1
        try:
            process = self._start()
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify()
        with self._changed:
            return self._lent(process, group)

    def _lent(self, process: _Process, group: str) -> _Process:
        self._busy.add(process)
        self._groups[group] = process
        return process

    def _start(self) -> _Process:
        with self._changed:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="noonmark-parts-"))
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", __name__, str(theirs.fileno()), str(self._folder)]
            process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                process_group=0,  # not a session of its own: Linux shares processors by sessions
                env={**os.environ, task.MEMORY_VARIABLE: str(self._memory_mb)},
            )
        started = _Process(process, ours)
        try:
            started.receive()  # that it is ready
        except Determinate:
            started.close()
            raise
        return started

    def _give_back(self, process: _Process) -> None:
        process.used_s = self._clock.monotonic()
        with self._changed:
            self._busy.discard(process)
            if not self._closed:
                self._free.append(process)
            self._changed.notify()
        if self._closed:
            process.close()

    def _drop(self, process: _Process) -> None:
        process.close()
        with self._changed:
            self._busy.discard(process)
            self._changed.notify()


class OrLocalProcesses:
    """A `Runner` that needs no Spark: it has another one run works while there is a session.

    Args:
        usual: runs works on Spark.
        beside: does those that Spark does not end, and all of them while there is none.
        present: the session, if there is one now.
    """

    def __init__(
        self, usual: Runner, beside: LocalProcesses, present: Callable[[], Session | None]
    ) -> None:
        self._usual = usual
        self._beside = beside
        self._present = present
        self._was_ended = False

    def run(self, _: OpenSession, works: Sequence[Named], group: str) -> Ran:
        """Do works on Spark, or beside it."""
        session = self._present()
        if session is not None:
            try:
                ran = self._usual.run(lambda: session, works, group)
                self._beside.tidy()
                return ran
            except NoonmarkError:
                raise
            except Exception:  # whatever a Spark that dies says, in whichever call
                if self._was_ended:
                    raise
        return self._beside.run(works, group)

    def end(self, _: OpenSession, group: str) -> None:
        """End the works of a group, wherever they are."""
        self._was_ended = True
        session = self._present()
        if session is not None:
            with suppress(Exception):  # likewise
                self._usual.end(lambda: session, group)
        self._beside.end(group)


def _received(link: socket.socket) -> bytes | None:
    """The next message; None when the other end has closed."""
    head = _read(link, _HEAD.size)
    return None if head is None else _read(link, _HEAD.unpack(head)[0])


def _read(link: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        more = link.recv(min(size - len(data), 1 << 20))
        if not more:
            return None
        data += more
    return bytes(data)


# -- in the process itself ------------------------------------------------------------------------


def serve(link: socket.socket, root: Path) -> None:
    """Perform works until the driver closes the socket, which ends the process at once."""
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def work() -> None:
        traces = TraceReader(root)
        link.sendall(_HEAD.pack(0))
        while True:
            task.settle()
            made = [_done(traces, name, each) for name, each in pickle.loads(jobs.get())]
            packed = pickle.dumps(made)
            link.sendall(_HEAD.pack(len(packed)) + packed)

    def live() -> None:
        try:
            work()
        finally:
            os._exit(1)

    threading.Thread(target=live, daemon=True).start()
    with suppress(OSError):
        while (packed := _received(link)) is not None:
            jobs.put(packed)
    os._exit(0)


def _done(traces: TraceReader, name: str, work: TickTask) -> TickResult | NoonmarkError:
    try:
        return timed(traces, name, work)
    except Exception as error:  # what Spark would say of a task that failed
        return Determinate(f'a tick of view "{name}" failed', detail=repr(error)[:_DETAIL_MAX])


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))
