"""Ticks by resident tasks: no job around them, and nothing lost when residents die."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from noonmark.adapter.database import Database
from noonmark.compute.jvm.session import AUTOMATIC, RESIDENTS, with_room
from noonmark.compute.runner.resident import pool as module
from noonmark.compute.runner.resident.lines import Line, LineLost
from noonmark.compute.runner.resident.pool import WAIT_S, Made, Resident, Residents
from noonmark.compute.runner.resident.runner import ByResidents
from noonmark.compute.runner.runner import Named
from noonmark.supervise import Supervisor
from support.neighbour.executors import python_workers
from support.serve.reading import connect, database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
_WAIT_S = 60


def _pool(opened: Database) -> Residents:
    by_residents: Any = opened.work.rounds._by_residents
    assert isinstance(by_residents, ByResidents)
    assert by_residents._known is not None
    return by_residents._known


def _wait(is_there: Callable[[], bool]) -> None:
    for _ in range(_WAIT_S * 20):
        if is_there():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it does not come")


def _are_up(pool: Residents) -> bool:
    return all(each.line is not None for each in pool.residents)


def test_ticks_need_no_job_and_survive_their_residents(tmp_path: Path, spark: SparkSession) -> None:
    """Residents are killed at random moments: every answer has what was acknowledged before."""
    random = Random(11)

    async def main() -> None:
        async with asyncio.timeout(250), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            await client.ask("create table t (k int, v int)")
            await client.ask("create table names (k int, name text)")
            await client.ask("insert into names select n, 'n' || n from generate_series(0, 9) n")
            await client.ask(
                "create materialized view totals as select name, sum(v) as total, max(v) as high "
                "from t join names using (k) group by name"
            )
            await client.ask("create materialized view all_in_all as select sum(v) as v from t")
            await client.ask("select * from totals")
            pool = _pool(opened)
            assert len(pool.residents) == 2
            await asyncio.to_thread(_wait, lambda: _are_up(pool))
            total = 0
            for at in range(60):
                if at % 10 == 9:
                    await asyncio.to_thread(_kill_one, spark, random)
                value = random.randrange(1000)
                await client.ask(f"insert into t values ({at % 10}, {value})")
                total += value
                assert await client.ask("select sum(total) from totals") == [(total,)]
                assert await client.ask("select v from all_in_all") == [(total,)]
            await asyncio.to_thread(_wait, lambda: _are_up(pool))
            await client.ask("insert into t values (0, 0)")
            await client.ask("select * from totals")
            jobs = await client.ask("select jobs from noonmark.ticks where strategy = 'delta'")
            assert jobs.count((0,)) > 60

    asyncio.run(main())


def test_nobody_waits_for_residents_that_are_cold(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before they are up, and before they did a view's work once, processes beside Spark do it."""
    may_begin, keep, run = threading.Event(), Residents._keep, Residents.run
    taken: list[tuple[str, bool]] = []

    def late(pool: Residents, resident: Resident) -> None:
        may_begin.wait(_WAIT_S)
        keep(pool, resident)

    def noted(pool: Residents, works: Sequence[Named], group: str) -> Made:
        was_cold = bool(pool.cold(name for name, _ in works))
        made = run(pool, works, group)
        taken.extend([(group.partition("-")[0], was_cold)] if made else [])
        return made

    monkeypatch.setattr(Residents, "_keep", late)
    monkeypatch.setattr(Residents, "run", noted)

    async def main() -> None:
        async with asyncio.timeout(200), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            await client.ask("create table t (v int)")
            await client.ask("create materialized view v as select sum(v) as v from t")
            for at in range(1, 6):
                await client.ask("insert into t values (1)")
                assert await client.ask("select v from v") == [(at,)]
            assert taken == []
            may_begin.set()
            pool = _pool(opened)
            await asyncio.to_thread(_wait, lambda: _are_up(pool))
            much = module.REHEARSED_ROWS_MAX + 1
            await client.ask(f"insert into t select 1 from generate_series(1, {much})")
            assert await client.ask("select v from v") == [(at + much,)]
            assert taken == [], "much work is not done twice"
            while not taken or taken[-1][0] == "rehearsal":
                at += 1
                await client.ask("insert into t values (1)")
                assert await client.ask("select v from v") == [(at + much,)]
            assert taken[0] == ("rehearsal", True)
            assert [each for each in taken if each[0] != "rehearsal"] == [("view", False)]
            jobs = await client.ask("select distinct jobs from noonmark.ticks")
            assert jobs == [(0,)]

    asyncio.run(main())


