"""The workers of a database: who gets one, who is killed, what a dead one means.

A statement that needs a worker waits for its turn (`worker.turns`), and takes one that is free, or
a new one. It gives the worker back when its rows are there. One that takes long while others wait
gives its turn up: its worker is killed, and its job is begun anew when it has a turn again.

Law (cancel): when the task that runs a job is cancelled, the worker is killed before the task ends.
Law (alone): a worker that dies fails its own statement, with `OutOfMemory` when the system killed
it and `WorkerLost` else; the next statement gets another.

Where it runs: the adapter's loop; only forking and reaping are in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from noonmark.adapter.catalog.audit import ACTING
from noonmark.adapter.contract import Chunks
from noonmark.adapter.peek.chunks import CHUNK_ROWS, Listed, Streamed
from noonmark.adapter.planner import PLANNER, SHORT_MAX
from noonmark.adapter.worker import frames as f
from noonmark.adapter.worker.errors import OutOfMemory, WorkerLost
from noonmark.adapter.worker.job import Given, Job, is_small
from noonmark.adapter.worker.limits import Limits
from noonmark.adapter.worker.pace import Pace
from noonmark.adapter.worker.scratch import scratch_folder
from noonmark.adapter.worker.turns import Turn, Turns
from noonmark.adapter.worker.zygote import ZYGOTE
from noonmark.errors import NoonmarkError, Stopped
from noonmark.sql.functions.function import Function

T = TypeVar("T")

#: Workers that are kept for the next statements.
_SPARE = 2
#: Rows of an input that are sent at once: pickling them takes about a millisecond.
_INPUT_ROWS = 2_000


class _Worker:
    """One worker, from the loop's side."""

    def __init__(self, pid: int, link: socket.socket) -> None:
        self.pid = pid
        self.link = link
        link.setblocking(False)
        self.is_slow = False

    def kill(self) -> None:
        """End it at once. Its id is its own until it is reaped."""
        self.link.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


#: Forking is one at a time, so one thread does it: others have theirs for themselves.
_ZYGOTE_THREAD = ThreadPoolExecutor(1, "noonmark-fork")


async def _apart(act: Callable[[int], T], number: int) -> T:
    """Ask the zygote, in its thread."""
    return await asyncio.get_running_loop().run_in_executor(_ZYGOTE_THREAD, act, number)


@dataclass
class Result:
    """The rows of a job: those that came at once, then those of a file."""

    rows: list[Any]
    spool: Path | None = None

    def discard(self) -> None:
        """Let go of the file."""
        spool, self.spool = self.spool, None
        if spool is not None:
            spool.unlink(missing_ok=True)

    async def pieces(self) -> AsyncGenerator[Sequence[Any], None]:
        """All rows, piece by piece."""
        try:
            for start in range(0, len(self.rows), CHUNK_ROWS):
                yield self.rows[start : start + CHUNK_ROWS]
            self.rows = []
            if self.spool is not None:
                with open(self.spool, "rb") as file:
                    self.discard()  # it is there for as long as it is open
                    while head := file.read(f.HEAD.size):
                        _, length = f.HEAD.unpack(head)
                        yield f.loads(file.read(length))
                        await asyncio.sleep(0)
        finally:
            self.discard()

    def chunks(self) -> Chunks:
        """The rows as a client takes them."""
        if self.spool is None:
            return Listed(self.rows)
        return Streamed(self.pieces(), self._discarded, is_whole=True)

    async def _discarded(self) -> None:
        self.discard()


