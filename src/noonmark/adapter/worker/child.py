"""A statement worker: takes jobs from a socket and evaluates them, one at a time, until it closes.

Each job has a limit of memory; the worker ends when the process it was forked from does. A job that
reaches the limit is answered with the error that says so, and the worker ends: what is left of it
is unknown. A worker that keeps more than `_KEPT_BYTES_MAX` of its own after a job ends, too: what
counts is what it has then, not the most that it had, and not what it maps of files.

Rows go back in frames of some hundred kilobytes. What does not fit into `INLINE_BYTES_MAX` goes to
a file, so that the worker is free for others while the client takes the rows.

Where it runs: a process of its own, forked by `zygote`; in a thread with a large stack, because
plans are trees.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from noonmark.adapter.worker import frames as f
from noonmark.adapter.worker.columnar import Columnar
from noonmark.adapter.worker.errors import OutOfMemory, ProgramLimitExceeded
from noonmark.adapter.worker.job import Answered, Computed, Job, Valued, received
from noonmark.compute.contents.evaluation import contents
from noonmark.compute.kernel.updates import Errors, Rows
from noonmark.compute.scalar.number import NoKernel
from noonmark.errors import NoonmarkError, TooComplex
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import BigInt
from noonmark.sql.ir.relation import Distinct, Scan

#: What a worker may be given; all of it is read before the first one is forked.
JOBS = (Answered, Columnar, Computed, Valued)
INLINE_BYTES_MAX = 1 << 20
_FRAME_BYTES = 256 << 10
#: One row, as it is sent; the limit that it must not reach is PostgreSQL's for one value.
ROW_BYTES_MAX = 256 << 20
#: A worker that has more than this of its own after a job ends: it was not given back.
_KEPT_BYTES_MAX = 192 << 20
#: Columns are allocated anew in each step: the C library keeps what it has for the next, and asks
#: the system only for larger ones. To touch new pages is half the time of a short job otherwise.
_OWN_MAPPING_BYTES_MIN = 1 << 30
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
STACK_BYTES = 512 << 20
RECURSION_MAX = 60_000

_PR_SET_PDEATHSIG = 1
#: The server goes first: it has little to do for each statement, and somebody waits for it.
_PRIORITY = 8


def main(link: socket.socket, memory_bytes: int) -> NoReturn:
    """Work until the other end closes; never returns."""
    _die_with_parent()
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # when memory is short, the server is the last to go
    os.nice(_PRIORITY)
    with contextlib.suppress(AttributeError):  # not every libc can be told
        for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
            ctypes.CDLL(None).mallopt(option, _OWN_MAPPING_BYTES_MIN)
    threading.stack_size(STACK_BYTES)
    sys.setrecursionlimit(RECURSION_MAX)
    thread = threading.Thread(target=_serve, args=(_Link(link), memory_bytes), daemon=True)
    thread.start()
    thread.join()
    os._exit(0)


def warm() -> None:
    """Have everything read that a job may need; Arrow reads some of it only when it is used."""
    numbers = pa.array(np.arange(3))
    pa.table([numbers], names=["a"]).group_by("a", use_threads=False).aggregate([("a", "max")])
    pa.array(numbers.to_numpy(), mask=numbers.to_numpy() < 1).dictionary_encode()
    columns = Schema((Column("a", BigInt()),))
    given = Rows((numbers,), np.zeros(3, np.int64), np.ones(3, np.int64))
    contents(Distinct(Scan("t", columns)), {"t": given}, Errors())  # the operators, all of them


def _die_with_parent() -> None:
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


class _Memory:
    """What the process has of its own, beside what it was forked with; and what it may have."""

    def __init__(self, job_bytes: int) -> None:
        self.job_bytes = job_bytes
        self._begun = _status_bytes("RssAnon")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def allow(self) -> None:
        """Let the next job have so much more than there is now: the same for a used worker."""
        limit = _status_bytes("VmData") + self.job_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))

    def allow_all(self) -> None:
        """Let the end of a job have what it needs."""
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY,) * 2)

    def is_given_back(self) -> bool:
        """Whether little is left of what jobs had, once the allocators have been asked for it."""
        if self._kept() < _KEPT_BYTES_MAX:
            return True
        pa.default_memory_pool().release_unused()
        if sys.platform == "linux":
            with contextlib.suppress(AttributeError):  # not every libc has it
                ctypes.CDLL(None).malloc_trim(0)
        return self._kept() < _KEPT_BYTES_MAX

    def _kept(self) -> int:
        if not self._begun:  # a system that does not say: the most that there ever was
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        return _status_bytes("RssAnon") - self._begun


def _status_bytes(name: str) -> int:
    """What the system says that the process has of a kind of memory; 0 where it does not."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        return next((int(line.split()[1]) << 10 for line in file if line.startswith(name)), 0)
    return 0


