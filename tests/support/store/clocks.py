"""A clock whose wall time a test sets: it stands still, jumps back and jumps ahead."""

from __future__ import annotations

from noonmark.clock import SYSTEM


class SetClock:
    """Wall time and monotonic time move only when told to; waiting and chance are the machine's."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.wall_ms = now_ms
        self.running_s = 0.0
        self.sleeps: list[float] = []

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic(self) -> float:
        return self.running_s

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await SYSTEM.sleep(seconds)

    def random(self) -> float:
        return SYSTEM.random()

    def fresh_id(self) -> str:
        return SYSTEM.fresh_id()


class LeapClock(SetClock):
    """Waiting takes no time: both clocks leap ahead by as much."""

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.running_s += seconds
        self.wall_ms += int(seconds * 1000)
        await SYSTEM.sleep(0)
