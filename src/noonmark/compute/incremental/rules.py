"""The changes of a relation, walked in one task: which rule serves which operator.

    Scan                       the changes of the collection
    Constant                   nothing: it is the same at every time
    Filter, Project, FlatMap,
    Union                      linear: the operator applied to the changes
    inner Joins                the group that they are (`noonmark.compute.plan.multiway`); of one
    row that
                               is compared and not shown, the rows that switch (`range_delta`)
    Aggregate, linear          `accumulate`
    Filter that follows time   `temporal`
    all others with a key      the operator before and after, for the keys that changed

Law: ``Evaluation(...).delta(r)`` is differentiate(r(integrate(inputs))) over the range of the tick;
equal subplans are computed once.

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from noonmark.compute.contents.evaluation import by_kernel
from noonmark.compute.incremental import by_key
from noonmark.compute.incremental.binding import Binding
from noonmark.compute.incremental.first import first_of
from noonmark.compute.incremental.lookups import AtHand, Met, combinations
from noonmark.compute.incremental.old import Old
from noonmark.compute.kernel import index as ix
from noonmark.compute.kernel.scalar import ask as values_of
from noonmark.compute.kernel.scalar import projected
from noonmark.compute.kernel.updates import (
    BEFORE,
    Changes,
    Error,
    Errors,
    Rows,
    concat,
    distinct_keys,
    empty_rows,
    group_ids,
)
from noonmark.compute.plan.first import orders_of, shown
from noonmark.compute.plan.growing import keeps_itself
from noonmark.compute.plan.keys import KeyedInput, keyed_inputs
from noonmark.compute.plan.levels import order_of
from noonmark.compute.plan.multiway import MultiwayJoin
from noonmark.compute.plan.operators import operator_of
from noonmark.compute.plan.pushdown import can_push_down
from noonmark.compute.scalar.number import NO_KERNEL
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar


class Evaluation:
    """One tick of one view."""

    def __init__(
        self,
        inputs: Mapping[str, Changes],
        old: Old,
        upper: int,
        due: Mapping[r.Relation, Rows],
    ) -> None:
        self.inputs = inputs
        self.old = old
        self.upper = upper
        #: What waited in temporal filters, and is due now.
        self.due = due
        #: What the arrangements of those are to be changed by.
        self.turns: dict[r.Relation, Rows] = {}
        #: What the accumulators of linear aggregates are to be changed by.
        self.sums: dict[r.Relation, Rows] = {}
        self._made: dict[r.Relation, Changes] = {}
        #: The same by identity: to compare plans costs more than to find them.
        self._known: dict[int, tuple[r.Relation, Changes]] = {}

    def delta(self, node: r.Relation) -> Changes:
        """The changes of a relation."""
        known = self._known.get(id(node))
        if known is None:
            if node not in self._made:
                self._made[node] = operator_of(node).delta(node, self)
            known = self._known[id(node)] = node, self._made[node]
        return known[1]

    # -- groups of joins ------------------------------------------------------------------------

    def joined(self, node: r.Relation, group: MultiwayJoin) -> Changes:
        """One path for each leaf that changed."""
        deltas = [self.delta(leaf) for leaf in group.leaves]
        errors = Errors(list(_errors(deltas)))
        for at, scalar in group.checks:
            projected([scalar], deltas[at].rows, errors)
        made: list[Rows] = []
        earlier: dict[int, Met] = {}
        for first in order_of(group):
            rows = deltas[first].rows
            walk = Binding.begin(group, first, rows, np.arange(len(rows)))
            made += [each for each, _ in combinations(self.old, walk, errors, earlier)]
            met = self.met(group.leaves[first], rows)
            if met is not None:
                earlier[first] = met
        rows = concat(made, node.schema)
        # Where all of it comes nothing cancels, and whoever needs each row once sees to it.
        comes = not (rows.diff < 0).any()
        return Changes(rows if comes else rows.consolidated(), tuple(errors.found))

    def met(self, leaf: r.Relation, rows: Rows) -> Met | None:
        """All changes of an input, for the changes of others to meet; `rows` are those here."""
        del leaf
        return AtHand(rows) if len(rows) else None

    # -- operators with keys --------------------------------------------------------------------

    def keyed(self, node: r.Relation, deltas: Sequence[Changes]) -> Changes:
        """The operator before and after, for the keys that changed; `deltas` are of its inputs."""
        parts = keyed_inputs(node)
        errors = Errors(list(_errors(deltas)))
        keys: list[list[pa.Array]] = []
        changed: list[Rows] = []
        for part, delta in zip(parts, deltas, strict=True):
            arrays, rows = projected(part.key, delta.rows, errors)
            keys.append(arrays)
            changed.append(rows)
        if not any(map(len, changed)):
            return Changes(empty_rows(node.schema), tuple(errors.found))
        asked = [pa.concat_arrays([k[at] for k in keys]) for at in range(len(parts[0].key))]
        asked = distinct_keys(asked) if asked else []
        if keeps_itself(node) and not (changed[0].diff < 0).any():
            grown = self._grown(node, asked, changed[0])
            if grown is not None:
                return Changes(grown, tuple(errors.found))
        schemas = [part.relation.schema for part in parts]
        short = self._first(node, parts[0], keys[0], changed[0]) if orders_of(node) else None
        if short is not None:
            return Changes(short, tuple(errors.found))
        before = [self._before(part, asked) for part in parts]
        made = _by_time(node, schemas, before, changed)
        if made is None:
            both = zip(before, changed, parts, strict=True)
            sides = [concat([a, b], p.relation.schema) for a, b, p in both]
            found = by_key.changes(node, sides)
            return Changes(found.rows.consolidated(), (*errors.found, *found.errors))
        return Changes(made, tuple(errors.found))

    def _grown(self, node: r.Relation, asked: Sequence[pa.Array], more: Rows) -> Rows | None:
        """An operator that keeps itself, when rows have only come; None if no kernel knows."""
        operator, key = operator_of(node), operator_of(node).group_key(node)
        try:
            was = operator.found(node, self.old, key, asked)[1] if key else self.old.whole(node)
            was = was.at(BEFORE).consolidated()
            made: list[Rows] = []
            for time in np.unique(more.time).tolist():
                now = more.take(np.flatnonzero(more.time == time)).at(BEFORE)
                then = operator.with_more(node, was, now)
                if then is None:
                    return None
                made += [was.negated().at(time), then.at(time)]
                was = then
        except NO_KERNEL:
            return None
        return concat(made, node.schema).consolidated()

    def _first(
        self, node: r.Relation, part: KeyedInput, keys: list[pa.Array], changed: Rows
    ) -> Rows | None:
        """A top-k, or minima, of the first rows alone; None where all have to be read.

        Of n rows, while changes take away d, the first n + d that were there can come into sight.
        """
        ids, firsts = group_ids(keys, len(changed))
        counts = np.full(len(firsts), shown(node), np.int64)
        gone = np.flatnonzero(changed.diff < 0)
        np.add.at(counts, ids[gone], -changed.diff[gone])
        probes = [key.take(pa.array(firsts)) for key in keys]
        near = first_of(self.old, node, part.key, probes, counts)
        return None if near is None else _by_time(node, [part.relation.schema], [near], [changed])

    def _before(self, part: KeyedInput, asked: Sequence[pa.Array]) -> Rows:
        """The rows with these keys, as they were."""
        used = [at for at, key in enumerate(part.key) if can_push_down(part.relation, key)]
        own = tuple(part.key[at] for at in used)
        rows = self.old.contents(part.relation, own, [asked[at] for at in used])
        if len(used) == len(part.key):
            return rows
        return _restricted(rows, part.key, asked)


def _by_time(
    node: r.Relation, schemas: Sequence[Schema], before: Sequence[Rows], changed: Sequence[Rows]
) -> Rows | None:
    """All keys at once, one time after the other; None when that cannot be."""
    sides = list(before)
    was = by_kernel(node, sides)
    if was is None:
        return None
    times = sorted({time for rows in changed for time in np.unique(rows.time).tolist()})
    made: list[Rows] = []
    for time in times:
        for at, rows in enumerate(changed):
            now = rows.take(np.flatnonzero(rows.time == time))
            if len(now):
                sides[at] = concat([sides[at], now.at(BEFORE)], schemas[at]).consolidated()
        then = by_kernel(node, [_there(side) for side in sides])
        if then is None:
            return None
        made += [was.negated().at(time), then.at(time)]
        was = then
    return concat(made, node.schema).consolidated()


def _there(rows: Rows) -> Rows:
    """What is there: of rows that were out of sight only what took them away is known."""
    return rows.take(np.flatnonzero(rows.diff > 0)) if (rows.diff < 0).any() else rows


def _errors(parts: Sequence[Changes]) -> tuple[Error, ...]:
    return tuple(error for part in parts for error in part.errors)


def _restricted(rows: Rows, key: Sequence[Scalar], asked: Sequence[pa.Array]) -> Rows:
    """Only the rows whose whole key is among those asked for; a key that fails is an error."""
    values, failed = values_of(key, rows)
    if failed is not None:
        fine = np.flatnonzero([text is None for text in failed])
        rows, values = rows.take(fine), [value.take(pa.array(fine)) for value in values]
    if not asked:
        return rows
    found = ix.build(asked, len(asked[0]))
    given, at = ix.matches(found, ix.hashes_of(values, len(rows)))
    taken = [value.take(pa.array(given)) for value in values]
    wanted = [each.take(pa.array(at)) for each in asked]
    return rows.take(np.unique(given[ix.same(taken, wanted, len(given))]))
