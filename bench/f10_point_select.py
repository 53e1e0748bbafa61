"""F10: one row by key from a materialized view over PostgreSQL's protocol, against PostgreSQL.

The same rows, the same client (psycopg, prepared statements), the same machine. Blocks of queries
go to each in turns, from one client for the p50 and from 32 for the rate.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from bench.measure import seed_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.neighbour.servers import start_postgres

ROWS = 100_000
ROUNDS, QUERIES = 9, 500
CLIENTS, RATE_ROUNDS, RATE_SECONDS = 32, 3, 4.0
QUERY = "select id, name, amount from wares where id = %s"


def main(argv: Sequence[str]) -> dict[str, Any]:
    chance = random.Random(seed_of(argv))
    with ExitStack() as stack:
        ours = stack.enter_context(noonmark())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        peer = stack.enter_context(start_postgres(folder)).dsn
        fill(ours, "create materialized view wares as select id, name, amount * 2 as amount "
                   "from stock")  # fmt: skip
        fill(peer, "create table wares as select id, name, amount * 2 as amount from stock; "
                   "alter table wares add primary key (id); analyze wares")  # fmt: skip
        mine, theirs = latencies(ours, peer, chance)
        my_rate, their_rate = rates(ours, peer, chance)
    p50 = statistics.median(m / t for m, t in zip(mine, theirs, strict=True))
    share = my_rate / their_rate
    ours_us, peer_us = (statistics.median(times) * 1e6 for times in (mine, theirs))
    print(f"p50: noonmark {ours_us:.0f} us, PostgreSQL {peer_us:.0f} us: {p50:.2f}x")
    print(f"{CLIENTS} clients: {my_rate:.0f} and {their_rate:.0f} queries/s: {share:.2f}")
    return {
        "title": "point SELECT by key on a materialized view over pgwire, p50, against PostgreSQL",
        "value": p50,
        "unit": "x",
        "goal": "<= 1.5; with 32 clients >= 2 of its queries/s",
        "met": p50 <= 1.5 and share >= 2,
        "measures": {
            "noonmark p50 us": ours_us,
            "PostgreSQL p50 us": peer_us,
            "noonmark queries/s": my_rate,
            "PostgreSQL queries/s": their_rate,
        },
        "note": f"{ROUNDS} rounds of {QUERIES} queries each in turns; {CLIENTS} clients reach "
        f"{share:.2f} of its queries/s; {ROWS} rows",
    }


@contextmanager
def noonmark() -> Iterator[str]:
    """A server with its own data; the URL of its protocol."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as url:
        yield url


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A server with the data of a folder."""
    script = "from noonmark.cli import main; main()"
    command = [sys.executable, "-c", script, "serve", "--data", f"{folder}/data"]
    command += ["--pg", "127.0.0.1:0", "--http", "127.0.0.1:0", "--spark", "local[2]"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready"), (folder / "log").read_text()
        try:
            yield f"postgresql://noonmark@{line.split()[1].removeprefix('pg=')}/noonmark"
        finally:
            process.terminate()


def fill(url: str, view: str) -> None:
    """The rows, and what is asked for them."""
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("create table stock (id bigint primary key, name text, amount integer)")
        with cursor.copy("copy stock from stdin") as copy:
            for number in range(ROWS):
                copy.write_row((number, f"ware {number}", number % 1_000))
        cursor.execute(view.encode())
        assert cursor.execute("select count(*) from wares").fetchone() == (ROWS,)


def connected(url: str) -> psycopg.Connection[Any]:
    connection = psycopg.connect(url, autocommit=True)
    connection.prepare_threshold = 0
    return connection


def ask(connection: psycopg.Connection[Any], key: int) -> None:
    row = connection.execute(QUERY, [key]).fetchone()
    assert row is not None
    assert row[0] == key


def latencies(ours: str, peer: str, chance: random.Random) -> tuple[list[float], list[float]]:
    """The p50 of each round, in seconds, for us and for the peer."""
    with connected(ours) as my_line, connected(peer) as their_line:
        for key in range(2 * QUERIES):
            ask(my_line, key)
            ask(their_line, key)
        found: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            for line, times in zip((my_line, their_line), found, strict=True):
                times.append(statistics.median(_times(line, chance)))
    return found


def _times(connection: psycopg.Connection[Any], chance: random.Random) -> list[float]:
    times = []
    for _ in range(QUERIES):
        key = chance.randrange(ROWS)
        start = time.perf_counter()
        ask(connection, key)
        times.append(time.perf_counter() - start)
    return times


def rates(ours: str, peer: str, chance: random.Random) -> tuple[float, float]:
    """Queries per second of many clients, the median of some rounds of each."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(RATE_ROUNDS):
        for url, measured in zip((ours, peer), found, strict=True):
            measured.append(_rate(url, chance.random()))
    return statistics.median(found[0]), statistics.median(found[1])


def _rate(url: str, seed: float) -> float:
    counts = [0] * CLIENTS
    begin, end = threading.Barrier(CLIENTS + 1), threading.Event()

    def client(number: int) -> None:
        chance = random.Random(seed + number)
        with connected(url) as connection:
            ask(connection, number)
            begin.wait()
            while not end.is_set():
                ask(connection, chance.randrange(ROWS))
                counts[number] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    begin.wait()
    start = time.perf_counter()
    end.wait(RATE_SECONDS)
    end.set()
    seconds = time.perf_counter() - start
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


if __name__ == "__main__":
    main(sys.argv[1:])