class _Link:
    """The socket to the database."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._file = link.makefile("rb")

    def read(self) -> tuple[bytes, bytes] | None:
        """The next message; None when the other end has closed."""
        head = self._file.read(f.HEAD.size)
        if len(head) < f.HEAD.size:
            return None
        kind, length = f.HEAD.unpack(head)
        return kind, self._file.read(length)

    def send(self, kind: bytes, value: Any) -> None:
        self._link.sendall(f.frame(kind, f.dumps(value)))

    def forward(self, kind: bytes, body: bytes) -> None:
        self._link.sendall(f.frame(kind, body))

    def ask(self, function: str, values: tuple[Any, ...]) -> Any:
        """What the session answers."""
        self.send(f.QUESTION, (function, values))
        message = self.read()
        if message is None:
            os._exit(0)
        answer, error = f.loads(message[1])
        if error is not None:
            raise error
        return answer


def _serve(link: _Link, memory_bytes: int) -> None:
    memory = _Memory(memory_bytes)
    while (message := link.read()) is not None:
        memory.allow()
        if not _one(link, message[1], memory):
            return


def _one(link: _Link, body: bytes, memory: _Memory) -> bool:
    """Do one job; whether the worker is as good as before."""
    is_good, spool = True, None
    answer: BaseException | None = None
    try:
        spool = _work(link, body)
    except MemoryError:
        memory.allow_all()  # to say so takes memory, too; the worker ends then
        answer, is_good = OutOfMemory.of_statement(memory.job_bytes), False
    except RecursionError:
        answer = TooComplex.of_statement()
    except OSError as error:
        answer = OutOfMemory("the rows of the answer cannot be kept", detail=str(error))
    except (NoonmarkError, NoKernel) as error:
        answer = error
    except Exception as error:
        answer, is_good = error, False
    if answer is not None:  # it holds the frames of the job, with what these had
        answer = answer.with_traceback(None)
        answer.__cause__ = answer.__context__ = None
    is_good = is_good and memory.is_given_back()
    link.send(*((f.DONE, (spool, is_good)) if answer is None else (f.ERROR, (answer, is_good))))
    return is_good


def _work(link: _Link, body: bytes) -> str | None:
    """Take the inputs of a job and give its rows; the file that has the last of them."""
    tables: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    kind, data = link.read() or _closed()
    while kind in (f.INPUT, f.TABLE):
        name, given = f.loads(data)
        if kind == f.TABLE:
            tables[name] = given
        else:
            inputs.setdefault(name, []).extend(given)
        kind, data = link.read() or _closed()
    job: Job = f.load_job(body, link.ask)
    return _give(link, job.rows({**tables, **received(job, inputs)}), f.loads(data))


def _closed() -> NoReturn:
    os._exit(0)


def _give(link: _Link, rows: Iterable[Any], spool: str) -> str | None:
    """Send the rows; those behind the first megabyte are in the file, which is given."""
    sent = 0
    pieces = _pieces(rows)
    for body in pieces:
        link.forward(f.ROWS, body)
        sent += len(body)
        if sent > INLINE_BYTES_MAX:
            break
    else:
        return None
    with open(spool, "wb", opener=_private) as file:
        for body in pieces:
            file.write(f.frame(f.ROWS, body))
    return spool


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _pieces(rows: Iterable[Any]) -> Iterator[bytes]:
    """Pickled lists of rows, each of about `_FRAME_BYTES`."""
    rest, count = iter(rows), 64
    while piece := list(islice(rest, count)):
        body = f.dumps(piece)
        if len(body) > ROW_BYTES_MAX and len(piece) == 1:
            raise ProgramLimitExceeded(f"a row is longer than {ROW_BYTES_MAX >> 20}MB")
        yield body
        size = max(1, len(body) // len(piece))
        count = max(1, min(_FRAME_BYTES // size, 1_000))
