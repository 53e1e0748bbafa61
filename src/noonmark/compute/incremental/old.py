"""Relations as they were before the tick, by key.

Law: ``Old.ask(r, key, probes)`` are pairs (i, row): all rows of r before the tick whose key has the
values of probe i, for every i; NULL equals NULL. Diffs are how often a row is there; parts of them
may be apart, and sum up. Rows on which a scalar has no value are not there: they are errors.

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from noonmark.compute.incremental import by_key
from noonmark.compute.incremental.binding import Binding, Found
from noonmark.compute.incremental.first import first_of
from noonmark.compute.incremental.lookups import combinations
from noonmark.compute.incremental.matching import fitted, matching
from noonmark.compute.kernel.accumulator import accumulator_schema
from noonmark.compute.kernel.finish import finished
from noonmark.compute.kernel.keyed import meaning
from noonmark.compute.kernel.scalar import ask as values_of
from noonmark.compute.kernel.scalar import kept, projected
from noonmark.compute.kernel.updates import (
    BEFORE,
    Errors,
    Ints,
    Rows,
    concat,
    empty_rows,
    from_table,
    group_ids,
)
from noonmark.compute.plan.first import orders_of, shown
from noonmark.compute.plan.keys import keyed_inputs
from noonmark.compute.plan.multiway import Keys, multiway_of
from noonmark.compute.plan.pushdown import asked_by, under, usable
from noonmark.compute.trace.by_key import CollectionAt, TraceReader
from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows.arrow import to_table
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import bind
from noonmark.sql.ir.scalar import ColumnRef, Scalar, column, columns_of
from noonmark.sql.ir.temporal import temporal

Key = tuple[Scalar, ...]


class Old:
    """What was there before the tick.

    Args:
        traces: what this process has open.
        places: the collections, by name; of arrangements by what they keep.
        sums: the places of accumulators, by aggregation.
        wholes: the places of relations that are kept as a whole.
        keys: the keys of the collections.
        as_of: the time before the tick.
        changes: whether the places are of what changed in a range of times: then this is what
            changed of relations that follow from that row by row, each update at its time.
    """

    def __init__(
        self,
        traces: TraceReader,
        places: Mapping[str, CollectionAt],
        sums: Mapping[r.Relation, CollectionAt],
        wholes: Mapping[r.Relation, CollectionAt],
        keys: Keys,
        *,
        as_of: int,
        changes: bool = False,
    ) -> None:
        self.traces = traces
        self.places = places
        self.sums = sums
        self.wholes = wholes
        self.keys = keys
        self.as_of = as_of
        self.changes = changes

    # -- as a whole -----------------------------------------------------------------------------

    def whole(self, node: r.Relation) -> Rows:
        """All rows of a relation that is there to be read."""
        if node in self.wholes:
            place = self.wholes[node]
            return self.traces.everything(place, set(range(len(node.schema))))
        match node:
            case r.Scan():
                return self.traces.everything(self.places[node.collection], _all(node))
            case r.Constant():
                return self._constant(node)
            case r.Filter():
                return filtered(self._bound(node), self.whole(node.input))
            case r.Project():
                return self._project(node, self.whole(node.input))
            case r.Union():
                return concat([self.whole(each) for each in node.inputs], node.schema)
            case r.FlatMap():
                return by_key.flat_mapped(node, self.whole(node.input), Errors())
            case r.Aggregate():
                place = self.sums[node]
                schema = accumulator_schema(node)
                rows = self.traces.everything(place, set(range(len(schema))))
                return finished(node, rows.consolidated(), Errors())[0]
        raise AssertionError(f"{type(node).__name__} is not kept as a whole")

    def _constant(self, node: r.Constant) -> Rows:
        return empty_rows(node.schema) if self.changes else constant(node)

    def _bound(self, node: r.Filter) -> r.Filter:
        """A filter as it was before the tick, also if it follows the time."""
        return node if temporal(node) is None else bind(node, (), self.as_of)

    # -- by key ---------------------------------------------------------------------------------

    def ask(self, node: r.Relation, key: Key, probes: Sequence[pa.Array]) -> Found:
        """Pairs of a probe and a row; of the key, all parts are `usable`."""
        count = len(probes[0])
        if not count:
            return np.zeros(0, np.int64), empty_rows(node.schema)
        values, fine = fitted(probes, [part.type for part in key])
        places, rows = self._ask(node, key, values, _all(node))
        return (places if fine is None else fine[places]), rows

    def _ask(
        self, node: r.Relation, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """As `ask`; only the columns `wanted` need to be there."""
        match node:
            case r.Scan():
                return self.traces.find(self.places[node.collection], key, probes, wanted)
            case r.Filter():
                used = wanted | columns_of(node.predicate)
                places, rows = self._ask(node.input, key, probes, used)
                passed = kept(self._bound(node).predicate, rows, Errors())
                return places[passed], rows.take(passed)
            case r.Project():
                return self._asked_projection(node, key, probes, wanted)
            case r.Constant():
                return matching(self._constant(node), key, probes)
            case r.Union():
                found = [self._ask(each, key, probes, wanted) for each in node.inputs]
                rows = concat([rows for _, rows in found], node.schema)
                return np.concatenate([places for places, _ in found]), rows
            case r.Aggregate() if node in self.sums:
                return self._accumulators(node, key, probes)
            case r.Join(kind=r.JoinKind.INNER):
                return self._group(node, key, probes)
        return self._operator(node, key, probes)

    def _asked_projection(
        self, node: r.Project, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        scalars = [node.scalars[at] for at in sorted(wanted)]
        used = {at for scalar in scalars for at in columns_of(scalar)}
        below = tuple(under(node.scalars, part) for part in key)
        places, rows = self._ask(node.input, below, probes, used)
        arrays, failed = values_of(scalars, rows)
        columns: list[pa.Array | None] = [None] * len(node.scalars)
        for at, array in zip(sorted(wanted), arrays, strict=True):
            columns[at] = array
        made = rows.with_columns(columns)
        if failed is None:
            return places, made
        fine = np.flatnonzero([text is None for text in failed])
        return places[fine], made.take(fine)

    def _project(self, node: r.Project, rows: Rows) -> Rows:
        arrays, fine = projected(node.scalars, rows, Errors())
        return fine.with_columns(arrays)

    def _accumulators(self, node: r.Aggregate, key: Key, probes: Sequence[pa.Array]) -> Found:
        wanted = set(range(len(accumulator_schema(node))))
        stored = _stored_key(node, key)
        places, rows = self.traces.find(self.sums[node], stored, probes, wanted)
        numbered = Rows((pa.array(places), *rows.columns), rows.time, rows.diff).consolidated()
        places = numbered.columns[0].to_numpy()  # type: ignore[union-attr]
        made, fine = finished(node, numbered.with_columns(numbered.columns[1:]), Errors())
        return places[fine], made

    def _operator(self, node: r.Relation, key: Key, probes: Sequence[pa.Array]) -> Found:
        """Ask the inputs for the same key, and the operator for what it makes of them."""
        near = self._first(node, key, probes) if orders_of(node) else None
        sides = self._sides(node, key, probes) if near is None else [near]
        if isinstance(node, r.FlatMap):
            return matching(by_key.flat_mapped(node, sides[0], Errors()), key, probes)
        made = meaning(node, sides)
        if made is None:
            made = by_key.contents(node, sides)
        return matching(made, key, probes)

    def _first(self, node: r.Relation, key: Key, probes: Sequence[pa.Array]) -> Rows | None:
        """Of the input the first rows alone, if that is enough: of whole keys."""
        own = keyed_inputs(node)[0].key
        given = _grouped_by(node, key) if isinstance(node, r.Aggregate) else key
        if set(given) != set(own):
            return None
        wanted = distinct([probes[given.index(part)] for part in own])
        counts = np.full(len(wanted[0]), shown(node), np.int64)
        return first_of(self, node, own, wanted, counts)

    def _sides(self, node: r.Relation, key: Key, probes: Sequence[pa.Array]) -> list[Rows]:
        match node:
            case r.Aggregate():
                return [self.contents(node.input, _grouped_by(node, key), probes)]
            case r.Intersect() | r.Except():
                return [self.contents(each, key, probes) for each in (node.left, node.right)]
            case r.Join():
                left = self.contents(node.left, key, probes)
                used = [k for k in node.keys if usable(node.right, k.right)]
                asked, _ = values_of([k.left for k in used], left)
                right = self.contents(node.right, tuple(k.right for k in used), asked)
                return [left, right]
        (below_node,) = r.relations_below(node)
        return [self.contents(below_node, key, probes)]

    def contents(self, node: r.Relation, key: Key, probes: Sequence[pa.Array]) -> Rows:
        """The rows with one of the keys, each once, with how often it is there."""
        if not key:
            return self.whole(node).consolidated()
        return self.ask(node, key, distinct(probes))[1].consolidated()

    # -- groups ---------------------------------------------------------------------------------

    def _group(self, node: r.Join, key: Key, probes: Sequence[pa.Array]) -> Found:
        """The group walked from the values of its key."""
        group = asked_by(multiway_of(node), key)
        count = len(probes[0])
        once = np.ones(count, np.int64)
        begun = Rows(tuple(probes), once * BEFORE, once)
        walk = Binding.begin(group, len(group.leaves) - 1, begun, np.arange(count))
        made = list(combinations(self, walk, Errors()))
        places = [origin for _, origin in made]
        rows = concat([rows for rows, _ in made], node.schema)
        return np.concatenate(places) if places else np.zeros(0, np.int64), rows

    def counts(self, node: r.Relation, key: Key, probes: Sequence[pa.Array]) -> Ints | None:
        """Of each probe, how many stored rows `ask` would look at; None if that is not known."""
        values, fine = fitted(probes, [part.type for part in key])
        found = self._counts(node, key, values)
        if fine is None or found is None:
            return found
        made = np.zeros(len(probes[0]), np.int64)
        made[fine] = found
        return made

    def _counts(self, node: r.Relation, key: Key, probes: Sequence[pa.Array]) -> Ints | None:
        match node:
            case r.Scan():
                return self.traces.counts(self.places[node.collection], key, probes)
            case r.Filter() | r.Distinct():
                return self.counts(node.input, key, probes)
            case r.Project():
                below = tuple(under(node.scalars, part) for part in key)
                return self.counts(node.input, below, probes)
            case r.Aggregate() if node in self.sums:
                return self.traces.counts(self.sums[node], _stored_key(node, key), probes)
            case r.Aggregate():
                return self.counts(node.input, _grouped_by(node, key), probes)
        return None


def _stored_key(node: r.Aggregate, key: Key) -> Key:
    """A key of an aggregation over its accumulators."""
    schema = accumulator_schema(node)
    return tuple(
        column(ref.index, schema.columns[ref.index])  # type: ignore[attr-defined]
        for ref in key
    )


def _grouped_by(node: r.Aggregate, key: Key) -> Key:
    """A key of an aggregation over the rows of its input: it is asked by what it groups by."""
    made = []
    for part in key:
        assert isinstance(part, ColumnRef), "an aggregation is asked by its keys"
        made.append(node.keys[part.index])
    return tuple(made)


def _all(node: r.Relation) -> set[int]:
    return set(range(len(node.schema)))


def constant(node: r.Constant) -> Rows:
    """The rows of a constant."""
    ones = np.ones(len(node.rows), np.int64)
    if not len(node.schema):  # a table without columns would not know how many rows it has
        return Rows((), ones * BEFORE, ones)
    table = to_table(list(node.rows), node.columns)
    table = table.append_column(TIME, pa.array(ones * BEFORE)).append_column(DIFF, pa.array(ones))
    return from_table(table).consolidated()


def filtered(node: r.Filter, rows: Rows) -> Rows:
    """The rows that pass; those without an answer are errors, and not here."""
    return rows.take(kept(node.predicate, rows, Errors()))


def distinct(probes: Sequence[pa.Array]) -> list[pa.Array]:
    """Each key once."""
    _, firsts = group_ids(probes, len(probes[0]))
    return [probe.take(pa.array(firsts)) for probe in probes]
