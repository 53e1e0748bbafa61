"""F9: from an acknowledged INSERT to a strict serializable SELECT that shows it, through a view.

The view joins two tables and aggregates; the SELECT is sent when the INSERT is answered, and its
answer must have the row. The peer is an empty job of two stages in a Spark session of the same kind
(``local[2]``), its plan made anew each time as a tick's is.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import psycopg

from bench.f10_point_select import noonmark
from bench.measure import seed_of, timed
from noonmark.compute.jvm.session import for_ticks, spark_session, stop_session

ROWS = 10_000
GROUPS = 100
WARM_UP, ROUNDS = 10, 60


def main(argv: Sequence[str]) -> dict[str, Any]:
    seed = seed_of(argv)
    spark = for_ticks(spark_session("local[2]"))

    def empty_job() -> None:
        spark.range(100).groupBy("id").count().agg({"count": "sum"}).toArrow()

    with noonmark() as url, psycopg.connect(url, autocommit=True) as connection:
        prepare(connection, seed)
        mine, theirs = [], []
        for at in range(WARM_UP + ROUNDS):
            spent = visible(connection, at)
            peer = timed(empty_job)
            if at >= WARM_UP:
                mine.append(spent)
                theirs.append(peer)
    stop_session()
    base = statistics.median(theirs)
    p50 = statistics.median(mine) / base
    p99 = sorted(mine)[int(0.99 * (len(mine) - 1))] / base
    print(f"noonmark p50 {statistics.median(mine) * 1e3:.0f} ms, empty job {base * 1e3:.0f} ms")
    print(f"p99 {p99:.1f}x")
    print(f"{p50:.2f}")
    return {
        "title": "INSERT acknowledged -> seen in a strict SELECT of a join + aggregate view",
        "value": p50,
        "unit": "x",
        "goal": "p50 <= 0.15x, p99 <= 0.5x of an empty Spark job of two stages",
        "met": p50 <= 0.15 and p99 <= 0.5,
        "measures": {"p50 ms": statistics.median(mine) * 1e3, "empty job ms": base * 1e3},
        "note": f"{ROUNDS} rounds after {WARM_UP}; p99 {p99:.1f}x; {ROWS} rows, {GROUPS} groups",
    }


def prepare(connection: psycopg.Connection, seed: int) -> None:
    """Two tables, a view over their join, hydrated."""
    connection.execute("create table orders (id int, customer int, amount int)")
    connection.execute("create table customers (id int primary key, area int)")
    with connection.cursor() as cursor:
        with cursor.copy("copy customers from stdin") as copy:
            for at in range(ROWS // 10):
                copy.write_row((at, (at + seed) % GROUPS))
        with cursor.copy("copy orders from stdin") as copy:
            for at in range(ROWS):
                copy.write_row((at, at % (ROWS // 10), at % 7))
    connection.execute(
        "create materialized view areas as select area, count(*) as orders, sum(amount) as amount "
        "from orders join customers on customers.id = orders.customer group by area"
    )
    found = connection.execute("select sum(orders) from areas").fetchone()
    assert found is not None
    assert found[0] == ROWS


def visible(connection: psycopg.Connection, at: int) -> float:
    """Seconds from the answer of an INSERT to an answer of the view that has it."""
    connection.execute("insert into orders values (%s, %s, 1)", (ROWS + at, at % 50))

    def ask() -> None:
        found = connection.execute("select sum(orders) from areas").fetchone()
        assert found is not None
        assert found[0] == ROWS + at + 1

    return timed(ask)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
