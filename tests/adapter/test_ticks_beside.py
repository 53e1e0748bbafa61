"""Small ticks go on without Spark: while it starts, when it is lost, when it loses a task."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from noonmark.adapter import database as module
from noonmark.adapter.database import Database
from noonmark.adapter.worker.limits import Limits
from noonmark.compute.runner import processes
from noonmark.compute.runner.processes import LocalProcesses, OrLocalProcesses
from noonmark.compute.runner.runner import JOBS
from noonmark.errors import ConfigError, Determinate, NotYetComplete
from noonmark.persist.client import Options
from support.kill.killed_tasks import children
from support.serve.reading import connect

VIEWS = {
    "counts": "select k, count(*) as n from t group by k",
    "joined": "select t.k, t.v, u.w from t join u on t.k = u.k",
    "top": "select max(n) as most from counts",
}
#: Ten numbers take no time, millions of them minutes.
SLOW = "select a, (select sum(exp(x::numeric / 999983)) from generate_series(1, a) x) as n from s"


@asynccontextmanager
async def without_spark(
    path: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits | None = None
) -> AsyncIterator[Database]:
    """A database whose Spark does not start."""

    def fails(*_: Any, **__: Any) -> Any:
        raise ConfigError("no Java here")

    monkeypatch.setattr(module, "spark_session", fails)
    opened = await Database.open(
        str(path), options=Options(notify_host=None), limits=limits or Limits()
    )
    try:
        yield opened
    finally:
        await opened.close()


def test_views_are_hydrated_and_brought_forward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with asyncio.timeout(120), without_spark(tmp_path, monkeypatch) as opened:
            client = await connect(opened)
            await client.ask("create table t (k int, v int)")
            await client.ask("create table u (k int, w text)")
            await client.ask("insert into t values (1, 1)")
            for name, sql in VIEWS.items():
                await client.ask(f"create materialized view {name} as {sql}")
            await client.ask("insert into t values (1, 2), (2, 3)")
            await client.ask("insert into u values (2, 'two')")
            assert await client.ask("select * from counts order by k") == [(1, 2), (2, 1)]
            assert await client.ask("select * from joined") == [(2, 3, "two")]
            assert await client.ask("select * from top") == [(2,)]
            await client.ask("delete from t where k = 1")
            assert await client.ask("select * from top") == [(1,)]
            assert opened.work.failures() == {}

    asyncio.run(main())


def test_a_process_that_dies_is_replaced_and_one_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        limits = Limits(tick_timeout_s=8)
        async with asyncio.timeout(180), without_spark(tmp_path, monkeypatch, limits) as opened:
            client = await connect(opened)
            await client.ask("create table t (k int, v int)")
            await client.ask(f"create materialized view counts as {VIEWS['counts']}")
            await client.ask("insert into t values (1, 1)")
            assert await _patient(client, "select * from counts") == [(1, 1)]
            for pid in _processes():
                os.kill(pid, signal.SIGKILL)
            await client.ask("insert into t values (1, 1)")
            assert await _patient(client, "select * from counts") == [(1, 2)]
            await client.ask("create table s (a bigint)")
            await client.ask(f"create materialized view slow as {SLOW}")
            await client.ask("insert into s values (9000000)")
            with pytest.raises(NotYetComplete) as refused:
                await client.ask("select * from slow")
            assert "took longer than 8 s" in str(refused.value)
            # Its neighbour has a process of its own.
            await client.ask("insert into t values (1, 1)")
            assert await _patient(client, "select * from counts") == [(1, 3)]
        async with asyncio.timeout(10):  # they are ended with it, and soon gone
            while _processes():
                await asyncio.sleep(0.05)

    asyncio.run(main())


async def _patient(client: Any, sql: str) -> Any:
    """Ask until it answers: a tick whose process died is tried again."""
    while True:
        try:
            return await client.ask(sql)
        except NotYetComplete:
            await asyncio.sleep(0.1)


def _processes() -> list[int]:
    name = processes.__name__.encode()
    found = []
    for pid in children(os.getpid()):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        found += [pid] if name in line else []
    return found


def test_what_spark_does_not_end_is_done_beside_it_at_once() -> None:
    """Whatever a Spark that dies raises."""

    class Gone:
        @property
        def sparkContext(self) -> Any:  # noqa: N802 - Spark's name
            raise AttributeError("'NoneType' object has no attribute 'sc'")

    process = LocalProcesses(memory_mb=2_048)
    try:
        gone: Any = Gone()
        assert OrLocalProcesses(JOBS, process, lambda: gone).run(lambda: gone, [], "tick") == (
            [],
            0,
        )
        ended = OrLocalProcesses(JOBS, process, lambda: gone)
        ended.end(lambda: gone, "tick")
        with pytest.raises(AttributeError):
            ended.run(lambda: gone, [], "tick")
    finally:
        process.close()


def test_a_process_is_ended_with_its_tick() -> None:
    process = LocalProcesses(memory_mb=2_048)
    try:
        process.run([], "tick")
        (pid,) = _processes()
        os.kill(pid, signal.SIGSTOP)  # it does not answer, as one that is busy
        timer = threading.Timer(0.5, process.end, ["tick"])
        timer.start()
        with pytest.raises(Determinate):
            process.run([], "tick")
        timer.join()
    finally:
        process.close()


def test_processes_without_work_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    process = LocalProcesses(memory_mb=2_048)
    try:
        process.run([], "tick")
        process.tidy()
        assert len(_processes()) == 1
        monkeypatch.setattr(processes, "KEEP_S", 0.0)
        process.tidy()
        assert _processes() == []
    finally:
        process.close()
