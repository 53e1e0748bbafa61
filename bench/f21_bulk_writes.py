"""F21: many rows written by one statement, against PostgreSQL; and COPY of a table to the client.

The same statements over the same protocol by the same client, one server after the other, in
turns; the tables are made anew in each round. After a round both have the same rows. The note says
whether PostgreSQL waits for the disk (`fsync`), as Noonmark does.

    --rows N      rows of the first table     (200,000)
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg

from bench.f10_point_select import noonmark

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.neighbour.servers import start_postgres

ROUNDS = 3
PIECE_BYTES = 1 << 16
COLUMNS = "id bigint primary key, v text, n int, p numeric(10,2)"
MADE = (f"create table t ({COLUMNS})", f"create table k ({COLUMNS})")
GONE = ("drop table if exists t", "drop table if exists k", "drop table if exists c")
STATEMENTS = {
    "COPY, with a key": "copy t from stdin",
    "CREATE TABLE AS": "create table c as select * from t",
    "INSERT ... SELECT": "insert into c select id + 10000000, v, n, p from t",
    "INSERT ... SELECT, with a key": "insert into k select * from t",
    "INSERT ... SELECT, filtered": "insert into k select id + 10000000, v, n + 1, p from t "
    "where n < 500",
    "UPDATE of all": "update t set n = n + 1",
    "DELETE of half": "delete from t where n % 2 = 0",
    "COPY to the client": "copy (select * from k) to stdout",
}
SUMS = "select count(*), sum(id), sum(n), sum(p), min(v), max(v) from {}"


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=200_000)
    chosen = parser.parse_args(list(argv))
    text = "".join(
        f"{n}\tware {n}\t{n * chosen.seed % 1_000}\t{n * 7 % 100_000 / 100}\n"
        for n in range(chosen.rows)
    )
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in STATEMENTS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        urls = stack.enter_context(noonmark()), stack.enter_context(start_postgres(folder)).dsn
        lines = [stack.enter_context(psycopg.connect(url, autocommit=True)) for url in urls]
        fsync = lines[1].execute("show fsync").fetchone()
        for _ in range(ROUNDS):
            rows = []
            for place, line in enumerate(lines):
                for sql in (*GONE, *MADE):
                    line.execute(sql.encode())
                for name, sql in STATEMENTS.items():
                    found[name][place].append(_seconds(line, sql, text.encode()))
                rows.append([line.execute(SUMS.format(each).encode()).fetchone() for each in "tkc"])
            assert rows[0] == rows[1], "both wrote the same"
    ratios = {}
    for name, (mine, theirs) in found.items():
        ours, peer = statistics.median(mine), statistics.median(theirs)
        ratios[name] = ours / peer
        print(f"{name:30} noonmark {ours:6.2f} s  PostgreSQL {peer:6.2f} s  {ours / peer:6.2f}x")
    slowest = max(ratios.values())
    inserts = max(ratios[name] for name in STATEMENTS if "INSERT" in name or "CREATE" in name)
    print(f"{slowest:.1f}")
    return {
        "title": f"{chosen.rows} rows by one statement: the slowest against PostgreSQL",
        "value": slowest,
        "unit": "x",
        "goal": "COPY <= 2; INSERT ... SELECT and CREATE TABLE AS <= 4",
        "met": ratios["COPY, with a key"] <= 2 and inserts <= 4,
        "measures": {f"{name} / PostgreSQL": ratio for name, ratio in ratios.items()},
        "note": f"medians of {ROUNDS} rounds in turns; PostgreSQL's fsync: {fsync}",
    }


def _seconds(line: psycopg.Connection[Any], sql: str, text: bytes) -> float:
    began = time.perf_counter()
    if sql.startswith("copy"):
        with line.cursor() as cursor, cursor.copy(sql.encode()) as copy:
            if sql.endswith("stdin"):
                for at in range(0, len(text), PIECE_BYTES):
                    copy.write(text[at : at + PIECE_BYTES])
            else:
                for _ in copy:
                    pass
    else:
        line.execute(sql.encode())
    return time.perf_counter() - began


if __name__ == "__main__":
    main(sys.argv[1:])
