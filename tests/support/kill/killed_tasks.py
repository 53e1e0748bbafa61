"""C17: everything that works behind a database is killed in turn, under C7's load.

A *victim* is a supervised piece of work, a statement worker, the process that forks those, Spark's
JVM, or a Python worker of it. After each kill the database must serve again by itself: a write, a
strict read of a table and through a view, a statement that needs a worker, a source that moves.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from noonmark.adapter.database import Database
from noonmark.adapter.worker.zygote import ZYGOTE
from noonmark.clock import SYSTEM
from noonmark.errors import NoonmarkError
from noonmark.supervise import Task, Thread
from support.serve.reading import Conversation, connect
from support.strict.load import Connection, Load, now, set_up
from support.strict.run import Inside, judge

#: Work that runs on persist's own loop.
_OF_PERSIST = {"compaction", "garbage", "leases", "notifier", "sweep"}
#: Operations of C7's load for each kill.
OPERATIONS = 60


def kill(work: Task | Thread) -> None:
    """Let it die as a defect would."""
    if isinstance(work, Task):
        assert work.alive is not None
        work.alive.cancel()
    else:
        assert work.number is not None
        number, error = ctypes.c_long(work.number), ctypes.py_object(SystemExit)
        assert ctypes.pythonapi.PyThreadState_SetAsyncExc(number, error) == 1


async def kill_on_its_loop(opened: Database, work: Task | Thread) -> None:
    async def here() -> None:
        kill(work)

    if work.life.kind in _OF_PERSIST:
        await asyncio.wrap_future(opened.client.runtime.submit(here()))
    else:
        await here()


def children(pid: int) -> Iterator[int]:
    """The processes that a process has started."""
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            yield from map(int, (thread / "children").read_text().split())


@dataclass
class Killing:
    """A database whose parts are killed, and what was seen of it."""

    opened: Database
    seed: int
    view: bool
    back_max_s: float = 10.0
    violations: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    back_s: dict[str, float] = field(default_factory=dict)

    async def run(self, count: int) -> None:
        """Kill so many victims, one after the other, in an order of the seed."""
        first = await self._open()
        await set_up(first)
        probe = await connect(self.opened)
        await self._prepare(probe)
        load, random = Load(self._open, self.seed, clients=4), Random(self.seed)
        order: list[str] = []
        for _ in range(count):
            if not order:
                order = self._kinds()
                random.shuffle(order)
            after = await now(first)
            under_load = asyncio.ensure_future(load.run(OPERATIONS))
            await asyncio.sleep(random.random() * 0.05)
            await self._one(order.pop(), probe)
            await under_load
            self.violations += await judge(first, load, after)

    async def _open(self) -> Connection:
        return Inside(await connect(self.opened))

    async def _prepare(self, probe: Conversation) -> None:
        await probe.ask("create table t (a int)")
        source = "create source c from load generator counter (tick interval '50ms')"
        if self.view:
            await probe.ask("create materialized view v as select count(*) as n from t")
            await probe.ask(source)
        await self._serves(probe)

    def _kinds(self) -> list[str]:
        works = sorted({work.life.kind for work in self.opened.supervisor.works()} - {"sweep"})
        return [*works, "worker", "zygote", *(["jvm", "python worker"] if self.view else [])]

    async def _one(self, kind: str, probe: Conversation) -> None:
        if kind in ("jvm", "python worker"):
            await self.opened.engine.session()  # one that still starts is nobody to kill
        begun = SYSTEM.monotonic()
        if not await self._kill(kind):
            return
        self.kills[kind] += 1
        while True:
            try:
                async with asyncio.timeout(self.back_max_s + 110):
                    await self._serves(probe)
                break
            except (NoonmarkError, AssertionError) as error:
                if SYSTEM.monotonic() - begun > self.back_max_s + 110:
                    self.violations.append(f"{kind}: it does not come back: {error}")
                    return
                await asyncio.sleep(0.1)
        took = SYSTEM.monotonic() - begun
        self.back_s[kind] = max(took, self.back_s.get(kind, 0))
        if took > self.back_max_s:
            self.violations.append(f"{kind}: back after {took:.1f} s")

    async def _kill(self, kind: str) -> bool:
        """Whether there was somebody to kill."""
        if kind == "worker":
            return await self._kill_worker()
        if kind == "zygote":
            return _killed(ZYGOTE.pid)
        if kind in ("jvm", "python worker"):
            session = await self.opened.engine.session()
            jvm = session.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
            return _killed(jvm if kind == "jvm" else _python_worker(jvm))
        works = [each for each in self.opened.supervisor.works() if each.life.kind == kind]
        for work in works:
            await kill_on_its_loop(self.opened, work)
        return bool(works)

    async def _kill_worker(self) -> bool:
        """A worker in the middle of its work; its statement alone must fail."""
        client = await connect(self.opened)
        endless = "select count(*) from generate_series(1, 99999) a, generate_series(1, 99999) b"
        asked = asyncio.ensure_future(client.ask(endless))
        while not self.opened.workers.busy:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        killed = [_killed(pid) for pid in self.opened.workers.pids]
        try:
            await asked
            self.violations.append("worker: a statement whose worker was killed has an answer")
        except NoonmarkError:
            pass
        return any(killed)

    async def _serves(self, probe: Conversation) -> None:
        """Everything that the database does for its clients."""
        await probe.ask("insert into t values (1)")
        ((rows,),) = await probe.ask("select count(*) from t")
        assert await probe.ask("select count(*) from generate_series(1, 4000)") == [(4000,)]
        if not self.view:
            return
        ((counted,),) = await probe.ask("select n from v")
        if counted < rows:
            self.violations.append(f"a strict read of the view has {counted} of {rows} rows")
        ((before,),) = await probe.ask("select count(*) from c")
        for _ in itertools.count():
            if (await probe.ask("select count(*) from c"))[0][0] > before:
                return
            await asyncio.sleep(0.05)


def _python_worker(jvm: int) -> int | None:
    """A worker of Spark, if there is one; not the process that forks them."""
    workers = [worker for daemon in children(jvm) for worker in children(daemon)]
    return workers[0] if workers else None


def _killed(pid: int | None) -> bool:
    with contextlib.suppress(ProcessLookupError):
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            return True
    return False


async def killed(opened: Database, count: int, seed: int, **how: Any) -> Killing:
    """A whole run on a database."""
    run = Killing(opened, seed, **how)
    await run.run(count)
    for view, error in opened.work.failures().items():
        run.violations.append(f"view {view} fails: {error}")
    return run
