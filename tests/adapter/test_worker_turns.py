"""Turns of statements (`worker.turns`): nobody who is done soon waits for who never ends."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from noonmark.adapter.worker.turns import Turn, Turns

STEP_S = 0.1


@dataclass
class Statement:
    """One that needs so much of the processor, all at once."""

    role: str
    needs_s: float
    came_s: float
    fixed: bool = False
    turn: Turn = field(init=False)
    taken_s: float = 0.0
    begun_s: float | None = None
    ended_s: float | None = None
    lost: bool = False

    @property
    def waited_s(self) -> float:
        assert self.begun_s is not None
        return self.begun_s - self.came_s


class World:
    """Statements and their turns, by a clock of its own."""

    def __init__(self, most: int) -> None:
        self.turns, self.now_s = Turns(most), 0.0
        self.statements: list[Statement] = []
        self._tasks: list[asyncio.Task[None]] = []

    def send(self, role: str, needs_s: float, *, fixed: bool = False) -> Statement:
        made = Statement(role, needs_s, self.now_s, fixed)
        self.statements.append(made)
        self._tasks.append(asyncio.ensure_future(self._live(made)))
        return made

    async def _live(self, statement: Statement) -> None:
        def give_up() -> None:
            assert not statement.fixed, "it cannot be begun anew"
            statement.lost = True

        turn = statement.turn = Turn(
            statement.role, statement.fixed, lambda: (statement.taken_s, 0.0), give_up
        )
        while True:
            await self.turns.take(turn)
            statement.begun_s = self.now_s if statement.begun_s is None else statement.begun_s
            while not statement.lost and statement.taken_s < statement.needs_s:
                await self._tick()
                statement.taken_s += STEP_S
            lost, statement.lost, statement.taken_s = statement.lost, False, 0.0
            self.turns.give_back(turn)
            if not lost:
                statement.ended_s = self.now_s
                return

    async def _tick(self) -> None:
        at = self.now_s
        while self.now_s == at:
            await asyncio.sleep(0)

    async def pass_s(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            self.now_s += STEP_S
            for _ in range(4):
                await asyncio.sleep(0)
            self.turns._look()
            held = self.turns._held
            assert len(held) <= self.turns.most
            if self.turns.most > 1:
                assert len(self.turns._longs()) <= self.turns.long_max
            assert sum(turn.is_fixed for turn in held) <= self.turns.fixed_max

    async def end(self) -> None:
        self.turns.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@pytest.mark.parametrize("most", [1, 2, 4, 8])
@pytest.mark.parametrize("hers", ["eve", "ann"])
@pytest.mark.parametrize("seed", range(3))
def test_short_ones_never_wait_for_those_that_never_end(most: int, hers: str, seed: int) -> None:
    """Not for those of another role, nor of their own; endless, or endless and with effects."""

    async def go() -> None:
        world, chance = World(most), random.Random(seed)
        for _ in range(3 * most):
            world.send(hers, math.inf, fixed=most > 1 and chance.random() < 0.3)
        await world.pass_s(chance.choice((0.5, 5, 60)))
        polite = []
        for _ in range(30):
            polite.append(world.send("ann", 0.3))
            await world.pass_s(chance.choice((0.5, 1, 2)))
        await world.pass_s(10)
        slowest = max(each.waited_s for each in polite)
        # Behind those of one's own role that came before, while they are as new; with one turn,
        # behind one that was begun anew and may take longer each time.
        assert slowest <= (200 if most == 1 else 3.0 if hers == "eve" else 5.0), slowest
        if most > 1:
            assert all(each.ended_s is not None for each in polite)
            assert max(each.waited_s for each in polite[5:]) <= 2.5
        await world.end()

    asyncio.run(go())


@pytest.mark.parametrize("most", [2, 4, 8])
def test_a_role_that_sends_many_new_ones_is_one_role(most: int) -> None:
    """Statements that are given up by their client before they are long, again and again."""

    async def go() -> None:
        world = World(most)
        for _ in range(200):
            world.send("eve", 0.9)
        polite = []
        for _ in range(20):
            polite.append(world.send("ann", 0.3))
            await world.pass_s(1.5)
        assert max(each.waited_s for each in polite) <= 1.5
        await world.end()

    asyncio.run(go())


@pytest.mark.parametrize("most", [2, 4, 8])
@pytest.mark.parametrize("seed", range(3))
def test_a_statement_that_has_an_end_comes_to_it(most: int, seed: int) -> None:
    async def go() -> None:
        world, chance = World(most), random.Random(seed)
        endless = [world.send("eve", math.inf) for _ in range(20)]
        await world.pass_s(20)
        needs = (5.0, 20.0, 40.0) if most > 2 else (2.0, 6.0)
        long = [world.send("ann", chance.choice(needs)) for _ in range(4)]
        for _ in range(200):
            world.send(chance.choice(("eve", "ann", "bob")), 0.2)
            await world.pass_s(2)
        assert all(each.ended_s is not None for each in long)
        assert all(each.ended_s is None for each in endless)
        await world.end()

    asyncio.run(go())


def test_roles_share_the_long_turns() -> None:
    async def go() -> None:
        world = World(8)
        for _ in range(10):
            world.send("eve", math.inf)
        await world.pass_s(30)
        for _ in range(10):
            world.send("ann", math.inf)
        await world.pass_s(30)
        held = Counter(turn.role for turn in world.turns._longs())
        assert held == {"eve": 3, "ann": 3}
        # Nobody else is there: a role may have all that are for long ones.
        await world.end()

    asyncio.run(go())


def test_who_rests_has_no_turn() -> None:
    async def go() -> None:
        turns = Turns(2)
        resting = [Turn("eve", is_fixed=True) for _ in range(16)]
        for turn in resting:
            async with asyncio.timeout(1):
                await turns.take(turn)
            assert turns.rest(turn)
        one_more = Turn("eve", is_fixed=True)
        await turns.take(one_more)
        assert not turns.rest(one_more), "each of them is a process"
        async with asyncio.timeout(1):
            await turns.take(Turn("ann"))
        waiting = asyncio.ensure_future(turns.go_on(resting[0]))
        await asyncio.sleep(0)
        assert not waiting.done(), "who goes on waits for a turn as all others"
        turns.give_back(one_more)
        async with asyncio.timeout(1):
            await waiting
        turns.close()

    asyncio.run(go())


def test_who_goes_away_while_it_waits_leaves_its_turn() -> None:
    async def go() -> None:
        turns = Turns(1)
        first, second, third = Turn("a"), Turn("a"), Turn("a")
        await turns.take(first)
        waiting = [asyncio.ensure_future(turns.take(turn)) for turn in (second, third)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        turns.give_back(first)
        async with asyncio.timeout(1):
            await waiting[1]
        fourth = asyncio.ensure_future(turns.take(second))
        await asyncio.sleep(0)
        turns.give_back(third)
        fourth.cancel()  # it has the turn, and has not seen it
        await asyncio.gather(fourth, return_exceptions=True)
        assert turns.has_room()

    asyncio.run(go())
