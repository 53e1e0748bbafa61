"""What an engine publishes: three answers, folded from its changes, written down as they come.

Every engine gives the changes of its three results. They are folded here, in the same way for all,
and whenever the engine says that a result is complete (the end of a transaction, of a time, of a
batch; with an engine that says no such thing, of what had come when nothing more was there to take)
the answer is written down with the moment at which it was had:

    sellers      how many bids it counts, and a print of all of its rows
    categories   the same, and its rows
    top          its rows

The print is linear: the sum over all rows of their print, so that of the bids that made them. An
answer that no input gives has (but for one chance in 2**64) the print of none.

Plain Python: it runs in the environment of every engine.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

MASK = (1 << 64) - 1


def now() -> float:
    """The wall time: producer and engines are processes of one machine."""
    return time.time()  # noqa: TID251 - peers do not have noonmark.clock


def mixed(number: int, salt: int) -> int:
    """A number of 64 bits for a small one: splitmix64."""
    z = (number + salt * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Answers:
    """The three results of one engine, as they are published."""

    def __init__(self, place: Path) -> None:
        self._out: TextIO = place.open("w")
        self._mutex = threading.Lock()
        self._count = {"sellers": 0, "categories": 0}
        self._print = {"sellers": 0, "categories": 0}
        self._rows: dict[str, Counter[tuple[Any, ...]]] = {
            "categories": Counter(),
            "top": Counter(),
        }

    def seller(self, seller: int, bids: int, total: int, diff: int) -> None:
        """A row of sellers comes (1) or goes (-1)."""
        self._count["sellers"] += diff * bids
        self._print["sellers"] += diff * (mixed(seller, 1) * bids + mixed(seller, 2) * total)

    def category(self, category: int, average: float, bids: int, diff: int) -> None:
        """A row of categories."""
        self._count["categories"] += diff * bids
        self._print["categories"] += diff * mixed(category, 3) * bids
        self._put("categories", (category, round(float(average), 6), bids), diff)

    def bid(self, number: int, price: int, diff: int) -> None:
        """A row of the top 10."""
        self._put("top", (number, price), diff)

    def _put(self, view: str, row: tuple[Any, ...], diff: int) -> None:
        rows = self._rows[view]
        rows[row] += diff
        if not rows[row]:
            del rows[row]

    def publish(self, view: str) -> None:
        """What the view says now is an answer."""
        said: dict[str, Any] = {"view": view, "t": now()}
        if view in self._count:
            said |= {"n": self._count[view], "print": self._print[view] & MASK}
        if view in self._rows:
            said["rows"] = [[*row, times] for row, times in self._rows[view].items()]
        with self._mutex:
            self._out.write(json.dumps(said) + "\n")
            self._out.flush()

    def close(self) -> None:
        """No more comes."""
        self._out.close()
