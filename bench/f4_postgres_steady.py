"""F4 under steady load: a PostgreSQL writer of 5,000 transactions a second for five minutes.

A transaction moves money to an account (an update by primary key) and notes that (an insert); both
tables are keyed, so every update looks up what its key had before. The writer is a procedure in the
server itself: that is the cheapest there is, and what it takes of the two cores is shown. In the
end both tables must be equal to upstream's.

The figure is the rate that was written while ingestion kept up (``bench/steady.py``).
"""

from __future__ import annotations

import argparse
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
from bench.steady import Outcome, cpu_seconds, follow, parent_of
from noonmark.clock import SYSTEM
from noonmark.compute.session import spark_session, stop_session
from noonmark.ingest import Ingestion
from noonmark.ingest_feed import postgres
from noonmark.source.impl.postgres import Postgres, create

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.servers import _folder, start_postgres

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
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=5_000)
    parser.add_argument("--seconds", type=float, default=300)
    chosen = parser.parse_args(list(argv))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(start_postgres(stack.enter_context(_folder("pg")))).dsn
        bench = Bench(folder, spark_session("local[2]"))
        stack.callback(stop_session)
        control = stack.enter_context(psycopg.connect(url, autocommit=True))
        control.execute(UPSTREAM.encode())
        source = asyncio.run(create(url, "bank", "bench"))
        stack.callback(source.close)
        ingestion = stack.enter_context(bench.ingestion(source, postgres(source), SYSTEM))
        ingestion.tick()
        load = Load(url, chosen.rate, chosen.seconds, chosen.seed % 1000 / 1000)
        outcome = run(load, ingestion)
        check(control, ingestion, source)
    return shown(load, outcome, chosen.rate)


class Load:
    """The writer, and what everybody has spent while it wrote."""

    def __init__(self, url: str, rate: float, seconds: float, seed: float) -> None:
        self._url, self._work, self._seed = url, (rate, seconds), seed
        self.transactions = int(rate * seconds)
        self.seconds = 0.0
        self.cores: dict[str, float] = {}
        self.thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("select setseed(%s)", (self._seed,))
            backend = connection.info.backend_pid
            server = parent_of(backend)
            before = self._spent(backend, server)
            began = SYSTEM.monotonic()
            connection.execute("call work(%s, %s)", self._work)
            self.seconds = SYSTEM.monotonic() - began
            after = self._spent(backend, server)
        self.cores = {name: (after[name] - before[name]) / self.seconds for name in after}

    def _spent(self, backend: int, server: int) -> dict[str, float]:
        writer, whole = cpu_seconds(backend), cpu_seconds(server)
        return {
            "writer": writer,
            "rest of PostgreSQL": whole - writer,
            "noonmark": cpu_seconds(os.getpid()) - whole,
        }


def run(load: Load, ingestion: Ingestion) -> Outcome:
    """Write, and follow."""
    load.thread.start()
    outcome = follow(ingestion, lambda: not load.thread.is_alive())
    load.thread.join()
    return outcome


def check(control: Any, ingestion: Ingestion, source: Postgres) -> None:
    """What was ingested is what upstream has."""
    for target, table in zip(ingestion.outputs, source.tables, strict=True):
        now = target.read.upper.only()
        assert now is not None
        found = target.read.snapshot(now - 1).result().to_arrow()
        diffs, cents = (found.column(name).to_numpy() for name in ("_diff", "cents"))
        theirs = control.execute(f"{SUMS} {table.name}").fetchone()
        assert (int(diffs.sum()), int((diffs * cents).sum())) == (theirs[0], int(theirs[1]))


def shown(load: Load, outcome: Outcome, rate: float) -> dict[str, Any]:
    """The figure."""
    written = load.transactions / load.seconds
    value = written if outcome.keeps_up else outcome.rows / 3 / outcome.seconds
    spent = ", ".join(f"{name} {cores:.2f}" for name, cores in load.cores.items())
    print(f"cores: {spent}")
    print(f"age p50 {outcome.age_p50_s:.1f} s, max {outcome.age_max_s:.1f} s")
    print(f"{value:,.0f}")
    return {
        "title": "PostgreSQL changes under a steady writer, transactions/s that are kept up with",
        "value": value,
        "unit": "transactions/s",
        "goal": f">= {rate:,.0f} without falling behind",
        "met": outcome.keeps_up and written >= 0.99 * rate,
        "measures": {
            "age p50 s": outcome.age_p50_s,
            "age max s": outcome.age_max_s,
            **{f"{name}, cores": cores for name, cores in load.cores.items()},
        },
        "note": f"{load.transactions:,} transactions of an update and an insert in "
        f"{load.seconds:.0f} s, {len(outcome.ages_s)} ticks; cores: {spent}; both tables equal "
        "to upstream's in the end",
    }


if __name__ == "__main__":
    main(sys.argv[1:])
