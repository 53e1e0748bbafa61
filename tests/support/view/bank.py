"""Money moved between accounts while the server is killed: every published answer is of one time.

Transfers are written in transactions; views follow them: credits and debits by account, the balance
of each (a join of two aggregates), the total of all (an aggregate over that join), and a left join
of the transfers with themselves. Whatever is published of them must be the view of the transfers at
that time: the total is never anything but 0, no transfer is ever without itself, and every balance
is the sum of what is there.
"""

from __future__ import annotations

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from support.serve.process import Server, serving

ACCOUNTS = 10
#: All of the history is judged in the end, however long the run took.
KEEPS = "with (retain history for '1 day')"
VIEWS = {
    "credits": "select to_account as account, sum(amount) as credits from transfers group by 1",
    "debits": "select from_account as account, sum(amount) as debits from transfers group by 1",
    "balance": "select account, credits - debits as balance "
    "from credits join debits using (account)",
    "total": "select sum(balance) as total from balance",
    "itself": "select t.id, s.id as same from transfers t left join transfers s on t.id = s.id",
}

History = dict[int, Counter[tuple[Any, ...]]]


@dataclass
class Bank:
    """One run: so many transfers, so many kills."""

    folder: Path
    seed: int
    transfers: int
    kills: int
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    outputs: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        """Write, be killed, write on; then look at all that was published, at every time."""
        self._random = random.Random(self.seed)
        self._next = ACCOUNTS
        for life in range(self.kills + 1):
            with serving(self.folder) as server:
                if life == 0:
                    self._create(server)
                last = life == self.kills
                share = (self.transfers + ACCOUNTS - self._next) // (self.kills + 1 - life)
                self._live(server, self._next + share, last)
                if last:
                    self._judge(server)
                else:
                    self.counts["kill -9"] += 1

    def _create(self, server: Server) -> None:
        with server.connect() as connection:
            columns = "id int, from_account int, to_account int, amount int"
            connection.execute(f"create table transfers ({columns}) {KEEPS}".encode())
            # A ring: from the first time on every account has a credit and a debit.
            for each in range(ACCOUNTS):
                row = (each, each, (each + 1) % ACCOUNTS, 1)
                connection.execute("insert into transfers values (%s, %s, %s, %s)", row)
            for name, sql in VIEWS.items():
                connection.execute(f"create materialized view {name} {KEEPS} as {sql}".encode())

    def _live(self, server: Server, up_to: int, last: bool) -> None:
        """Write until enough is written, or, unless this is the last life, until somebody kills."""
        writer = threading.Thread(target=self._write, args=(server, up_to))
        writer.start()
        if not last:
            # From before Spark has started to the midst of ticks.
            writer.join(self._random.uniform(0.5, 20))
            server.process.kill()
        writer.join()

    def _write(self, server: Server, up_to: int) -> None:
        try:
            with server.connect() as connection:
                while self._next < up_to:
                    with connection.transaction():
                        for _ in range(self._random.choice((1, 1, 2, 5))):
                            self._transfer(connection)
        except psycopg.OperationalError:
            return  # killed; whether the last transaction is there does not matter here

    def _transfer(self, connection: psycopg.Connection) -> None:
        one, other = self._random.sample(range(ACCOUNTS), 2)
        kind = self._random.random()
        number, self._next = self._next, self._next + 1
        if kind < 0.1:
            victim = self._random.randrange(ACCOUNTS, number + 1)
            connection.execute("delete from transfers where id = %s", (victim,))
        else:
            row = (number, one, other, self._random.randrange(1, 100))
            connection.execute("insert into transfers values (%s, %s, %s, %s)", row)
        self.counts["transfer"] += 1

    # -- the verdict ------------------------------------------------------------------------

    def _judge(self, server: Server) -> None:
        with server.connect() as connection:
            connection.execute("select * from total, itself limit 1")  # all are there by now
            bounds = connection.execute(
                "select max(since), min(upper) from noonmark.frontiers where name = any(%s)",
                (["transfers", *VIEWS],),
            ).fetchone()
            assert bounds is not None
            first, end = bounds
            found = {n: _history(connection, n, first, end) for n in ("transfers", *VIEWS)}
            for name in VIEWS:
                rows = connection.execute(f"audit materialized view {name}".encode()).fetchall()
                if rows:
                    self.violations.append(f"{name} differs from its definition: {rows[:3]}")
        self._check(found)

    def _check(self, found: dict[str, History]) -> None:
        times = sorted({time for history in found.values() for time in history})
        now: dict[str, Counter[tuple[Any, ...]]] = defaultdict(Counter)
        for time in times:
            for name, history in found.items():
                now[name].update(history.get(time, {}))
            expected = meaning(+now["transfers"])
            for name in VIEWS:
                self.outputs[name] += time in found[name]
                if +now[name] != expected[name] or any(c < 0 for c in now[name].values()):
                    self.wrong[name] += 1
                    self.violations.append(
                        f"{name} at {time} is {dict(+now[name])!r:.300}, "
                        f"should be {dict(expected[name])!r:.300}"
                    )
        self.counts["time"] = len(times)
        self.counts["output"] = self.outputs.total()


def _history(connection: psycopg.Connection, name: str, first: int, end: int) -> History:
    history: History = defaultdict(Counter)
    for time, diff, *row in _subscribed(connection, name, first, end):
        history[int(time)][tuple(row)] += diff
    return history


def _subscribed(
    connection: psycopg.Connection, name: str, first: int, end: int
) -> Iterator[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        yield from cursor.stream(f"subscribe {name} as of {first} up to {end}".encode())


def meaning(transfers: Counter[tuple[Any, ...]]) -> dict[str, Counter[tuple[Any, ...]]]:
    """What the views are, of these transfers."""
    credits, debits = Counter[int](), Counter[int]()
    for (_, one, other, amount), count in transfers.items():
        credits[other] += amount * count
        debits[one] += amount * count
    balance = {each: credits[each] - debits[each] for each in credits.keys() & debits.keys()}
    total = sum(balance.values()) if balance else None
    return {
        "credits": Counter(credits.items()),
        "debits": Counter(debits.items()),
        "balance": Counter(balance.items()),
        "total": Counter({(total,): 1}),
        "itself": Counter({(row[0], row[0]): count for row, count in transfers.items()}),
    }
