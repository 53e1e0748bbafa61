"""Figure C16: at every position that was bound, the collections are what upstream's tables were.

A process ingests four tables while `support.ingest.exact_upstream` writes to them; it, its sessions
and the server are killed again and again. In the end every binding is judged: the state that
upstream's own history gives for the position, against the sum of what was ingested up to the
binding's time.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pyarrow as pa

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.persist.read.plan import Query
from noonmark.source.impl.postgres import create
from support.house.proving import Advance
from support.ingest.exact_upstream import RATE, TABLES, ExactUpstream
from support.ingest.logical_ingest import contents
from support.ingest.world import Violation
from support.kill.kills import Lines, running

_COLUMNS_MAX = 20
_VIOLATIONS_MAX = 5
#: At so many bindings, chosen at random, the collections are also read as a user reads them.
_READ = 20

#: A process is killed after so many ticks at the most.
_LIFE_MAX = 24
#: The writers are ahead of the reader by so many bindings at the most.
_AHEAD = 5

Row = tuple[Any, ...]


@dataclass
class ExactRun:
    """One folder, one server, one source.

    Attributes:
        transactions: how many must have been committed upstream before it ends.
        bindings: and how many ticks must have been done.
        server_kills: how often the server is killed on the way.
        rate: transactions a second.
    """

    folder: Path
    seed: int
    transactions: int
    bindings: int
    server_kills: int
    rate: float = RATE
    judged: int = 0
    ticks: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = Random(f"exact/{self.seed}")
        self.folder.mkdir(parents=True, exist_ok=True)
        server = self.folder / "server"
        server.mkdir()
        self._per_binding = max(1, self.transactions // self.bindings)
        ahead = _AHEAD * self._per_binding
        self.upstream = ExactUpstream(server, self.seed, self.rate, ahead)
        self.faults = self.upstream.faults
        self._calm_until = 0
        self._tick_s, self._last_tick = self._per_binding / self.rate, SYSTEM.monotonic()

    def close(self) -> None:
        self.upstream.close()

    def run(self, advance: Advance = lambda _=1: None) -> list[str]:
        """All of it; what was found wrong."""
        upstream = self.upstream
        source = asyncio.run(create(upstream.url, "p", "exact"))
        source.close()  # the snapshot goes with it: the first process takes another, under load
        known = {"url": upstream.url, "source": source.to_plain()}
        (self.folder / "source.json").write_text(json.dumps(known))
        upstream.writers.start()
        try:
            while len(upstream.commits) < self.transactions or self.ticks < self.bindings:
                before = len(upstream.commits)
                self._round()
                advance(len(upstream.commits) - before)
            upstream.writers.stop()
            # One tick reads what is owed, then all that the writers have left.
            with running("ingest.exact_process", self.folder, 1) as (child, _):
                if child.wait(600) != 0:
                    raise Violation(f"the last process ended with status {child.returncode}")
            return self._judge()
        except Violation as violation:
            return [str(violation)]

    # -- faults -----------------------------------------------------------------------------

    def _round(self) -> None:
        """One process, killed in the middle of its work."""
        with running("ingest.exact_process", self.folder) as (child, lines):
            if not self._hear(lines, 300, "r"):
                raise Violation(f"a process did not start: status {child.poll()}")
            self._last_tick = SYSTEM.monotonic()
            is_early = self._random.random() < 0.2
            longest = min(_LIFE_MAX, max(6, self.bindings // 2))
            life = 0 if is_early else self._random.randint(2, longest)
            end, deadline = self.ticks + life, SYSTEM.monotonic() + self._random.uniform(0, 1.5)
            while self.ticks < end or SYSTEM.monotonic() < deadline:
                self._hear(lines, self._random.uniform(0.1, 1.0), "")
                if child.poll() is not None:
                    raise Violation(f"a process ended with status {child.returncode}")
                self._disturb()
                self.upstream.scan()
            child.kill()
            child.wait()
            while self._hear(lines, 1, "t"):
                continue
        self.faults["kill -9 of Noonmark"] += 1

    def _disturb(self) -> None:
        """A fault, now and then; between two of them some ticks are done."""
        if self.ticks < self._calm_until:
            return
        upstream, kind = self.upstream, self._random.random()
        done = self.faults["kill -9 of PostgreSQL"]
        due = (done + 1) * self.transactions // (self.server_kills + 1)
        try:
            if done < self.server_kills and len(upstream.commits) >= due:
                upstream.kill_server()
            elif kind < 0.15:
                upstream.end_sessions()
            elif kind < 0.25 and self.faults["column added"] < _COLUMNS_MAX:
                upstream.add_column(self.faults["column added"])
            else:
                return
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            pass  # the writers were quicker
        self._calm_until = self.ticks + self._random.randint(1, 5)

    def _hear(self, lines: Lines, seconds: float, until: str) -> bool:
        """Count the ticks that the process tells of, for so long or to a certain line."""
        deadline = SYSTEM.monotonic() + seconds
        while not lines.ended and (left := deadline - SYSTEM.monotonic()) > 0:
            line = lines.read(left)
            if line == "t":
                self._ticked()
            if line == until:
                return True
        return False

    def _ticked(self) -> None:
        self.ticks += 1
        before, self._last_tick = self._last_tick, SYSTEM.monotonic()
        self._tick_s += 0.2 * (self._last_tick - before - self._tick_s)
        self.upstream.writers.follow(
            self.ticks * self._per_binding, self._per_binding / max(self._tick_s, 1e-3)
        )

    # -- the judgement ----------------------------------------------------------------------

    def _judge(self) -> list[str]:
        found: list[str] = []
        options = persist.Options(mode="independent")
        with persist.open(self.folder / "location", options=options) as client:
            if errors := contents(client, "pg_errors"):
                found.append(f"errors: {list(errors)[:3]}")
            bindings = self._settled(client)
            chosen = set(self._random.sample(range(len(bindings)), min(_READ, len(bindings))))
            pairs = {table: _Pair() for table in TABLES}
            ours = [_Integral(client, table, pair) for table, pair in pairs.items()]
            theirs = _History(self.upstream, pairs)
            for number, (time, position) in enumerate(bindings):
                theirs.advance(position)
                for each in ours:
                    each.advance(time)
                for table, pair in pairs.items():
                    if number in chosen and pair.ours != contents(client, table, time):
                        found.append(f"{table} as of {time} is not the sum of its updates")
                    if pair.lost:
                        where = f"{table} at {time} ({position:#x})"
                        lost, more = (+pair.lost).total(), (-pair.lost).total()
                        found.append(f"{where}: lost {lost}, too much {more}")
                self.judged += 1
                if len(found) >= _VIOLATIONS_MAX:
                    break
        return found

    def _settled(self, client: persist.Client) -> list[tuple[int, int]]:
        """Every binding, once both sides are known up to it.

        A binding is durable before its rows are: of a process that was killed between, the last one
        says nothing yet. Nor does a history that has not been read as far.
        """
        bindings = list(_bindings(client))
        if not bindings:
            raise Violation("nothing was bound")
        time, position = bindings[-1]
        self.upstream.scan()
        if self.upstream.scanned_to < position:
            raise Violation(f"upstream's log was read to {self.upstream.scanned_to:#x} only")
        for table in TABLES:
            _, read = client.create_or_load(table)
            if read.upper.less_equal(time):
                raise Violation(f"{table} is complete before {read.upper}: {time} was bound")
        return bindings


def _bindings(client: persist.Client) -> Iterator[tuple[int, int]]:
    """(time, position) for every binding of the log."""
    for row in _updates(client, "pg_remap").to_pylist():
        if row["partition"] == "0" and row["_diff"] > 0:
            yield row["_time"], row["offset"] - 1


def _updates(client: persist.Client, name: str) -> pa.Table:
    """All updates of a collection, by time."""
    _, read = client.create_or_load(name)
    since, upper = read.since.only() or 0, read.upper.only() or 1
    plan = client.reader.plan(client.state.names[name], Query(upper - 1, after=since))

    async def tables() -> list[pa.Table]:
        return [table async for table in client.reader.contents(plan)]

    found = client.runtime.submit(tables()).result()
    # A short run may end before anybody writes to a table.
    columns = {each: pa.array([], pa.int64()) for each in ("id", "n", "w", "_time", "_diff")}
    return pa.concat_tables(found).sort_by("_time") if found else pa.table(columns)


class _Pair:
    """One table as both sides have it, and what ours lacks of theirs (negative: has too much)."""

    def __init__(self) -> None:
        self.ours: Counter[Row] = Counter()
        self.theirs: Counter[Row] = Counter()
        self.lost: Counter[Row] = Counter()

    def add(self, side: Counter[Row], row: Row, diff: int) -> None:
        _add(side, row, diff)
        _add(self.lost, row, diff if side is self.theirs else -diff)

    def clear_theirs(self) -> None:
        for row, count in list(self.theirs.items()):
            self.add(self.theirs, row, -count)


def _add(rows: Counter[Row], row: Row, diff: int) -> None:
    rows[row] += diff
    if not rows[row]:
        del rows[row]


class _Integral:
    """Puts a collection's updates into our side, time after time."""

    def __init__(self, client: persist.Client, name: str, pair: _Pair) -> None:
        table = _updates(client, name)
        self._times = table.column("_time").to_pylist()
        self._diffs = table.column("_diff").to_pylist()
        self._table = table.select(["id", "n", "w"])
        self._done = 0
        self._pair = pair

    def advance(self, time: int) -> None:
        end = bisect_right(self._times, time, self._done)
        part = self._table.slice(self._done, end - self._done)
        columns = [part.column(name).to_pylist() for name in part.column_names]
        diffs = self._diffs[self._done : end]
        for row, diff in zip(zip(*columns, strict=True), diffs, strict=True):
            self._pair.add(self._pair.ours, row, diff)
        self._done = end


class _History:
    """Puts what upstream's tables were into their side, position after position."""

    def __init__(self, upstream: ExactUpstream, pairs: dict[str, _Pair]) -> None:
        self._pairs = pairs
        self._changes = upstream.changes()
        self._next = next(self._changes, None)

    def advance(self, position: int) -> None:
        while self._next is not None and self._next[0] <= position:
            _, table, kind, *images = self._next
            pair = self._pairs[table]
            if kind == "T":
                pair.clear_theirs()
            if kind in "UD":
                pair.add(pair.theirs, tuple(images[:3]), -1)
            if kind in "IU":
                pair.add(pair.theirs, tuple(images[3:]), 1)
            self._next = next(self._changes, None)
