"""The judge of F11: of which input an answer is, and when each bid was seen in one.

A state of the input is how many bids of each partition are in it. An answer is right when it is
the view of some state: of all auctions, and of the first bids of each partition. The judge has the
events, and nothing of any engine.

    sellers      the print of a state is the sum of the prints of its two parts, so all states of
                 n bids are compared with the answer's at once
    categories   the same by the counts; then the averages of what is left are computed
    top          ten bids are the best of some state when they are the best of the least state
                 that holds them: any larger one has the same better bids, or more
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.nexmark.answers import mixed
from bench.nexmark.events import CATEGORIES, PARTITIONS, SELLERS, Events, Longs

Prints = npt.NDArray[np.uint64]
_WINDOW, _CANDIDATES_MAX = 4_096, 64
assert PARTITIONS == 2, "a state is a pair"


@dataclass(frozen=True)
class Answer:
    """What an engine published, and when."""

    view: str
    t: float
    n: int = 0
    print: int = 0
    rows: tuple[tuple[Any, ...], ...] = ()


def read_answers(place: Path) -> list[Answer]:
    """All that an engine has published so far."""
    found = []
    for line in place.read_text().splitlines() if place.exists() else ():
        try:
            said = json.loads(line)
        except ValueError:
            break  # it is being written
        rows = tuple(tuple(row) for row in said.pop("rows", ()))
        found.append(Answer(rows=rows, **said))
    return found


class Judge:
    """What is right over the first `total` bids of a seed."""

    def __init__(self, seed: int, total: int) -> None:
        self._events = Events(seed)
        self._auctions, self._prices = self._events.columns(total)
        self._maxima = _Maxima(self._auctions, self._prices)

    def is_right(self, answer: Answer) -> bool:
        """Whether it is the answer of some input."""
        if answer.view == "top":
            return self._is_top(answer.rows)
        if answer.view == "sellers":
            return bool(len(_states(self._sellers, answer)))
        states = _states(self._categories, answer)[:_CANDIDATES_MAX]
        return any(self._is_average(state, answer.rows) for state in states.tolist())

    @cached_property
    def _sellers(self) -> tuple[Prints, Prints]:
        once, per_price = (_prints(SELLERS, salt) for salt in (1, 2))
        sellers = self._events.sellers[self._auctions]
        return _sums(once[sellers] + per_price[sellers] * self._prices.astype(np.uint64))

    @cached_property
    def _categories(self) -> tuple[Prints, Prints]:
        categories = self._events.categories[self._auctions]
        return _sums(_prints(CATEGORIES, 3)[categories])

    def _is_average(self, state: tuple[int, int], rows: Iterable[tuple[Any, ...]]) -> bool:
        best, counts = self._maxima.at(*state)
        has = counts > 0
        category = self._events.categories
        sums = np.bincount(category[has], best[has], CATEGORIES)
        auctions = np.bincount(category[has], minlength=CATEGORIES)
        bids = np.bincount(category, counts, CATEGORIES)
        expected = {at for at in range(CATEGORIES) if auctions[at]}
        return expected == {row[0] for row in rows} and all(
            times == 1 and bids[at] == count and abs(sums[at] / auctions[at] - average) < 1e-4
            for at, average, count, times in rows
        )

    def _is_top(self, rows: Sequence[tuple[Any, ...]]) -> bool:
        numbers = [row[0] for row in rows]
        if len(rows) != 10 or any(
            times != 1 or number >= len(self._prices) or self._prices[number] != price
            for number, price, times in rows
        ):
            return False
        last = min((price, -number) for number, price, _ in rows)
        better = 0
        for part in range(PARTITIONS):
            held = [number for number in numbers if number % PARTITIONS == part]
            prices = self._prices[part : max(held, default=-1) + 1 : PARTITIONS]
            ids = part + PARTITIONS * np.arange(len(prices))
            better += int(((prices > last[0]) | ((prices == last[0]) & (ids < -last[1]))).sum())
        return better == len(rows) - 1


class _Maxima:
    """The best price and the number of bids of every auction, for states that mostly grow."""

    def __init__(self, auctions: Longs, prices: Longs) -> None:
        self._auctions, self._prices = auctions, prices
        self._size = int(auctions.max(initial=0)) + 1
        self._had = (0, 0)
        self._best, self._count = self._none()

    def _none(self) -> tuple[Longs, Longs]:
        size = max(self._size, len(Events(0).categories))
        return np.zeros(size, np.int64), np.zeros(size, np.int64)

    def at(self, *state: int) -> tuple[Longs, Longs]:
        """Of the first bids of each partition."""
        if any(now < had for now, had in zip(state, self._had, strict=True)):
            self._had = (0, 0)
            self._best, self._count = self._none()
        for part, (had, now) in enumerate(zip(self._had, state, strict=True)):
            come = slice(part + PARTITIONS * had, part + PARTITIONS * now, PARTITIONS)
            np.maximum.at(self._best, self._auctions[come], self._prices[come])
            np.add.at(self._count, self._auctions[come], 1)
        self._had = (state[0], state[1])
        return self._best, self._count


def _prints(size: int, salt: int) -> Prints:
    return np.array([mixed(at, salt) for at in range(size)], np.uint64)


def _sums(each: Prints) -> tuple[Prints, Prints]:
    """The print of the first k bids of each partition, for every k."""
    parts = [np.cumsum(each[part::PARTITIONS], dtype=np.uint64) for part in range(PARTITIONS)]
    zero = np.zeros(1, np.uint64)
    return np.concatenate([zero, parts[0]]), np.concatenate([zero, parts[1]])


def _states(sums: tuple[Prints, Prints], answer: Answer) -> Longs:
    """The states of as many bids as the answer counts that have its print: pairs."""
    n, wanted = answer.n, np.uint64(answer.print)
    low, high = max(0, n - len(sums[1]) + 1), min(n, len(sums[0]) - 1)
    near = max(low, n // 2 - _WINDOW), min(high, n // 2 + _WINDOW)
    for first, last in (near, (low, high)):
        if last < first:
            continue
        other = sums[1][n - last : n - first + 1][::-1]
        found = first + np.flatnonzero(sums[0][first : last + 1] + other == wanted)
        if len(found):
            return np.stack([found, n - found], axis=1)
    return np.zeros((0, 2), np.int64)


def latencies(answers: Sequence[Answer], sent: npt.NDArray[np.float64], skip_s: float) -> Any:
    """Seconds from the sending of each bid to the first answer that counts it; inf if none does.

    `sent` has the moments and how many bids had been sent at each of them, as the producer saw it.
    """
    moments, counts = sent[:, 0], sent[:, 1].astype(np.int64)
    first = int(counts[np.searchsorted(moments, moments[0] + skip_s)])
    bids = np.arange(first, int(counts[-1]))
    sending = moments[np.searchsorted(counts, bids, side="right")]
    seen = np.array([each.t for each in answers] + [np.inf])
    most = np.maximum.accumulate(np.array([each.n for each in answers] + [np.iinfo(np.int64).max]))
    return seen[np.searchsorted(most, bids, side="right")] - sending
