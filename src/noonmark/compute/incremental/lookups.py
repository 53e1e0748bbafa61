"""Inner joins of many inputs, by look-ups whose order is chosen by what they would touch.

Law: ``combinations(old, binding, ...)`` are the combinations of the join that begin with the rows
of the binding, whatever the order in which the other leaves are reached.

The plan suggests an order (`noonmark.compute.plan.multiway.Orders`). A look-up by a key that at
most one row has is done without asking. Any other is counted first, in the index by which it would
be looked up: while it finds few rows it is done, else what the other leaves would give is counted
too, and the one with the fewest is next. So a leaf of which a key has very many rows is reached
last, by all of what is known by then.

Each key is looked up once, however many rows ask for it. What is found is multiplied with those
rows in batches of `PAIRS_MAX`, each filtered by all that can be known by then, and walked to its
end before the next: memory follows the batch and not what is found.

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from noonmark.compute.incremental.binding import Binding, Found
from noonmark.compute.incremental.matching import matching
from noonmark.compute.incremental.range_delta import switched
from noonmark.compute.kernel.updates import Errors, Ints, Rows, empty_rows, group_ids
from noonmark.compute.plan.multiway import Offer, Step, orders
from noonmark.compute.plan.pushdown import can_push_down, is_whole
from noonmark.compute.plan.range_delta import range_delta_of
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from noonmark.compute.incremental.old import Old

#: How many combinations are made before they are filtered and go on.
PAIRS_MAX = 1 << 18
#: A look-up that finds so many rows, or so many for each that asks, is done without a second look.
FEW, FEW_EACH = 1_024, 4


class Met(Protocol):
    """The changes of a leaf, each at its time."""

    def everything(self) -> Rows:
        """All of them."""

    def ask(self, key: tuple[Scalar, ...], probes: Sequence[pa.Array]) -> Found:
        """Pairs of a probe and a change with its key."""


@dataclass(frozen=True, eq=False)
class AtHand:
    """Changes that this task has."""

    rows: Rows

    def everything(self) -> Rows:
        """All of them."""
        return self.rows

    def ask(self, key: tuple[Scalar, ...], probes: Sequence[pa.Array]) -> Found:
        """Pairs of a probe and a change with its key."""
        return matching(self.rows, key, probes)


def combinations(
    old: Old, binding: Binding, errors: Errors, earlier: Mapping[int, Met] | None = None
) -> Iterator[tuple[Rows, Ints]]:
    """Outputs, and of each in which row of the binding it began.

    Args:
        old: what was there.
        binding: the rows to begin with.
        errors: what the last predicates fail with.
        earlier: the changes of leaves, that are combined like what was there.
    """
    if not len(binding.rows):
        return
    if len(binding.reached) == len(binding.group.leaves):
        yield binding.end(errors)
        return
    step = _next(old, binding)
    found = chain(
        _found(old, binding, step), _changed(binding, step, (earlier or {}).get(step.leaf))
    )
    for after in _gathered(binding.meet(step, each) for each in found):
        yield from combinations(old, after, errors, earlier)


def _gathered(parts: Iterable[Binding]) -> Iterator[Binding]:
    """The same rows in fewer parts: of those that are small, as many as fit into a batch."""
    waiting: list[Binding] = []
    for part in parts:
        waiting.append(part)
        if sum(len(each.rows) for each in waiting) >= PAIRS_MAX:
            yield Binding.together(waiting)
            waiting = []
    if waiting:
        yield Binding.together(waiting)


# -- the order ----------------------------------------------------------------------------------


def _next(old: Old, binding: Binding) -> Step:
    """The look-up that comes next."""
    offers = orders(binding.group, old.keys, can_push_down).after(binding.reached)
    best, *others = offers
    keyed = [each for each in others if each.step.key]
    if not best.step.key and not best.unique:
        return _readable(old, binding, offers)
    if best.unique or not keyed:
        return best.step
    fewest = _pairs(old, binding, best.step)
    if fewest is None or fewest <= max(FEW, FEW_EACH * len(binding.rows)):
        return best.step
    chosen = best.step
    for each in keyed:
        found = _pairs(old, binding, each.step)
        if found is not None and found < fewest:
            chosen, fewest = each.step, found
    return chosen


def _readable(old: Old, binding: Binding, offers: tuple[Offer, ...]) -> Step:
    """Of steps without a key the first whose leaf is there as a whole."""
    steps = [each.step for each in offers]
    leaves = binding.group.leaves
    there = (s for s in steps if leaves[s.leaf] in old.wholes or is_whole(leaves[s.leaf]))
    return next(there, steps[0])


def _pairs(old: Old, binding: Binding, step: Step) -> int | None:
    """How many rows a look-up would find, counted for each row of the binding; None if unknown."""
    probes, asked = binding.probes(step)
    if not len(asked):
        return 0
    ids, firsts = group_ids(probes, len(asked))
    each = [probe.take(pa.array(firsts)) for probe in probes]
    found = old.counts(binding.group.leaves[step.leaf], step.key, each)
    return None if found is None else int(found[ids].sum())


# -- what is found ------------------------------------------------------------------------------


def _found(old: Old, binding: Binding, step: Step) -> Iterator[Found]:
    """Old rows of the next leaf beside the rows of the binding that they may meet, in batches."""
    leaf = binding.group.leaves[step.leaf]
    if not step.key:
        yield from _with_all(old, binding, step)
        return
    probes, asked = binding.probes(step)
    if not len(asked):
        yield asked, empty_rows(leaf.schema)
        return
    ids, firsts = group_ids(probes, len(asked))
    places, rows = old.ask(leaf, step.key, [probe.take(pa.array(firsts)) for probe in probes])
    sizes = np.bincount(ids, minlength=len(firsts))
    members, starts = np.argsort(ids, kind="stable"), np.cumsum(sizes) - sizes
    for low, high in _batches(sizes[places]):
        mine = places[low:high]
        at = np.repeat(np.arange(low, high), sizes[mine])
        base = np.cumsum(sizes[mine]) - sizes[mine]
        within = np.arange(len(at)) - np.repeat(base, sizes[mine])
        yield asked[members[starts[places[at]] + within]], rows.take(at)


def _batches(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Neighbours that together are few enough; at least one batch, which may be empty."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(PAIRS_MAX, total, PAIRS_MAX))
    yield from pairwise([0, *np.unique(cuts[cuts > 0]).tolist(), len(sizes)])


def _with_all(old: Old, binding: Binding, step: Step) -> Iterator[Found]:
    """All rows of a leaf, or those that switch, beside all rows of the binding."""
    group = binding.group
    if len(binding.reached) == 1:
        switch = range_delta_of(group, binding.reached[0], step)
        some = None if switch is None else switched(old, group, step, switch, binding)
        if some is not None:
            yield some
            return
    rows = old.whole(group.leaves[step.leaf])
    yield from _product(len(binding.rows), rows)


def _product(count: int, rows: Rows) -> Iterator[Found]:
    """Each of so many places beside each row."""
    each = max(1, PAIRS_MAX // max(1, len(rows)))
    for low in range(0, count, each):
        some = np.arange(low, min(low + each, count))
        yield np.repeat(some, len(rows)), rows.take(np.tile(np.arange(len(rows)), len(some)))


def _changed(binding: Binding, step: Step, met: Met | None) -> Iterator[Found]:
    """The changes of the next leaf, beside the rows of the binding that they may meet."""
    if met is None:
        return
    if not step.key:
        yield from _product(len(binding.rows), met.everything())
        return
    probes, asked = binding.probes(step)
    places, found = met.ask(step.key, probes)
    yield asked[places], found