class Pool:
    """See the module."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._free: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._turns = Turns(limits.workers)
        self._folder: Path | None = None
        self._files = 0
        self._closed = False
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- what statements ask ---------------------------------------------------------------------

    async def run(
        self,
        job: Job,
        inputs: Mapping[str, Given] | None = None,
        tables: Mapping[str, Path] | None = None,
    ) -> Result:
        """The rows of a job, evaluated by a worker; its inputs are rows, or tables in files."""
        if is_small(job):
            made, functions = f.dump_job(job)
        else:
            # In a thread with a large stack: plans are trees.
            made, functions = await PLANNER.aside(SHORT_MAX + 1, lambda: f.dump_job(job))
        body = f.frame(f.JOB, made)
        for name, path in (tables or {}).items():
            body += f.frame(f.TABLE, f.dumps((name, str(path))))
        turn = Turn(ACTING.get() or "", is_fixed=_does_something(job, functions))
        while True:
            await self._turns.take(turn)
            work = asyncio.ensure_future(self._work(turn, body, inputs or {}, functions))
            given_up = asyncio.Event()

            def give_up(work: asyncio.Task[Any] = work, done: asyncio.Event = given_up) -> None:
                done.set()
                work.cancel()

            turn.give_up = give_up
            try:
                answer = await work
            except asyncio.CancelledError:
                if given_up.is_set() and not _is_cancelled():
                    continue  # somebody else has the turn now
                raise
            finally:
                self._turns.give_back(turn)
            if isinstance(answer, BaseException):
                raise answer
            return answer

    async def _work(
        self,
        turn: Turn,
        body: bytes,
        inputs: Mapping[str, Given],
        functions: Mapping[str, Function],
    ) -> Result | BaseException:
        """Have a worker do a job, once."""
        worker = await self._take()
        pace = Pace(worker.pid)
        turn.spent_s = pace.spent_s
        spool = self._spool()
        try:
            await self._send(worker, body, inputs, spool)
            answer, is_good = await self._receive(worker, functions, turn)
        except BaseException:  # cancelled, or dead
            self._drop(worker)
            spool.unlink(missing_ok=True)
            raise
        finally:
            pace.end()
            turn.spent_s = _nothing
            worker.is_slow = pace.is_lowered
        self._give_back(worker, is_good)
        return answer

    def counts(self) -> dict[str, int]:
        """How many workers there are, by what they do."""
        return {"free": len(self._free), "busy": len(self._busy)}

    def warm_soon(self) -> None:
        """Begin to have a worker ready."""
        self._later(self.warm())

    async def warm(self) -> None:
        """Have a worker ready."""
        if self._turns.has_room():
            with contextlib.suppress(Stopped):
                self._give_back(await self._take(), True)

    async def close(self) -> None:
        """Kill all workers."""
        self._closed = True
        for worker in [*self._free, *self._busy]:
            self._drop(worker)
        self._turns.close()
        if self._tasks:
            await asyncio.wait(set(self._tasks))
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def pids(self) -> list[int]:
        """The workers that there are."""
        return [worker.pid for worker in (*self._free, *self._busy)]

    @property
    def busy(self) -> int:
        """How many statements have a worker now."""
        return len(self._busy)

    # -- workers ---------------------------------------------------------------------------------

    async def _take(self) -> _Worker:
        """A worker for who has a turn."""
        if self._closed:
            raise Stopped("the database is closed")
        if self._free:
            worker = self._free.pop()
            self._busy.add(worker)
            return worker
        return await self._start()

    async def _start(self) -> _Worker:
        task = asyncio.ensure_future(_apart(ZYGOTE.fork, self.limits.memory_mb << 20))
        try:
            pid, link = await asyncio.shield(task)
        except asyncio.CancelledError:
            self._later(self._discard(task))
            raise
        worker = _Worker(pid, link)
        self._busy.add(worker)
        if self._closed:
            self._drop(worker)
            raise Stopped("the database is closed")
        return worker

    async def _discard(self, task: asyncio.Future[tuple[int, socket.socket]]) -> None:
        """Nobody waits for a worker that is being started: it is for the next one."""
        with contextlib.suppress(NoonmarkError):
            pid, link = await task
            worker = _Worker(pid, link)
            self._busy.add(worker)
            self._give_back(worker, True)

    def _give_back(self, worker: _Worker, is_good: bool) -> None:
        """Keep a worker for the next; one that is slow, or will take no more, is replaced."""
        if not is_good or worker.is_slow or self._closed or len(self._free) >= _SPARE:
            self._drop(worker)
            return
        self._busy.discard(worker)
        self._free.append(worker)

    def _drop(self, worker: _Worker) -> None:
        """Kill a worker; another may be started in its place."""
        self._busy.discard(worker)
        if worker in self._free:
            self._free.remove(worker)
        worker.kill()
        self._later(_apart(ZYGOTE.drop, worker.pid))

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _spool(self) -> Path:
        if self._folder is None:
            self._folder = scratch_folder()
        self._files += 1
        return self._folder / str(self._files)

    # -- messages --------------------------------------------------------------------------------

    async def _send(
        self, worker: _Worker, body: bytes, inputs: Mapping[str, Given], spool: Path
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            head = body
            for name, rows in inputs.items():
                if not rows:
                    head += f.frame(f.INPUT, f.dumps((name, [])))
                for start in range(0, len(rows), _INPUT_ROWS):
                    piece = rows[start : start + _INPUT_ROWS]
                    await loop.sock_sendall(worker.link, head)
                    head = f.frame(f.INPUT, f.dumps((name, piece)))
                    await asyncio.sleep(0)  # pickling many rows is for others to interrupt
            await loop.sock_sendall(worker.link, head + f.frame(f.GO, f.dumps(str(spool))))
        except OSError:
            raise await self._lost(worker) from None

    async def _receive(
        self, worker: _Worker, functions: Mapping[str, Function], turn: Turn
    ) -> tuple[Result | BaseException, bool]:
        """The rows, or the job's error; and whether the worker is good for another job."""
        rows: list[Any] = []
        async for kind, body in _messages(worker.link):
            if kind == f.ROWS:
                rows += f.loads(body)
            elif kind == f.DONE:
                spool, is_good = f.loads(body)
                return Result(rows, None if spool is None else Path(spool)), is_good
            elif kind == f.QUESTION:
                answer = f.frame(f.ANSWER, f.dumps(await self._ask(functions, turn, body)))
                await asyncio.get_running_loop().sock_sendall(worker.link, answer)
            elif kind == f.ERROR:
                error, is_good = f.loads(body)
                return error, is_good
        raise await self._lost(worker)

    async def _ask(self, functions: Mapping[str, Function], turn: Turn, body: bytes) -> Any:
        """What the session's function says; while that waits, the statement has no turn."""
        name, values = f.loads(body)
        function = functions[name]
        if not function.waits or not self._turns.rest(turn):
            return await _answered(function, values)
        try:
            found = await _answered(function, values)
        except BaseException:
            self._turns.stop_resting()
            raise
        await self._turns.go_on(turn)
        return found

    async def _lost(self, worker: _Worker) -> NoonmarkError:
        """Why a worker has ended."""
        self._busy.discard(worker)
        status = await _apart(ZYGOTE.reap, worker.pid)
        if status == -signal.SIGKILL:
            return OutOfMemory(
                "the system ended the worker of this statement",
                detail="Most likely the machine was short of memory.",
                hint="Let the server have fewer statement_workers, or give them less memory.",
            )
        return WorkerLost(
            "the worker of this statement ended unexpectedly",
            detail=None if status is None else f"Its exit status is {status}.",
            hint="Send the statement again; others are not affected.",
        )


def _nothing() -> tuple[float, float]:
    return 0.0, 0.0


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _does_something(job: Job, functions: Mapping[str, Function]) -> bool:
    """Whether a job has effects, so that it is not begun anew; the planning of a query has none."""
    if next(job.parts(), None) is None:
        return False
    return any(each.volatile and each.name != "gen_random_uuid" for each in functions.values())


async def _answered(
    function: Function, values: tuple[Any, ...]
) -> tuple[Any, NoonmarkError | None]:
    try:
        answer = function.meaning(*values)
        return (await answer if function.waits else answer), None
    except NoonmarkError as error:
        return None, error


async def _messages(link: socket.socket) -> AsyncIterator[tuple[bytes, bytes]]:
    loop = asyncio.get_running_loop()
    data = bytearray()
    with contextlib.suppress(ConnectionError):
        while more := await loop.sock_recv(link, 256 << 10):
            data += more
            while len(data) >= f.HEAD.size:
                kind, length = f.HEAD.unpack_from(data)
                end = f.HEAD.size + length
                if len(data) < end:
                    break
                yield kind, bytes(memoryview(data)[f.HEAD.size : end])
                del data[:end]
