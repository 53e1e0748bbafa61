"""The contract of `noonmark.oracle.contract`, for every implementation.

The clock is the test's: it stands still, jumps back and jumps ahead. Durable oracles are also
restarted, killed between any two calls of storage, and taken over.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.clock import SYSTEM
from noonmark.errors import Fenced, Indeterminate, MissingObject, Stopped, StorageError
from noonmark.oracle import MemoryOracle, ReservedOracle, TimestampOracle, reserved
from noonmark.oracle.reserved import LIFE_S, RANGE_MS
from noonmark.persist.config import Config
from noonmark.persist.impl.open import open_consensus
from noonmark.persist.location import Consensus
from noonmark.persist.runtime import Runtime
from support.kill import oracle_process
from support.store.clocks import LeapClock

AT_ONCE = Config(retry_deadline_s=0.0)


class CountingLog:
    """A log that counts its calls and fails from the `dies_at`th on, before or after its effect."""

    def __init__(self, log: Consensus) -> None:
        self._log = log
        self.calls = 0
        self.dies_at: int | None = None
        self.has_effect = False

    @property
    def url(self) -> str:
        return self._log.url

    async def head(self) -> int:
        return await self._call(self._log.head)

    async def append(self, seqno: int, entry: bytes) -> bool:
        return await self._call(lambda: self._log.append(seqno, entry))

    async def read(self, start: int, limit: int) -> list[bytes]:
        return await self._call(lambda: self._log.read(start, limit))

    async def note(self, seqno: int) -> None:
        # Beside the calls that somebody waits for: not counted, but gone with the storage.
        if self.dies_at is not None and self.calls >= self.dies_at:
            raise Indeterminate("the storage is gone")
        await self._log.note(seqno)

    async def noted(self) -> int:
        return await self._call(self._log.noted)

    async def truncate(self, below: int) -> None:
        await self._call(lambda: self._log.truncate(below))

    async def close(self) -> None:
        await self._log.close()

    async def _call(self, call: Callable):  # type: ignore[no-untyped-def,type-arg]
        self.calls += 1
        dead = self.dies_at is not None and self.calls >= self.dies_at
        if dead and not (self.has_effect and self.calls == self.dies_at):
            raise Indeterminate("the storage is gone")
        answer = await call()
        if dead:
            raise Indeterminate("the answer was lost")
        return answer


@dataclass
class World:
    """Oracles of one kind on one timeline, and their clock."""

    kind: str
    url: str
    clock: LeapClock = field(default_factory=LeapClock)

    def __post_init__(self) -> None:
        self.runtime = Runtime.start(self.clock)
        self.logs: list[CountingLog] = []

    @property
    def durable(self) -> bool:
        return self.kind != "memory"

    def log(self) -> CountingLog:
        self.logs.append(CountingLog(open_consensus(self.url)))
        return self.logs[-1]

    def open(self, *, alone: bool = True, config: Config = AT_ONCE) -> TimestampOracle:
        if not self.durable:
            return MemoryOracle(self.clock)
        return ReservedOracle.open(self.runtime, self.log(), alone=alone, config=config)

    def stop(self) -> None:
        for log in self.logs:
            self.runtime.submit(log.close()).result(10)
        self.runtime.stop()


_names = itertools.count()
KINDS = ("memory", "reserved in memory", "reserved in files")


def world_of(kind: str, folder: Path) -> World:
    number = next(_names)
    return World(kind, f"memory:oracle-{number}" if "files" not in kind else f"{folder}/{number}")


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = world_of(request.param, tmp_path)
    yield world
    world.stop()


@pytest.fixture(params=KINDS[1:])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = world_of(request.param, tmp_path)
    yield world
    world.stop()


class Witness:
    """Everything that was ever answered; each new answer is held against the laws."""

    def __init__(self) -> None:
        self.written = 0
        self.read = 0
        self.applied = 0

    def write(self, oracle: TimestampOracle) -> int:
        time = oracle.write_ts()
        assert time > max(self.written, self.read, self.applied)
        self.written = time
        return time

    def look(self, oracle: TimestampOracle) -> int:
        time = oracle.read_ts()
        assert time >= max(self.read, self.applied)
        self.read = time
        return time

    def apply(self, oracle: TimestampOracle, time: int) -> None:
        oracle.apply_write(time)
        self.applied = max(self.applied, time)


STEPS = st.lists(
    st.one_of(
        st.just(("write",)),
        st.just(("look",)),
        st.tuples(st.just("apply"), st.sampled_from([-5, 0, 0, 0, 3, 2_500])),
        st.tuples(st.just("wall"), st.sampled_from([-(10**6), -700, 1, 40, 1_500, 10**6])),
        st.tuples(st.just("run"), st.sampled_from([0.01, 0.5, 3.0])),
        st.just(("close",)),
        st.just(("crash",)),
        st.just(("take over",)),
    ),
    max_size=40,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_the_laws_hold_for_any_clock_and_any_history(
    kind: str, steps: list[tuple], tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = world_of(kind, tmp_path_factory.getbasetemp() / "oracle")
    try:
        witness, oracle = Witness(), world.open()
        for step, *rest in steps:
            if step == "write":
                witness.write(oracle)
            elif step == "look":
                witness.look(oracle)
            elif step == "apply":
                witness.apply(oracle, max(0, witness.written + rest[0]))
            elif step == "wall":
                world.clock.wall_ms = max(1, world.clock.wall_ms + rest[0])
            elif step == "run":
                world.clock.running_s += rest[0]
            elif world.durable:
                if step == "close":
                    oracle.close()
                oracle = world.open(alone=step != "take over")
        witness.write(oracle)
        witness.look(oracle)
    finally:
        world.stop()


def test_times_are_wall_time_while_the_clock_behaves(world: World) -> None:
    oracle = world.open()
    for _ in range(20):
        world.clock.wall_ms += 7
        assert oracle.write_ts() == world.clock.wall_ms


def test_a_clock_that_stands_still_or_goes_back_is_gone_on_from(world: World) -> None:
    oracle = world.open()
    first = oracle.write_ts()
    assert [oracle.write_ts() for _ in range(5)] == [first + n for n in range(1, 6)]
    world.clock.wall_ms -= 500_000
    assert oracle.write_ts() == first + 6
    world.clock.wall_ms += 10_000_000
    assert oracle.write_ts() == world.clock.wall_ms


def test_reads_follow_what_was_applied(world: World) -> None:
    oracle = world.open()
    before = oracle.read_ts()
    time = oracle.write_ts()
    assert oracle.read_ts() == before, "a write that is not durable yet is not to be read"
    oracle.apply_write(time)
    assert oracle.read_ts() == time
    oracle.apply_write(time - 1)
    assert oracle.read_ts() == time
    oracle.apply_write(time + 10**6)
    assert oracle.read_ts() == time + 10**6
    assert oracle.write_ts() > time + 10**6


def test_reads_and_writes_inside_a_range_cost_no_storage(durable: World) -> None:
    oracle = durable.open()
    log = durable.logs[-1]
    oracle.apply_write(oracle.write_ts())
    calls = log.calls
    for _ in range(RANGE_MS // 2):
        oracle.read_ts()
        oracle.apply_write(oracle.write_ts())
    assert log.calls == calls
    durable.clock.running_s += LIFE_S
    for _ in range(100):
        oracle.read_ts()
    assert log.calls == calls + 1, "one append serves a whole life"


@pytest.fixture
def short_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncation after a few reservations instead of a few hundred."""
    monkeypatch.setattr(reserved, "_TRUNCATE_EVERY", 16)


