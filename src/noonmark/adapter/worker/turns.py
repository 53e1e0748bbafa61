"""Whose turn it is: the statements that have a worker, and those that wait for one.

There are as many turns as `statement_workers`. A statement that is done soon must not wait for one
that never ends, and one role not for another, however many statements that one sends. So

    short     what has taken less than `SHORT_S` of the processor. Some turns are for these alone
    long      what has taken more, and what cannot be begun anew: at most `long_max` have a turn
    resting   what waits for something else than a processor (pg_sleep, an advisory lock): it has no
              turn, and takes one again when it goes on

A job is the same wherever and whenever it runs (`worker.job`), so one that has told nobody anything
can be begun anew. Where somebody waits and there is no turn, a statement that has taken too long
gives its turn up: its worker ends, and it waits as a long one, to be begun anew.

Law (short): a short statement that waits gets a turn as soon as one that is not short can give one
up, whoever holds it; those of each role in their order, and of roles those first that have fewer.
Law (roles): a role that waits for a long turn gets one from a role that has two more, once that has
had it for `SHORT_S`: the one that has taken least. Where none has two more, they take turns.
Law (end): a statement that has an end comes to it: each time that it is begun anew because nobody
has more than others, it may take twice as long as before.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

#: What a statement may take of the processor, or three times of the clock, and be short.
SHORT_S = 1.0
_CLOCK = 3
#: How often it is looked whether somebody can give up a turn, while somebody waits.
_LOOK_S = 0.1
#: How many statements rest, for each turn that there is: each is a process.
_RESTING = 8
#: Of how many roles it is known when they had a turn last.
_ROLES = 1_000


@dataclass(eq=False)
class Turn:
    """A statement that has a turn, or waits for one.

    Attributes:
        role: whose it is.
        is_fixed: it cannot be begun anew.
        spent_s: what it has taken since it began, of the processor and of the clock.
        give_up: ends its worker; it waits again.
    """

    role: str
    is_fixed: bool = False
    spent_s: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0)
    give_up: Callable[[], None] = lambda: None
    is_long: bool = False
    times: int = 0
    granted: asyncio.Future[None] | None = field(default=None, repr=False)

    @property
    def has_taken_s(self) -> float:
        """What it has taken, as it counts."""
        processor_s, clock_s = self.spent_s()
        return max(processor_s, clock_s / _CLOCK)


class Turns:
    """See the module."""

    def __init__(self, most: int) -> None:
        self.most = most
        #: Long ones leave a quarter of the turns, and one of two, to short ones.
        self.long_max = max(1, most - max(1, most // 4))
        #: Those that cannot be begun anew leave a third of these to those that can.
        self.fixed_max = max(1, self.long_max - self.long_max // 3)
        self._held: list[Turn] = []
        self._waiting: list[Turn] = []
        self._giving_up: set[Turn] = set()
        self._resting = 0
        #: When each role had a turn last, by the number of that turn.
        self._served: dict[str, int] = {}
        self._turn_number = 0
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, turn: Turn) -> None:
        """Wait for a turn."""
        turn.granted = asyncio.get_running_loop().create_future()
        turn.is_long = turn.is_long or turn.is_fixed
        self._waiting.append(turn)
        self._look()
        try:
            await turn.granted
        except BaseException:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self.give_back(turn)
            raise

    def give_back(self, turn: Turn) -> None:
        """It has ended, or its worker has."""
        if turn in self._held:
            self._held.remove(turn)
            self._giving_up.discard(turn)
            self._look()

    def has_room(self) -> bool:
        """Whether a statement would get a turn at once."""
        return not self._waiting and len(self._held) < self.most

    def rest(self, turn: Turn) -> bool:
        """It waits for something else: it gives its turn back; False where too many rest."""
        if self._resting >= _RESTING * self.most:
            return False
        self._resting += 1
        self.give_back(turn)
        return True

    async def go_on(self, turn: Turn) -> None:
        """It has what it waited for: it takes a turn again."""
        self.stop_resting()
        await self.take(turn)

    def stop_resting(self) -> None:
        """It rests no more, and takes no turn."""
        self._resting -= 1

    def close(self) -> None:
        """Nobody gets a turn any more."""
        if self._timer is not None:
            self._timer.cancel()
        for turn in self._waiting:
            if turn.granted is not None:
                turn.granted.cancel()

    # -- who is next -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Give turns to those who wait, and have those give up theirs who should."""
        while (turn := self._next()) is not None:
            self._waiting.remove(turn)
            self._held.append(turn)
            self._turn_number += 1
            self._served.pop(turn.role, None)
            self._served[turn.role] = self._turn_number
            if len(self._served) > _ROLES:
                del self._served[next(iter(self._served))]
            assert turn.granted is not None, "it waits"
            if not turn.granted.done():
                turn.granted.set_result(None)
        if self._waiting:
            self._make_room()
            if self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(_LOOK_S, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self._look()

    def _longs(self) -> list[Turn]:
        return [turn for turn in self._held if turn.is_long and turn not in self._giving_up]

    def _next(self) -> Turn | None:
        """Who waits and can have a turn: short ones before long ones."""
        if len(self._held) >= self.most:
            return None
        waiting = [turn for turn in self._waiting if not turn.is_long]
        longs = self._longs()
        if not waiting and len(longs) < self.long_max:
            is_full = sum(turn.is_fixed for turn in longs) >= self.fixed_max
            waiting = [turn for turn in self._waiting if not (is_full and turn.is_fixed)]
        held = Counter(turn.role for turn in self._held)
        served = self._served
        return min(waiting, key=lambda t: (held[t.role], served.get(t.role, 0)), default=None)

    def _make_room(self) -> None:
        """Somebody waits, and there is no turn for them."""
        leaving = len(self._giving_up)
        shorts = [turn for turn in self._waiting if not turn.is_long]
        if shorts and len(self._longs()) == self.most and not leaving:
            self._alternate()  # there is one turn, for all
            return
        over = [t for t in self._held if not t.is_long and t.has_taken_s > SHORT_S]
        for turn in sorted(over, key=lambda turn: -turn.has_taken_s):
            if len(self._longs()) >= self.long_max:
                if leaving >= len(shorts):
                    break
                leaving += self._end(turn)
            turn.is_long = True  # it stays, as one of these; or waits as one
        if len(self._waiting) > len(shorts):
            self._share()

    def _alternate(self) -> None:
        for turn in self._held:
            if turn.has_taken_s > SHORT_S * 2**turn.times and self._end(turn):
                turn.times += 1
                return

    def _share(self) -> None:
        """Long ones wait: one that has had its time gives up its turn, for another role first."""
        longs = [turn for turn in self._longs() if not turn.is_fixed]
        if self._giving_up or len(self._longs()) < self.long_max:
            return
        held = Counter(turn.role for turn in self._longs())
        waiting = {turn.role for turn in self._waiting if turn.is_long}
        poorest = min(held[role] for role in waiting)
        rich = [t for t in longs if held[t.role] > poorest + 1 and t.has_taken_s > SHORT_S]
        if rich:
            self._end(min(rich, key=lambda turn: turn.has_taken_s))
            return
        over = [turn for turn in longs if turn.has_taken_s > SHORT_S * 2**turn.times]
        if over:
            last = max(over, key=lambda turn: turn.has_taken_s)
            last.times += 1
            self._end(last)

    def _end(self, turn: Turn) -> bool:
        if turn.is_fixed or turn in self._giving_up:
            return False
        self._giving_up.add(turn)
        turn.give_up()
        return True
