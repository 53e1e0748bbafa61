"""Reclocking: from a source's own times to the timeline, through bindings.

Notation. S is the source's order, T the target's; both may be partial. B is a set of bindings
(t, f), with t in T and f a frontier of S. "s is in f" means that s is not complete in f. For a time
t, F(t) is the join of all f with (t', f) in B and t' <= t: what was complete at t' stays complete.
(On the timeline bindings are minted monotone, and F(t) is the last one.)

Definition. An update at source time s belongs to the reclocked collection at t iff s is not in
F(t):

    R(t) = the sum of the updates (data, s, diff) with s not in F(t)

    reclock(s) = the frontier whose set is {t : s is not in F(t)}

Lemma (what to compute). s is in a join of frontiers iff it is in each of them. So s is not in F(t)
iff some binding (t', f) with t' <= t has s not in f. Hence {t : s is not in F(t)} is upward closed,
and reclock(s) is the antichain of the minimal t' among the bindings (t', f) with s not in f.

Theorem (one time). If T is totally ordered, every update gets at most one time: reclock(s) is an
antichain of a total order, and has at most one element. None means: no binding has s complete yet.

Theorem (monotone). If a <= b then reclock(b) is at or beyond reclock(a). If b is not in f, neither
is a, because f's set is upward closed; so each time at which b is complete, a is too. On the
timeline: if b has a time, then a has one, and it is at or before b's.

Theorem (transactions). All updates at one s get equal times, since reclock depends on s alone: what
happened at once upstream is never split.

Theorem (final). More bindings at times in some upper U never change which times not in U are in
reclock(s): they add only t' in U, and what is at or after them. A time once given stays, and data
that is read again through the same bindings gets the same times.

Partial to partial. When T is partial, {t : s is not in F(t)} may have several minimal elements
m1, ..., mk, and an update (data, s, diff) must count once, not k times, where they meet again. So
it is written as the derivative of the indicator of that set: diff at each m, and at the joins of
several of them what corrects the sum back to 1 (for two: -diff at their join). With k = 1, always
so on the timeline, that is the one update (data, m1, diff).

Where it runs: driver and executors. This is the reference; `lookup` must agree with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from noonmark.remap.binding import Binding, Remap, S, T
from noonmark.tvc import Antichain, Update, differentiate, join
from noonmark.tvc.update import D


def reclock(time: S, bindings: Iterable[Binding[S, T]]) -> Antichain[T]:
    """The frontier of the times at which the source time is complete; empty if not yet bound."""
    return Antichain(bound for bound, frontier in bindings if not frontier.less_equal(time))


def reclock_time(time: S, remap: Remap[S]) -> int | None:
    """`reclock` on the timeline: the one time, or None if not yet bound. Logarithmic."""
    bindings = remap.bindings
    # Bindings are monotone: once complete, complete in all that follow.
    index = bisect_left(bindings, True, key=lambda b: not b.frontier.less_equal(time))
    return bindings[index].time if index < len(bindings) else None


def reclock_updates(
    updates: Iterable[Update[D, S]], bindings: Sequence[Binding[S, T]]
) -> list[Update[D, T]]:
    """The reclocked collection. An update that no binding has complete is not in it yet."""
    spread: dict[S, list[tuple[T, int]]] = {}
    reclocked = []
    for data, time, diff in updates:
        if time not in spread:
            spread[time] = _indicator(reclock(time, bindings))
        reclocked += [Update(data, target, diff * count) for target, count in spread[time]]
    return reclocked


def reclock_frontier(
    read: Antichain[S], bindings: Iterable[Binding[S, T]], upper: Antichain[T]
) -> Antichain[T]:
    """The upper of the reclocked collection, when all updates not in `read` are in it.

    A time is complete iff the remap is (it is not in `upper`) and everything that belongs there
    was read: `read` is at or beyond F(t), that is, at or beyond every binding at or before t.
    """
    unread = Antichain(t for t, frontier in bindings if not read.at_or_beyond(frontier))
    return upper.meet(unread)


def _indicator(frontier: Antichain[T]) -> list[tuple[T, int]]:
    """The derivative of "1 for the times in the frontier, else 0"."""
    if len(frontier.elements) < 2:
        return [(time, 1) for time in frontier.elements]
    closed = _close_under_join(frontier.elements)
    return [(time, diff) for _, time, diff in differentiate((t, {None: 1}) for t in closed)]


def _close_under_join(times: Iterable[T]) -> set[T]:
    closed: set[T] = set()
    for time in times:
        joins = (join(time, other) for other in closed)
        closed |= {time, *(joined for joined in joins if joined is not None)}
    return closed