@pytest.mark.usefixtures("short_log")
def test_the_log_stays_short(durable: World) -> None:
    oracle = durable.open()
    for _ in range(20):
        durable.clock.running_s += LIFE_S
        oracle.read_ts()
    log = durable.log()
    with pytest.raises(MissingObject):
        durable.runtime.submit(log.read(1, 1)).result(10)
    witness = Witness()
    witness.written = oracle.write_ts()
    witness.write(durable.open())


def test_after_a_clean_close_the_next_owner_need_not_wait(durable: World) -> None:
    oracle = durable.open(alone=False)
    last = oracle.write_ts()
    oracle.close()
    oracle.close()
    for call in (oracle.write_ts, oracle.read_ts, lambda: oracle.apply_write(last + 5)):
        with pytest.raises(Stopped):
            call()
    assert durable.open(alone=False).write_ts() == last + 1
    assert durable.clock.sleeps == []


def test_the_old_owner_is_silent_before_the_new_one_speaks(durable: World) -> None:
    old = durable.open()
    witness = Witness()
    witness.write(old)
    witness.apply(old, witness.written)
    witness.look(old)
    new = durable.open(alone=False)
    assert durable.clock.sleeps == [pytest.approx(LIFE_S, rel=0.2)]
    assert durable.clock.sleeps[0] > LIFE_S
    for call in (old.write_ts, old.read_ts, lambda: old.apply_write(10**9)):
        with pytest.raises(Fenced):
            call()
    witness.look(new)
    witness.write(new)
    old.close()  # in vain, and no error
    witness.write(new)