def test_a_session_without_residents_begins_with_an_empty_job(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_count", lambda _: 0)
    pool = Residents(spark, Supervisor())
    _wait(lambda: not pool.is_cold)
    assert pool.cold(["v"]) == {"v"}


def _kill_one(spark: SparkSession, random: Random) -> None:
    """End one Python worker of Spark as nobody foresees."""
    os.kill(random.choice(python_workers(spark)), signal.SIGKILL)


def test_they_end_with_the_database(tmp_path: Path, spark: SparkSession) -> None:
    """A session that the caller goes on with has all its cores again."""
    found: list[Residents] = []

    async def main() -> None:
        async with asyncio.timeout(100), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            await client.ask("create table t (k int)")
            await client.ask("create materialized view v as select count(*) as n from t")
            await client.ask("insert into t values (1)")
            assert await client.ask("select n from v") == [(1,)]
            found.append(_pool(opened))
            await asyncio.to_thread(_wait, lambda: _are_up(found[0]))

    asyncio.run(main())
    tracker = spark.sparkContext.statusTracker()
    groups = [each.job_group for each in found[0].residents]

    def gone() -> bool:
        active = set(tracker.getActiveJobsIds())
        return not any(active & set(tracker.getJobIdsForGroup(group)) for group in groups)

    _wait(gone)


def test_a_work_that_is_ended_ends_its_resident_and_another_comes(spark: SparkSession) -> None:
    pool = Residents(spark, Supervisor())
    try:
        _wait(lambda: _are_up(pool))
        first = [each.line for each in pool.residents]
        (share,) = pool._lend(["v"], "group")
        pool.end("group")
        with pytest.raises(LineLost):
            share.line.receive()
        assert share.resident.was_ended
        pool._give_back([share])
        _wait(lambda: _are_up(pool) and share.resident.line not in first)
    finally:
        pool.stop()


def test_a_tick_waits_for_a_resident_as_long_as_a_job_would_take(spark: SparkSession) -> None:
    """On a busy machine a job takes seconds, and takes from those that it runs beside."""
    pool = Residents(spark, Supervisor())
    try:
        _wait(lambda: _are_up(pool))
        busy = [pool._lend([name], name)[0] for name in ("a", "b")]
        assert pool._lend(["c"], "c") == []
        pool.job_took(5.0)
        timer = threading.Timer(4 * WAIT_S, pool._give_back, [busy])
        timer.start()
        assert len(pool._lend(["c"], "c")) == 1
        timer.join()
    finally:
        pool.stop()


def test_strangers_are_refused() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as stranger,
    ):
        end, _ = server.accept()
        stranger.sendall(b"\0\0\0\x05hello")
        with pytest.raises(LineLost):
            Line.answering(end, b"secret")


@pytest.mark.parametrize(
    ("master", "options", "widened", "cores"),
    [
        ("local[2]", {}, "local[4]", "2"),
        ("local", {}, "local[2]", "1"),
        ("local[8,3]", {"spark.noonmark.residents": "1"}, "local[9,3]", "8"),
        ("local[2]", {"spark.noonmark.residents": "0"}, "local[2]", "2"),
    ],
)
def test_a_machine_has_room_for_them_beside_jobs(
    master: str, options: dict[str, str], widened: str, cores: str
) -> None:
    found, settings = with_room(master, options)
    assert (found, settings["spark.default.parallelism"]) == (widened, cores)
    cluster, said = with_room("spark://host:7077", options)
    assert (cluster, said) == ("spark://host:7077", {RESIDENTS: AUTOMATIC})
