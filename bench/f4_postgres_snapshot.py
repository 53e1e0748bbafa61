"""F4 with PostgreSQL: the first snapshot of a table against a parallel COPY to Parquet.

The peer is the plain thing: as many workers as Spark has cores, each takes ranges of pages in turn,
COPYs them as CSV under one exported snapshot, reads that with pyarrow in the right types and writes
zstd Parquet. Ours also finds what cannot be read, gives every row its time, sorts, checksums,
fsyncs and commits. Two tables with the same rows: one keyed by its primary key, which is the rule,
and one with whole old rows (REPLICA IDENTITY FULL). The figure is the lower of the two ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from bench.f4_ingestion import Bench
from bench.measure import side_by_side
from noonmark.clock import SYSTEM
from noonmark.compute.jvm.session import spark_session, stop_session
from noonmark.ingest.feed import postgres
from noonmark.source.impl.postgres import create, drop_slot_now

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.neighbour.upstreams import one_postgres

ROUNDS, WORKERS, PAGES = 3, 2, 4096
GOAL = 0.7
IDENTITIES = {"keyed": "default", "whole": "full"}
FILL = """
create table {name} (id bigint primary key, customer bigint, item text, price double precision,
                     placed timestamptz, amount numeric(12, 2));
alter table {name} replica identity {identity};
select setseed({seed});
insert into {name}
select i, (random() * 100000)::int, 'item #' || (random() * 5000)::int,
       (random() * 1e6)::int / 100.0, timestamptz '2026-01-01' + i * interval '1 second',
       (random() * 1e6)::int / 100.0
from generate_series(1, {rows}) i;
analyze {name};
create publication {name} for table {name};
"""
COLUMNS = {
    "id": pa.int64(),
    "customer": pa.int64(),
    "item": pa.string(),
    "price": pa.float64(),
    "placed": pa.timestamp("us", "UTC"),
    "amount": pa.decimal128(12, 2),
}


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args(list(argv))
    rows = chosen.rows
    found = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(one_postgres()).dsn
        bench = Bench(folder, spark_session(f"local[{WORKERS}]"))
        stack.callback(stop_session)
        for name, identity in IDENTITIES.items():
            fill(url, name, identity, rows, chosen.seed)
            found[name] = measured(bench, url, name, rows, chosen.rounds)
    measures = {}
    for name, (mine, theirs, ratio) in found.items():
        measures |= {f"{name} noonmark rows/s": rows / mine, f"{name} COPY rows/s": rows / theirs}
        print(f"{name}: noonmark {rows / mine:,.0f} rows/s, COPY {rows / theirs:,.0f}: {ratio:.2f}")
    value = min(ratio for _, _, ratio in found.values())
    print(f"{value:.2f}")
    return {
        "title": "snapshot of a PostgreSQL table against a parallel COPY to Parquet",
        "value": value,
        "unit": "x",
        "goal": f">= {GOAL} of its rows/s",
        "met": value >= GOAL,
        "measures": measures,
        "note": f"{rows:,} rows, {WORKERS} workers each, median of {chosen.rounds} rounds, "
        f"seed {chosen.seed}; "
        + ", ".join(f"{name} {ratio:.2f}" for name, (_, _, ratio) in found.items()),
    }


def fill(url: str, name: str, identity: str, rows: int, seed: int) -> None:
    """A table of that identity, and its publication."""
    chance = seed % 1000 / 1000
    text = FILL.format(name=name, identity=identity, rows=rows, seed=chance)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(text.encode())
        connection.execute("checkpoint")


def measured(
    bench: Bench, url: str, name: str, rows: int, rounds: int
) -> tuple[float, float, float]:
    """Median seconds of ours and of the peer, and the median of peer / ours."""

    def ours() -> None:
        slot = f"s_{SYSTEM.fresh_id()}"
        source = asyncio.run(create(url, name, slot))
        try:
            with bench.ingestion(source, postgres(source), SYSTEM) as ingestion:
                assert ingestion.tick().rows == rows
        finally:
            source.close()
            drop_slot_now(url, slot)

    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:

        def peer() -> None:
            with bench.fresh() as place:
                place.mkdir()
                assert copy(pool, url, name, place) == rows

        mine, theirs, ratio = side_by_side(ours, peer, rounds)
    return mine, theirs, 1 / ratio


def copy(pool: Pool, url: str, name: str, place: Path) -> int:
    """A table as Parquet, by processes that share one snapshot."""
    with psycopg.connect(url) as connection:
        connection.execute("set transaction isolation level repeatable read")
        sizes = "select pg_export_snapshot(), pg_relation_size(%s::regclass) / 8192"
        found = connection.execute(sizes, (name,)).fetchone()
        assert found is not None
        snapshot, pages = found
        ranges = [(first, first + PAGES) for first in range(0, pages, PAGES)]
        work = [(url, name, place, snapshot, span) for span in ranges]
        return sum(pool.starmap(copy_pages, work, chunksize=1))


def copy_pages(url: str, name: str, place: Path, snapshot: str, span: tuple[int, int]) -> int:
    """Some pages of a table as one file; in a process of its own."""
    first, last = span
    text = (
        f"copy (select * from {name} where ctid >= '({first},0)' and ctid < '({last},0)')"
        " to stdout (format csv)"
    )
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("set transaction isolation level repeatable read")
        cursor.execute(f"set transaction snapshot '{snapshot}'".encode())
        with cursor.copy(text.encode()) as lines:
            data = b"".join(lines)
    table = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        pyarrow.csv.ReadOptions(column_names=list(COLUMNS), use_threads=False),
        convert_options=pyarrow.csv.ConvertOptions(column_types=COLUMNS),
    )
    pyarrow.parquet.write_table(table, place / f"{first}.parquet", compression="zstd")
    return int(table.num_rows)


if __name__ == "__main__":
    main(sys.argv[1:])
