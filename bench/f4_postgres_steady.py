"""F4 under steady load: a PostgreSQL writer of 5,000 transactions a second for five minutes.

A transaction moves money to an account (an update by primary key) and notes that (an insert); both
tables are keyed, so every update looks up what its key had before. The writer is a procedure in the
server itself: that is the cheapest there is. What a transaction costs everybody is shown. In the
end both tables must be equal to upstream's.

The figure is the rate that was written while ingestion kept up (``bench/steady.py``).
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg

from bench.f4_ingestion import Bench
from bench.steady import Load, Outcome, cpu_seconds, figure, follow, options, parent_of
from noonmark.clock import SYSTEM
from noonmark.compute.jvm.session import spark_session, stop_session
from noonmark.ingest.feed import postgres
from noonmark.ingest.ingestion import Ingestion
from noonmark.source.impl.postgres import Postgres, create

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.neighbour.upstreams import one_postgres

ACCOUNTS = 100_000
UPSTREAM = f"""
create table accounts (id bigint primary key, cents bigint not null, note text);
create table moves (id bigint primary key, account bigint not null, cents bigint not null);
insert into accounts select i, 0, 'account ' || i from generate_series(1, {ACCOUNTS}) i;
create publication bank for table accounts, moves;
create procedure work(rate float, seconds float) language plpgsql as $$
declare
    began timestamptz := clock_timestamp();
    account bigint;
    ahead float;
begin
    for i in 1 .. (rate * seconds)::bigint loop
        account := 1 + floor(random() * {ACCOUNTS});
        update accounts set cents = cents + i % 100, note = 'move ' || i where id = account;
        insert into moves values (i, account, i % 100);
        commit;
        if i % 50 = 0 then
            ahead := i / rate - extract(epoch from clock_timestamp() - began);
            if ahead > 0.01 then
                perform pg_sleep(ahead);
            end if;
        end if;
    end loop;
end $$;
"""
SUMS = "select count(*), sum(cents) from "


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, rate=5_000, seconds=300)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(one_postgres()).dsn
        bench = Bench(folder, spark_session("local[2]"))
        stack.callback(stop_session)
        control = stack.enter_context(psycopg.connect(url, autocommit=True))
        control.execute(UPSTREAM.encode())
        source = asyncio.run(create(url, "bank", "bench"))
        stack.callback(source.close)
        ingestion = stack.enter_context(bench.ingestion(source, postgres(source), SYSTEM))
        ingestion.tick()
        writer = Writer(url, chosen.rate, chosen.seconds, chosen.seed % 1000 / 1000)
        outcome, load = written(writer, control, ingestion)
        check(control, ingestion, source)
    title = "PostgreSQL changes under a steady writer"
    return figure(title, load, outcome, chosen.rate, "both tables equal to upstream's in the end")


class Writer(threading.Thread):
    """Runs the procedure, and knows then how long that took and what it spent."""

    def __init__(self, url: str, rate: int, seconds: int, seed: float) -> None:
        super().__init__()
        self._url, self._work, self._seed = url, (float(rate), float(seconds)), seed
        self.transactions = rate * seconds
        self.seconds = self.cpu_s = 0.0

    def run(self) -> None:
        """The thread."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("select setseed(%s)", (self._seed,))
            began = SYSTEM.monotonic()
            connection.execute("call work(%s, %s)", self._work)
            self.seconds = SYSTEM.monotonic() - began
            self.cpu_s = cpu_seconds(connection.info.backend_pid)


def written(writer: Writer, control: Any, ingestion: Ingestion) -> tuple[Outcome, Load]:
    """Write, and follow: what that came to, and what everybody spent."""
    server = parent_of(control.info.backend_pid)
    ours, whole = cpu_seconds(os.getpid()), cpu_seconds(server)
    writer.start()
    outcome = follow(ingestion, lambda: not writer.is_alive())
    writer.join()
    ours, whole = cpu_seconds(os.getpid()) - ours, cpu_seconds(server) - whole
    rest = {"rest of PostgreSQL": whole - writer.cpu_s, "noonmark": ours - whole}
    spent = {"writer": writer.cpu_s, **rest}
    return outcome, Load("transaction", writer.transactions, writer.seconds, spent)


def check(control: Any, ingestion: Ingestion, source: Postgres) -> None:
    """What was ingested is what upstream has."""
    for target, table in zip(ingestion.outputs, source.tables, strict=True):
        now = target.read.upper.only()
        assert now is not None
        found = target.read.snapshot(now - 1).result().to_arrow()
        diffs, cents = (found.column(name).to_numpy() for name in ("_diff", "cents"))
        theirs = control.execute(f"{SUMS} {table.name}").fetchone()
        assert (int(diffs.sum()), int((diffs * cents).sum())) == (theirs[0], int(theirs[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
