"""F4 under steady load: a PostgreSQL writer of 5,000 transactions a second for five minutes.

A transaction moves money to an account (an update by primary key) and notes that (an insert); both
tables are keyed, so every update looks up what its key had before. The writer is a procedure in the
server itself: that is the cheapest there is. What a transaction costs everybody is shown. In the
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

ACCOUNTS, CORES = 100_000, 2
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
        outcome = load.run(control, ingestion)
        check(control, ingestion, source)
    return shown(load, outcome, chosen.rate)


class Load:
    """The writer, and what everybody has spent until all of it was ingested."""

    def __init__(self, url: str, rate: float, seconds: float, seed: float) -> None:
        self._url, self._work, self._seed = url, (rate, seconds), seed
        self.transactions = int(rate * seconds)
        self.seconds = 0.0
        self._writer_cpu_s = 0.0
        self.cpu_us: dict[str, float] = {}

    def run(self, control: Any, ingestion: Ingestion) -> Outcome:
        """Write, and follow."""
        server = parent_of(control.info.backend_pid)
        ours, whole = cpu_seconds(os.getpid()), cpu_seconds(server)
        writer = threading.Thread(target=self._write)
        writer.start()
        outcome = follow(ingestion, lambda: not writer.is_alive())
        writer.join()
        ours, whole = cpu_seconds(os.getpid()) - ours, cpu_seconds(server) - whole
        spent = {
            "writer": self._writer_cpu_s,
            "rest of PostgreSQL": whole - self._writer_cpu_s,
            "noonmark": ours - whole,
        }
        self.cpu_us = {name: 1e6 * cpu / self.transactions for name, cpu in spent.items()}
        return outcome

    def _write(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("select setseed(%s)", (self._seed,))
            began = SYSTEM.monotonic()
            connection.execute("call work(%s, %s)", self._work)
            self.seconds = SYSTEM.monotonic() - began
            self._writer_cpu_s = cpu_seconds(connection.info.backend_pid)


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
    value = written if outcome.keeps_up else load.transactions / outcome.seconds
    limit = 1e6 * CORES / sum(load.cpu_us.values())
    spent = ", ".join(f"{name} {each:.0f}" for name, each in load.cpu_us.items())
    print(f"CPU us a transaction: {spent}; {CORES} cores have room for {limit:,.0f} a second")
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
            **{f"{name}, CPU us a transaction": each for name, each in load.cpu_us.items()},
        },
        "note": f"{load.transactions:,} transactions of an update and an insert in "
        f"{load.seconds:.0f} s, {len(outcome.ages_s)} ticks; CPU us a transaction: "
        f"{spent}; both tables equal to upstream's in the end",
    }


if __name__ == "__main__":
    main(sys.argv[1:])
