"""Strict serializability, checked from outside; C7 in `make prove` does the same at length."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.serve.reading import connect, database
from support.strict.history import Op, find_cycle, violations
from support.strict.mutants import KILLED, MUTANTS, planted
from support.strict.run import run_inside, run_killed

#: C7 is 300,000 operations in eras of 2,500 with two kills each, by `make prove`.
OPERATIONS, ERA, KILLS = 6_000, 1_200, 1


@pytest.mark.timeout(900)
def test_operations_while_the_server_is_killed(tmp_path: Path) -> None:
    found, done = asyncio.run(run_killed(tmp_path, OPERATIONS, 1, era=ERA, kills=KILLS))
    assert found == []
    assert done["kills"] == OPERATIONS // ERA * KILLS


def judged(seed: int, count: int) -> list[str]:
    async def go() -> list[str]:
        async with asyncio.timeout(50), database() as opened:
            return await run_inside(opened, count, seed)

    return asyncio.run(go())


def test_without_a_bug_there_is_nothing_to_find() -> None:
    assert judged(2, 300) == []


@pytest.mark.parametrize("mutant", sorted(set(MUTANTS) - KILLED))
def test_a_planted_bug_is_found(mutant: str) -> None:
    with planted(mutant):
        assert any(judged(seed, 150) for seed in range(1, 6)), "in five short histories"


def op(began: float, ended: float, **given: object) -> Op:
    return Op(began, ended, "ok", **given)  # type: ignore[arg-type]


def test_each_violation_has_a_name() -> None:
    write = op(0, 1, appends=((1, 10),))
    late = op(2, 3, reads={1: frozenset()}, time=4)
    assert any(text.startswith("fold") for text in violations([write, late], {10: 3}))
    assert any(text.startswith("order") for text in violations([write, late], {10: 5}))
    assert violations([write], {}) == ["lost: 10 was acknowledged"]
    refused = Op(0, 1, "refused", ((1, 10),))
    assert violations([refused], {10: 1}) == ["appeared: 10 was refused"]
    both = op(0, 1, appends=((1, 10), (2, 11)))
    assert any(text.startswith("torn") for text in violations([both], {10: 1, 11: 2}))
    ended = op(0, 1, reads={1: frozenset()}, time=7)
    after = op(2, 3, appends=((1, 10),))
    assert any("a write at 7" in text for text in violations([ended, after], {10: 7}))


def test_cycles_are_found_without_any_time() -> None:
    first, second = op(0, 9, appends=((1, 10),)), op(0, 9, appends=((2, 20),))
    one = op(0, 9, reads={1: frozenset({10}), 2: frozenset()})
    other = op(0, 9, reads={1: frozenset(), 2: frozenset({20})})
    there = {10: 1, 20: 2}
    assert find_cycle([first, second, one], there) is None
    assert find_cycle([first, second, one, other], there) is not None, "they saw them in two orders"
    stale = op(10, 11, reads={1: frozenset()})
    assert find_cycle([first, stale], there) is not None, "it began after the append had ended"
    during = op(5, 11, reads={1: frozenset()})
    assert find_cycle([first, during], there) is None


@pytest.mark.parametrize("bound", ["where mz_now() >= 0", "as of at least {clock}"])
def test_a_strict_read_is_not_before_one_that_ended(bound: str) -> None:
    """Also when that one was at the clock's time, which no write has come to."""

    async def go() -> None:
        async with asyncio.timeout(50), database() as opened:
            first, second = await connect(opened), await connect(opened)
            await first.ask("create table t (a int)")
            await asyncio.sleep(0.05)
            where = bound.format(clock=opened.clock.now_ms())
            ((early,),) = await first.ask(
                f"select mz_now() from (select count(*) from t) x {where}"
            )
            ((late,),) = await second.ask("select mz_now() from (select count(*) from t) x")
            assert int(late) >= int(early)

    asyncio.run(go())


@pytest.mark.parametrize("over", ["(select 1)", "generate_series(1, 2)"])
def test_a_time_that_nobody_has_come_to_binds_nobody_else(over: str) -> None:
    async def go() -> None:
        async with asyncio.timeout(50), database() as opened:
            client = await connect(opened)
            await client.ask("create table t (a int)")
            far = opened.clock.now_ms() + 3_600_000
            await client.ask(f"select mz_now() from {over} x as of at least {far}")
            ((time,),) = await client.ask("select mz_now() from (select count(*) from t) x")
            assert int(time) < far

    asyncio.run(go())
