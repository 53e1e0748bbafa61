"""Scan: a collection.

Law: its changes are those of the collection; before the tick it is the collection, by any key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from noonmark.compute.incremental.binding import Found
from noonmark.compute.kernel.updates import Changes, Ints, Rows, empty_rows
from noonmark.compute.operator.base import Key, Operator, Wanted, columns_in
from noonmark.compute.plan.multiway import Keys
from noonmark.compute.plan.operators import Way
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation
    from noonmark.compute.incremental.old import Old
    from noonmark.compute.incremental.rules import Evaluation
    from noonmark.compute.trace.by_key import CollectionAt


class Scan(Operator[r.Scan]):
    """See the module."""

    def title(self, node: r.Scan) -> str:
        """With the collection."""
        return f"Scan {node.collection}"

    def name(self, node: r.Scan) -> str:
        """The collection."""
        return node.collection

    def way(self, node: r.Scan) -> Way:
        """Nothing has to be computed."""
        del node
        return Way.CHANGES

    def can_push_down(self, node: r.Scan, key: Scalar) -> bool:
        """By everything that its columns decide: indexes are made as they are asked for."""
        del node
        return bool(columns_in(key))

    def is_whole(self, node: r.Scan) -> bool:
        """It is stored."""
        del node
        return True

    def is_found_by(self, node: r.Scan, key: Key) -> bool:
        """By any."""
        del node, key
        return True

    def is_narrow(self, node: r.Scan) -> bool:
        """It is all there is."""
        del node
        return False

    def is_unique(self, node: r.Scan, key: Sequence[Scalar], keys: Keys) -> bool:
        """If all columns of its key are given."""
        names = {node.schema.names[at] for at in columns_in(*key)}
        own = keys.get(node.collection, ())
        return bool(own) and set(own) <= names

    def used(self, node: r.Scan, wanted: Wanted) -> Iterable[tuple[r.Relation, Wanted]]:
        """It has no inputs."""
        del node, wanted
        return ()

    def delta(self, node: r.Scan, tick: Evaluation) -> Changes:
        """Those of the collection."""
        return tick.inputs.get(node.collection) or Changes(empty_rows(node.schema))

    def whole(self, node: r.Scan, old: Old) -> Rows:
        """The collection."""
        return old.traces.everything(old.places[node.collection], set(range(len(node.schema))))

    def ask(
        self, node: r.Scan, old: Old, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """By an index of its parts."""
        return old.traces.find(old.places[node.collection], key, probes, wanted)

    def place(self, node: r.Scan, old: Old) -> CollectionAt | None:
        """The collection."""
        return old.places[node.collection]

    def counts(self, node: r.Scan, old: Old, key: Key, probes: Sequence[pa.Array]) -> Ints | None:
        """By the same index."""
        return old.traces.counts(old.places[node.collection], key, probes)

    def can(self, node: r.Scan) -> bool:
        """Always."""
        del node
        return True

    def contents(self, node: r.Scan, asked: ContentsEvaluation) -> Rows:
        """What is given for it."""
        return asked.inputs[node.collection]
