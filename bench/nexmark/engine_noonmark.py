"""Noonmark as an engine of F11: a server, two sources, three materialized views, three SUBSCRIBEs.

Every answer is published when a progress statement says that it is complete. All defaults; every
time is durable before it is published.
"""

from __future__ import annotations

import argparse
import sys
import threading
from pathlib import Path

import psycopg

from bench.f10_point_select import noonmark
from bench.nexmark.answers import Answers

VIEWS = {
    "sellers": "select a.seller, count(*) as bids, sum(b.price) as total "
    "from bids as b join auctions as a on a.id = b.auction group by a.seller",
    "categories": "select category, avg(final) as average, sum(bids) as bids from ("
    "select a.category, a.id, max(b.price) as final, count(*) as bids "
    "from auctions as a join bids as b on b.auction = a.id group by a.category, a.id"
    ") as each group by category",
    "top": "select id, price from bids order by price desc, id limit 10",
}


def follow(url: str, view: str, answers: Answers) -> None:
    """Fold the changes of a view; publish at every progress statement."""
    put = {"sellers": _seller, "categories": _category, "top": _top}[view]
    changed = False
    statement = f"copy (subscribe {view} with (progress)) to stdout"
    with (
        psycopg.connect(url, autocommit=True) as connection,
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        rest = b""
        for piece in copy:
            *lines, rest = (rest + bytes(piece)).split(b"\n")
            for line in lines:
                _, progressed, diff, *values = line.split(b"\t")
                if progressed == b"t":
                    if changed:
                        answers.publish(view)
                    changed = False
                else:
                    put(answers, values, int(diff))
                    changed = True


def _seller(answers: Answers, values: list[bytes], diff: int) -> None:
    answers.seller(int(values[0]), int(values[1]), int(values[2]), diff)


def _category(answers: Answers, values: list[bytes], diff: int) -> None:
    answers.category(int(values[0]), float(values[1]), int(values[2]), diff)


def _top(answers: Answers, values: list[bytes], diff: int) -> None:
    answers.bid(int(values[0]), int(values[1]), diff)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("suffix")
    parser.add_argument("answers", type=Path)
    chosen = parser.parse_args(argv)
    with noonmark() as url, psycopg.connect(url, autocommit=True) as sql:
        sql.execute(f"create connection kafka to kafka (broker '{chosen.bootstrap}')")
        sql.execute(
            "create source auctions (id bigint not null, item text, seller bigint, category bigint)"
            f" from kafka connection kafka (topic 'auctions{chosen.suffix}') format json"
        )
        sql.execute(
            "create source bids (id bigint not null, auction bigint, bidder bigint, price bigint,"
            f" channel text) from kafka connection kafka (topic 'bids{chosen.suffix}') format json"
        )
        for view, text in VIEWS.items():
            sql.execute(f"create materialized view {view} as {text}")
        answers = Answers(chosen.answers)
        for view in VIEWS:
            threading.Thread(target=follow, args=(url, view, answers), daemon=True).start()
        print("running", flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1:])
