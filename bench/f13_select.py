"""F13: interactive SELECTs over many rows, warm, against PostgreSQL and DuckDB on the same rows.

Noonmark and PostgreSQL are asked over the same protocol by the same client, in turns; DuckDB in
this process. All three must give the same answer.

    --rows N      bids; auctions are a tenth of them     (1,000,000)
"""

from __future__ import annotations

import argparse
import io
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from bench.f10_point_select import noonmark
from bench.measure import timed

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.neighbour.servers import start_postgres

ROUNDS = 9
BLOCK = 100_000
TABLES = (
    "create table auctions (id integer primary key, category integer, seller integer)",
    "create table bids (id integer, auction integer, bidder integer, price numeric(12,2), "
    "channel text, placed timestamp)",
)
QUERIES = {
    "count": "select count(*) from bids",
    "filter": "select count(*), sum(price) from bids where price > 900 and channel = 'web3'",
    "group": "select channel, count(*), sum(price), max(price) from bids group by channel "
    "order by channel",
    "many groups": "select bidder, count(*) from bids group by bidder order by 2 desc, 1 limit 5",
    "top 10": "select id, price from bids order by price desc, id limit 10",
    "join": "select a.category, sum(b.price) from bids b join auctions a on a.id = b.auction "
    "group by a.category order by a.category",
    "distinct": "select count(distinct bidder) from bids",
    "by day": "select date_trunc('day', placed), count(*) from bids group by 1 order by 1",
}


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1_000_000)
    chosen = parser.parse_args(list(argv))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ours = stack.enter_context(psycopg.connect(
            stack.enter_context(noonmark()), autocommit=True))  # fmt: skip
        peer = stack.enter_context(psycopg.connect(
            stack.enter_context(start_postgres(folder)).dsn, autocommit=True))  # fmt: skip
        duck = stack.enter_context(duckdb.connect())
        fill(chosen.rows, chosen.seed, (ours, peer), duck, folder)
        found = {name: compared(sql, ours, peer, duck) for name, sql in QUERIES.items()}
    measures: dict[str, float] = {}
    for name, (mine, theirs, embedded) in found.items():
        print(
            f"{name:12} noonmark {mine:7.1f} ms  PostgreSQL {theirs:7.1f}  DuckDB {embedded:7.1f}"
        )
        measures |= {f"{name} ms": mine, f"{name} / PostgreSQL": mine / theirs}
        measures[f"{name} / DuckDB"] = mine / embedded
    slowest = max(mine / theirs for mine, theirs, _ in found.values())
    to_duck = max(mine / embedded for mine, _, embedded in found.values())
    return {
        "title": f"interactive SELECT over {chosen.rows} rows: the slowest against PostgreSQL",
        "value": slowest,
        "unit": "x",
        "goal": "< 1 on each; <= 4x DuckDB",
        "met": slowest < 1 and to_duck <= 4,
        "measures": measures,
        "note": f"medians of {ROUNDS} rounds in turns; at most {to_duck:.1f}x DuckDB in process",
    }


def fill(
    rows: int,
    seed: int,
    lines: Sequence[psycopg.Connection[Any]],
    duck: duckdb.DuckDBPyConnection,
    folder: Path,
) -> None:
    """The same rows everywhere."""
    chance = random.Random(seed)
    auctions = max(1, rows // 10)
    for line in lines:
        for table in TABLES:
            line.execute(table.encode())
    for table in TABLES:
        duck.execute(table)
    text = "".join(f"{n},{n % 20},{n % 997}\n" for n in range(auctions))
    _copy("auctions", text, lines, duck, folder)
    for start in range(0, rows, BLOCK):
        block = io.StringIO()
        for number in range(start, min(start + BLOCK, rows)):
            auction, bidder = chance.randrange(auctions), chance.randrange(50_000)
            price, second = chance.randrange(100_000), number % 86_400
            block.write(
                f"{number},{auction},{bidder},{price / 100:.2f},web{number % 10},"
                f"2026-01-{1 + number % 28:02} {second // 3600:02}:{second // 60 % 60:02}:"
                f"{second % 60:02}\n"
            )
        _copy("bids", block.getvalue(), lines, duck, folder)
    lines[1].execute("vacuum analyze")


def _copy(
    table: str,
    text: str,
    lines: Sequence[psycopg.Connection[Any]],
    duck: duckdb.DuckDBPyConnection,
    folder: Path,
) -> None:
    for line in lines:
        with line.cursor() as cursor, cursor.copy(f"copy {table} from stdin (format csv)") as copy:
            copy.write(text)
    file = folder / "block.csv"
    file.write_text(text)
    duck.execute(f"copy {table} from '{file}' (format csv, header false)")


def compared(
    sql: str,
    ours: psycopg.Connection[Any],
    peer: psycopg.Connection[Any],
    duck: duckdb.DuckDBPyConnection,
) -> tuple[float, float, float]:
    """The median of each, in milliseconds."""
    asks: list[Callable[[], list[Any]]] = [
        lambda: ours.execute(sql.encode()).fetchall(),
        lambda: peer.execute(sql.encode()).fetchall(),
        lambda: duck.execute(sql).fetchall(),
    ]
    answers = [ask() for ask in asks]
    assert answers[0] == answers[1] == answers[2], sql
    times: list[list[float]] = [[], [], []]
    for _ in range(ROUNDS):
        for ask, found in zip(asks, times, strict=True):
            found.append(timed(ask))
    mine, theirs, embedded = (statistics.median(each) * 1000 for each in times)
    return mine, theirs, embedded


if __name__ == "__main__":
    main(sys.argv[1:])
