"""Views tick in rounds: as many runs of works as levels, one commit when idle, nobody held back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.schedule import rounds
from noonmark.adapter.schedule.rounds import Rounds
from noonmark.clock import SYSTEM
from noonmark.compute.runner.resident.runner import ByResidents
from noonmark.compute.runner.runner import Named
from noonmark.compute.view import dataflow
from noonmark.errors import Determinate
from noonmark.supervise import Supervisor
from support.serve.reading import connect, database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "counts": "select k, count(*) as n from t group by k",
    "sums": "select k, sum(v) as total from t group by k",
    "highest": "select k, max(v) as high from t group by k",
    "large": "select k, v from t where v > 100",
    "top": "select max(total) as most from sums",
}


@pytest.mark.spark
def test_the_runs_of_a_tick_are_its_levels(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[list[str]] = []
    usual = ByResidents.run

    def counted(
        runner: ByResidents, session: SparkSession, works: Sequence[Named], group: str
    ) -> Any:
        jobs.append(sorted(name for name, _ in works))
        return usual(runner, session, works, group)

    monkeypatch.setattr(ByResidents, "run", counted)
    monkeypatch.setattr(rounds, "_RESIDENT_MS_MAX", 60_000.0)
    # However busy the machine is: no view is slow here, and none comes too late for its round.
    monkeypatch.setattr(dataflow, "QUICK_MS", 60_000.0)
    monkeypatch.setattr(rounds, "_GATHER_S", 5.0)

    async def main() -> None:
        async with asyncio.timeout(200), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            await client.ask("create table t (k int, v int)")
            await client.ask("create table other (k int)")
            for name, sql in VIEWS.items():
                await client.ask(f"create materialized view {name} as {sql}")
            await client.ask("insert into t values (1, 10), (2, 20)")
            views = [each.taken_up() for each in opened.work.views.values()]
            total = 210
            while any(view.walked is None for view in views):
                total += 1
                await client.ask("insert into t values (1, 1)")
                for name in VIEWS:  # until all of them were walked by a process that knows them
                    await client.ask(f"select * from {name}")
            jobs.clear()
            await client.ask("insert into t values (1, 200)")
            assert await client.ask("select most from top") == [(total,)]
            assert await client.ask("select * from highest order by k") == [(1, 200), (2, 20)]
            assert jobs == [["counts", "highest", "large", "sums"], ["top"]]
            await _idle(opened, jobs)

    asyncio.run(main())


async def _idle(opened: Database, jobs: list[list[str]]) -> None:
    """The table moves on in time and nothing else: one commit for each level, and no job."""
    jobs.clear()
    before = opened.client.state.seqno
    now = opened.client.state.collection("t").upper.only()
    assert now is not None
    await opened.tables.advance(now + 10, ["t"])
    await opened.work.bring(VIEWS, now + 10)
    assert jobs == []
    assert opened.client.state.seqno - before <= 1 + 2


class Fake:
    """A view whose tick does what it is told."""

    work = "a small change"

    def __init__(self, name: str, act: Callable[[], str]) -> None:
        self.name = name
        self.act = act
        self.walked = None

    def begin(self) -> Fake:
        return self


def test_a_slow_view_and_a_failing_one_hold_back_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(ticks: Sequence[tuple[Fake, Fake]], **_: Any) -> list[tuple[Fake, Any]]:
        def outcome(view: Fake) -> Any:
            try:
                return view.act()
            except Determinate as error:
                return error

        return [(view, outcome(view)) for view, _ in ticks]

    def shared(begun: Sequence[tuple[Fake, Fake]], *, apart: bool) -> Any:
        assert apart
        quick = [each for each in begun if each[0].name != "slow"]
        parts: Any = [], quick, [each for each in begun if each not in quick]
        return dataflow.Shares(*parts)

    monkeypatch.setattr(dataflow, "shared", shared)
    monkeypatch.setattr(dataflow, "tick_alone", alone)
    monkeypatch.setattr(dataflow, "tick_together", alone)

    async def main() -> None:
        released = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow() -> str:
            asyncio.run_coroutine_threadsafe(released.wait(), loop).result()
            return "slow"

        def fails() -> str:
            raise Determinate("it did not happen")

        names = {"slow", "quick", "fails"}
        no_spark: Any = None
        rounds: Any = Rounds(
            SYSTEM, lambda: names, lambda: 60.0, Supervisor(), engine=no_spark, memory_mb=512
        )
        acts = {"slow": slow, "quick": lambda: "quick", "fails": fails}
        ticks = {
            name: asyncio.ensure_future(rounds.tick(Fake(name, act))) for name, act in acts.items()
        }
        async with asyncio.timeout(20):
            assert await ticks["quick"] == "quick"
            with pytest.raises(Determinate):
                await ticks["fails"]
            assert not ticks["slow"].done()
            # The next round does not wait for it either.
            names.clear()
            again = Fake("quick", lambda: "again")
            assert await rounds.tick(again) == "again"
            released.set()
            assert await ticks["slow"] == "slow"
        rounds.stop()

    asyncio.run(main())
