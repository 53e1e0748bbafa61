"""Updates: a collection that varies with time, written as its changes.

A collection C gives a multiset C(t) at every time t. Its updates are triples (data, time, diff),
and they mean

    C(t)[data]  =  the sum of diff over the updates (data, time, diff) with time <= t

so `integrate` reads a collection from updates, and `differentiate` writes updates from a
collection. Data is any hashable value; multiplicities are integers of either sign.

Law (inverse): integrate(differentiate(history), t) is history's multiset at t, for each t in it.
Law (linear): integrate(u + v, t) = integrate(u, t) + integrate(v, t).
Law (consolidate): the same C(t) at every t; one update for each (data, time); no diff is 0; and
consolidating again changes nothing.
Law (advance): the same C(t) at every t in since, and no promise at any other time. Updates that no
time in since can tell apart come out at one time, so that consolidation can cancel them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from noonmark.tvc.frontier import Antichain
from noonmark.tvc.order import T, sort_key

D = TypeVar("D", bound=Hashable)


class Update(NamedTuple, Generic[D, T]):
    """From `time` on, `data` is present `diff` times more."""

    data: D
    time: T
    diff: int


def consolidate(updates: Iterable[Update[D, T]]) -> list[Update[D, T]]:
    """The same collection in the fewest updates, sorted by time (stable in the data)."""
    totals: dict[tuple[D, T], int] = {}
    for data, time, diff in updates:
        totals[data, time] = totals.get((data, time), 0) + diff
    kept = [Update(data, time, diff) for (data, time), diff in totals.items() if diff]
    return sorted(kept, key=lambda update: sort_key(update.time))


def advance(updates: Iterable[Update[D, T]], since: Antichain[T]) -> list[Update[D, T]]:
    """The same collection for all times in `since`; history before it may be forgotten.

    An update that no time in `since` can see is left out: with an empty `since`, all are.
    """
    advanced = []
    for data, time, diff in updates:
        representative = since.advance(time)
        if representative is not None:
            advanced.append(Update(data, representative, diff))
    return advanced


def integrate(updates: Iterable[Update[D, T]], time: T) -> dict[D, int]:
    """The multiset at `time`: data to multiplicity, without zeros."""
    counts: dict[D, int] = {}
    for update in updates:
        if update.time <= time:
            _add(counts, update.data, update.diff)
    return counts


def differentiate(history: Iterable[tuple[T, dict[D, int]]]) -> list[Update[D, T]]:
    """The updates of a collection that has these multisets at these (distinct) times.

    The update at a time is what its multiset has beyond the sum of all updates before it:
    D(t) = C(t) - sum of D(s) over s < t. In a total order that sum is simply the multiset before.
    Between the given times the collection does not change; in a partial order the join of two
    given times should be given too, or else the changes of both add up there.
    """
    updates: list[Update[D, T]] = []
    before: dict[D, int] = {}
    for time, counts in sorted(history, key=lambda entry: sort_key(entry[0])):
        known = before if isinstance(time, int) else integrate(updates, time)
        updates += [
            Update(data, time, diff)
            for data in {**known, **counts}
            if (diff := counts.get(data, 0) - known.get(data, 0))
        ]
        before = counts
    return updates


def _add(counts: dict[D, int], data: D, diff: int) -> None:
    total = counts.get(data, 0) + diff
    if total:
        counts[data] = total
    else:
        counts.pop(data, None)
