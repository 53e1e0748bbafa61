"""Is a history strictly serializable? Two independent opinions.

A history is what clients saw: operations with the moments at which they were sent and answered.
Values are appended to lists and never removed; each value is appended once.

By times. The server says at which time a read was (mz_now), and a subscription says at which time
each value was written. Then everything can be checked directly:

    fold     a read at t has exactly the values that were written at or before t
    order    an operation that began after another one ended has the same time or a later one;
             a write that began after a read ended has a later one
    whole    all values of one transaction have one time
    kept     what was acknowledged is there; what was refused is not

By dependencies alone, without believing any time (as Elle does for lists): a read that has a value
comes after its append, one that lacks it comes before; an operation that ended before another began
comes before it. A cycle is a violation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass
class Op:
    """One transaction of one client.

    Attributes:
        began: when it was sent, by the client's monotonic clock.
        ended: when its answer came.
        outcome: "ok", "refused" (it certainly did not happen) or "unknown" (the answer was lost).
        appends: (list, value) that it appended.
        reads: what it saw of each list that it read.
        time: the time of its reads, where it asked.
    """

    began: float
    ended: float
    outcome: str
    appends: tuple[tuple[int, int], ...] = ()
    reads: dict[int, frozenset[int]] = field(default_factory=dict)
    time: int | None = None


def violations(ops: Sequence[Op], written: Mapping[int, int]) -> list[str]:
    """Everything that is wrong; `written` has the time of every value that is there."""
    found = [*_kept(ops, written), *_whole(ops, written), *_fold(ops, written)]
    found += _order(ops, written)
    cycle = find_cycle(ops, written)
    return found + ([f"cycle: {cycle}"] if cycle else [])


def _kept(ops: Iterable[Op], written: Mapping[int, int]) -> Iterable[str]:
    for op in ops:
        for _, value in op.appends:
            if op.outcome == "ok" and value not in written:
                yield f"lost: {value} was acknowledged"
            if op.outcome == "refused" and value in written:
                yield f"appeared: {value} was refused"


def _whole(ops: Iterable[Op], written: Mapping[int, int]) -> Iterable[str]:
    for op in ops:
        times = {written.get(value) for _, value in op.appends}
        if len(times) > 1:
            yield f"torn: {op.appends} was written at {sorted(map(str, times))}"


def _fold(ops: Iterable[Op], written: Mapping[int, int]) -> Iterable[str]:
    lists: dict[int, dict[int, int]] = defaultdict(dict)
    for op in ops:
        for key, value in op.appends:
            if value in written:
                lists[key][value] = written[value]
    for op in ops:
        for key, seen in op.reads.items():
            if op.time is None:
                continue
            wanted = {value for value, time in lists[key].items() if time <= op.time}
            if seen != wanted:
                yield (
                    f"fold: list {key} at {op.time} lacks {sorted(wanted - seen)[:5]} "
                    f"and has {sorted(seen - wanted)[:5]} too much"
                )


def _order(ops: Sequence[Op], written: Mapping[int, int]) -> Iterable[str]:
    """Times in real time: the greatest time of all that ended before an operation began."""
    timed = []
    for op in ops:
        times = [written[value] for _, value in op.appends if value in written]
        if op.time is not None:
            times.append(op.time)  # who read and wrote happened when it wrote
        if times and op.outcome == "ok":
            timed.append((op, times[0]))
    ends = sorted(timed, key=lambda each: each[0].ended)
    begins = sorted(timed, key=lambda each: each[0].began)
    at, read, write = 0, -1, -1
    for op, time in begins:
        while at < len(ends) and ends[at][0].ended < op.began:
            before, earlier = ends[at]
            if before.appends:
                write = max(write, earlier)
            else:
                read = max(read, earlier)
            at += 1
        if time < max(read, write):
            yield f"order: {time} began after {max(read, write)} had ended"
        if op.appends and time <= read:
            yield f"order: a write at {time} began after a read at {read} had ended"


def find_cycle(ops: Sequence[Op], written: Mapping[int, int]) -> list[int] | None:
    """A cycle of dependencies, as indices of operations; None when there is none.

    Real time is a chain of moments: an operation comes after the last moment before it began, and
    before the first moment after it ended. So the graph stays small.
    """
    happened = [
        at
        for at, op in enumerate(ops)
        if op.outcome == "ok" or any(value in written for _, value in op.appends)
    ]
    after: dict[int, list[int]] = defaultdict(list)
    writers: dict[int, dict[int, int]] = defaultdict(dict)
    for at in happened:
        for key, value in ops[at].appends:
            writers[key][value] = at
    for at in happened:
        for key, seen in ops[at].reads.items():
            for value, writer in writers[key].items():
                if writer != at:
                    first, second = (writer, at) if value in seen else (at, writer)
                    after[first].append(second)
    moments = sorted({ops[at].ended for at in happened if ops[at].outcome == "ok"})
    base = len(ops)
    places = {moment: base + index for index, moment in enumerate(moments)}
    for earlier, later in pairwise(places.values()):
        after[earlier].append(later)
    _hang(ops, happened, moments, places, after)
    return _cycle(after)


def _hang(
    ops: Sequence[Op],
    happened: Sequence[int],
    moments: Sequence[float],
    places: Mapping[float, int],
    after: dict[int, list[int]],
) -> None:
    by_start = sorted(happened, key=lambda at: ops[at].began)
    last, index = None, 0
    for at in by_start:
        while index < len(moments) and moments[index] < ops[at].began:
            last = moments[index]
            index += 1
        if last is not None:
            after[places[last]].append(at)
    for at in happened:
        if ops[at].outcome == "ok":
            after[at].append(places[ops[at].ended])


def _cycle(after: Mapping[int, Sequence[int]]) -> list[int] | None:
    """Depth first, without recursion: a node that is met again on the way down closes a cycle."""
    state: dict[int, int] = {}
    for root in list(after):
        if root in state:
            continue
        path: list[int] = []
        stack: list[tuple[int, int]] = [(root, 0)]
        while stack:
            node, child = stack.pop()
            if child == 0:
                state[node] = 1
                path.append(node)
            children = after.get(node, ())
            if child == len(children):
                state[node] = 2
                path.pop()
                continue
            stack.append((node, child + 1))
            target = children[child]
            if state.get(target) == 1:
                return path[path.index(target) :]
            if target not in state:
                stack.append((target, 0))
    return None
