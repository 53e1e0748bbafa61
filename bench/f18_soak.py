"""F18: an ordinary load for an hour, at two rates: does it stay as it was in its first minute?

20,000 auctions, then bids by COPY, a piece every 0.1 s, into a table under three materialized
views: sums per seller over a join, an average of maxima over a join, a top 10. Each rate has a
server of its own. A SUBSCRIBE of each view says when a bid is seen in an answer; its age is the
time since the COPY that brought it was begun. Memory is sampled of every process of the server.
In the end AUDIT compares each view with its definition.

    python -m bench.f18_soak --seconds 300 --rates 3000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from bench.f10_point_select import noonmark
from bench.measure import end_what_was_started
from bench.nexmark.answers import Answers, now
from bench.nexmark.engine_noonmark import VIEWS, follow
from bench.nexmark.events import Events
from bench.nexmark.judge import latencies, read_answers
from bench.nexmark.running import memory_of
from bench.steady import children, family_of

RATES = (3_000, 10_000)
PIECES_A_SECOND, MINUTE_S, SAMPLE_S, LATE_S = 10, 60.0, 5.0, 60.0
PYTHON_BYTES_MAX, RATIO_MAX = 2 << 30, 2.0
COUNTED = ("sellers", "categories")


@dataclass
class Soaked:
    """What a rate came to: the p99 of ages by minute, and bytes by kind of process by moment."""

    rate: int
    ages_s: list[float] = field(default_factory=list)
    bytes: list[dict[str, int]] = field(default_factory=list)
    differences: int = 0
    written: int = 0

    @property
    def ratio(self) -> float:
        """The ages of the last minute against those of the first."""
        return self.ages_s[-1] / self.ages_s[0]

    @property
    def python_bytes(self) -> int:
        """The most that all Python processes had together."""
        return max((each.get("python", 0) for each in self.bytes), default=0)

    def __str__(self) -> str:
        ages = " ".join(f"{age:.2f}" for age in self.ages_s)
        held = "; ".join(
            f"{kind} {first / 1e9:.2f} GB at first, {last / 1e9:.2f} in the end, {most / 1e9:.2f} "
            "at most"
            for kind, first, last, most in self._held()
        )
        return (
            f"{self.rate:,} rows/s: {self.written:,} rows; age p99 by minute {ages} s, "
            f"last / first {self.ratio:.2f}; {held}; AUDIT: {self.differences} differences"
        )

    def _held(self) -> Iterator[tuple[str, int, int, int]]:
        for kind in sorted({kind for each in self.bytes for kind in each}):
            values = [each.get(kind, 0) for each in self.bytes]
            yield kind, values[0], values[-1], max(values)


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3_600, help="of each rate")
    parser.add_argument("--rates", default=",".join(map(str, RATES)), help="rows a second")
    chosen = parser.parse_args(list(argv))
    end_what_was_started()
    soaked = []
    for rate in map(int, chosen.rates.split(",")):
        soaked.append(soak(rate, chosen.seconds, chosen.seed))
        print(soaked[-1], flush=True)
    worst = max(each.ratio for each in soaked)
    print(f"{worst:.2f}")
    return {
        "title": "age p99 of the last minute against the first, three views under a steady load",
        "value": worst,
        "unit": "x",
        "goal": "<= 2; Python processes <= 2 GB; 0 differences by AUDIT",
        "met": worst <= RATIO_MAX
        and all(each.python_bytes <= PYTHON_BYTES_MAX for each in soaked)
        and not any(each.differences for each in soaked),
        "measures": {
            f"{each.rate:,} rows/s, Python GB": each.python_bytes / 1e9 for each in soaked
        },
        "note": "; ".join(map(str, soaked)),
    }


def soak(rate: int, seconds: float, seed: int) -> Soaked:
    """One server under one rate."""
    events, found = Events(seed), Soaked(rate)
    before = children()
    with (
        tempfile.TemporaryDirectory() as folder,
        noonmark() as url,
        psycopg.connect(url, autocommit=True) as sql,
    ):
        (server,) = children() - before
        _make(sql, events)
        place = Path(folder, "answers")
        answers = Answers(place)
        for view in VIEWS:
            threading.Thread(target=follow, args=(url, view, answers), daemon=True).start()
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(server, over, found))
        watcher.start()
        try:
            sent = _write(sql, events, rate, seconds)
            found.written = int(sent[-1, 1])
            _wait(place, found.written, over)
        finally:
            over.set()
            watcher.join()
        found.ages_s = _ages(place, sent)
        for view in VIEWS:
            found.differences += len(sql.execute(f"audit materialized view {view}").fetchall())
    return found


def _make(sql: psycopg.Connection[Any], events: Events) -> None:
    sql.execute("create table auctions (id bigint primary key, seller bigint, category bigint)")
    sql.execute("create table bids (id bigint, auction bigint, price bigint)")
    with sql.cursor() as cursor, cursor.copy("copy auctions from stdin") as copy:
        for at, (seller, category) in enumerate(
            zip(events.sellers.tolist(), events.categories.tolist(), strict=True)
        ):
            copy.write_row((at, seller, category))
    for view, text in VIEWS.items():
        sql.execute(f"create materialized view {view} as {text}")


def _write(sql: psycopg.Connection[Any], events: Events, rate: int, seconds: float) -> Any:
    """COPY at a rate; returns when each piece was begun, and how many rows there were then."""
    lines, piece = events.lines(), rate // PIECES_A_SECOND
    steps, pause, began = [], threading.Event(), now()
    for at in range(int(seconds * PIECES_A_SECOND)):
        pause.wait(max(0.0, began + at / PIECES_A_SECOND - now()))
        # When it was due: a piece that waits for the one before it is as old as it is.
        steps.append((began + at / PIECES_A_SECOND, (at + 1) * piece))
        with sql.cursor() as cursor, cursor.copy("copy bids from stdin") as copy:
            copy.write("".join(islice(lines, piece)))
    return np.array(steps)


def _wait(place: Path, total: int, pause: threading.Event) -> None:
    """Until the views count all rows."""
    until = now() + LATE_S
    while now() < until:
        counted = {each.view: each.n for each in read_answers(place)}
        if all(counted.get(view) == total for view in COUNTED):
            return
        pause.wait(1)


def _ages(place: Path, sent: Any) -> list[float]:
    """The p99 of the ages, minute by minute: the worst of the views."""
    answers = read_answers(place)
    pieces = PIECES_A_SECOND * MINUTE_S
    minutes = np.array_split(np.arange(len(sent)), max(1, round(len(sent) / pieces)))
    by_view = [
        latencies([each for each in answers if each.view == view], sent, 0.0) for view in COUNTED
    ]
    first = int(sent[0, 1])
    found = []
    for minute in minutes:
        low, high = (int(sent[at, 1]) - first for at in (minute[0], minute[-1]))
        found.append(max(float(np.quantile(ages[low:high], 0.99)) for ages in by_view))
    return found


def _watch(server: int, over: threading.Event, found: Soaked) -> None:
    """Bytes by kind of process, now and then."""
    while not over.wait(SAMPLE_S):
        kinds: dict[str, int] = defaultdict(int)
        for pid in family_of(server):
            try:
                name = Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:
                continue  # it has just ended
            kind = "JVM" if "java" in name else "server" if pid == server else "workers"
            kinds[kind] += (held := memory_of({pid}))
            if kind != "JVM":
                kinds["python"] += held
        found.bytes.append(dict(kinds))


if __name__ == "__main__":
    main(sys.argv[1:])