@pytest.mark.usefixtures("short_log")
def test_an_owner_that_slept_through_a_truncation_is_fenced(durable: World) -> None:
    old = durable.open()
    new = durable.open()
    for _ in range(20):
        durable.clock.running_s += LIFE_S
        new.read_ts()
    with pytest.raises(Fenced):
        old.write_ts()


@pytest.mark.parametrize("has_effect", [False, True], ids=["lost before", "lost after"])
def test_a_crash_between_any_two_calls_of_storage(durable: World, has_effect: bool) -> None:
    witness = Witness()
    for calls in range(1, 12):
        log = durable.log()
        log.dies_at, log.has_effect = calls, has_effect
        try:
            oracle = ReservedOracle.open(durable.runtime, log, alone=True, config=AT_ONCE)
            for _ in range(4):
                durable.clock.running_s += LIFE_S
                witness.apply(oracle, witness.write(oracle))
                witness.look(oracle)
            oracle.close()
        except StorageError:
            pass  # it died; the next one goes on
    survivor = durable.open()
    witness.look(survivor)
    witness.write(survivor)


def test_an_answer_that_never_came_does_not_fence_its_own_owner(durable: World) -> None:
    oracle = durable.open()
    witness = Witness()
    witness.write(oracle)
    log = durable.logs[-1]
    log.dies_at, log.has_effect = log.calls + 1, True
    durable.clock.wall_ms += 10 * RANGE_MS
    with pytest.raises(StorageError):
        oracle.write_ts()
    log.dies_at = None
    witness.write(oracle)
    witness.apply(oracle, witness.written)
    witness.look(oracle)


def test_a_range_whose_answer_was_lost_is_not_taken_for_a_new_one(durable: World) -> None:
    old, witness = durable.open(), Witness()
    witness.write(old)
    log = durable.logs[-1]
    log.dies_at, log.has_effect = log.calls + 1, True
    durable.clock.running_s += LIFE_S  # and the wall clock stands still
    with pytest.raises(StorageError):
        old.write_ts()
    log.dies_at = None
    new = durable.open(alone=False)
    witness.write(new)
    with pytest.raises(Fenced):
        old.write_ts()


def test_two_processes_alternate_and_take_over(tmp_path: Path) -> None:
    """If one call ended before another began, in whatever process, it gave less."""
    command = [sys.executable, oracle_process.__file__, str(tmp_path)]
    with subprocess.Popen([*command, "60"], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline()
        second = subprocess.run([*command, "0.5"], capture_output=True, text=True, check=True)
        first_lines = first.stdout.read().splitlines()  # it ends, because it was fenced
    assert first.returncode == 3
    third = subprocess.run([*command, "0.3"], capture_output=True, text=True, check=True)
    lines = [*first_lines, *second.stdout.splitlines(), *third.stdout.splitlines()]
    calls = sorted(tuple(map(float, line.split())) for line in lines)
    assert min(len(second.stdout.splitlines()), len(third.stdout.splitlines())) > 0
    ends = sorted((after, time) for _, after, time in calls)
    done = largest = 0
    for before, _, time in calls:
        while done < len(ends) and ends[done][0] < before:
            largest = max(largest, ends[done][1])
            done += 1
        assert time > largest
    assert SYSTEM.now_ms() + 10 * RANGE_MS > largest
