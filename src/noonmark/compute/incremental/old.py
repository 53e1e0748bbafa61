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

from noonmark.compute.incremental.binding import Found
from noonmark.compute.incremental.matching import fitted
from noonmark.compute.kernel.updates import (
    Ints,
    Rows,
    distinct_keys,
    empty_rows,
)
from noonmark.compute.plan.multiway import Keys
from noonmark.compute.plan.operators import operator_of
from noonmark.compute.trace.by_key import CollectionAt, TraceReader
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

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
        return operator_of(node).whole(node, self)

    # -- by key ---------------------------------------------------------------------------------

    def ask(self, node: r.Relation, key: Key, probes: Sequence[pa.Array]) -> Found:
        """Pairs of a probe and a row; of the key, all parts are `can_push_down`."""
        count = len(probes[0])
        if not count:
            return np.zeros(0, np.int64), empty_rows(node.schema)
        values, fine = fitted(probes, [part.type for part in key])
        places, rows = self.find(node, key, values, set(range(len(node.schema))))
        return (places if fine is None else fine[places]), rows

    def find(
        self, node: r.Relation, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """As `ask`, by probes of the types of the key; only the columns `wanted` need be there."""
        return operator_of(node).ask(node, self, key, probes, wanted)

    def contents(self, node: r.Relation, key: Key, probes: Sequence[pa.Array]) -> Rows:
        """The rows with one of the keys, each once, with how often it is there."""
        if not key:
            return self.whole(node).consolidated()
        return self.ask(node, key, distinct_keys(probes))[1].consolidated()

    def counts(self, node: r.Relation, key: Key, probes: Sequence[pa.Array]) -> Ints | None:
        """Of each probe, how many stored rows `ask` would look at; None if that is not known."""
        values, fine = fitted(probes, [part.type for part in key])
        found = operator_of(node).counts(node, self, key, values)
        if fine is None or found is None:
            return found
        made = np.zeros(len(probes[0]), np.int64)
        made[fine] = found
        return made
