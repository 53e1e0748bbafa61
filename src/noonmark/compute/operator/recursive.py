"""Recursive: relations that are defined by each other, until nothing more comes.

Law: it has one key, which is of no columns: what it reads decides all of it. It is recomputed as a
whole when something of that changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.compute.operator.base import Key, Keyed
from noonmark.compute.plan.keys import reads_of, with_scans
from noonmark.compute.plan.operators import Way
from noonmark.sql.ir import relation as r


class Recursive(Keyed[r.Recursive]):
    """See the module."""

    may_fail = True

    def way(self, node: r.Recursive) -> Way:
        """As a whole; one that reads nothing is computed when the view is planned."""
        return super().way(node) if reads_of(node) else Way.UNKNOWN

    def inputs(self, node: r.Recursive) -> tuple[r.Relation, ...]:
        """What it reads."""
        return tuple(reads_of(node))

    def sides(self, node: r.Recursive) -> Sequence[tuple[r.Relation, Key]]:
        """What it reads, without a key."""
        return [(each, ()) for each in reads_of(node)]

    def over_scans(self, node: r.Recursive) -> r.Relation:
        """Over as many collections as it reads."""
        reads = enumerate(reads_of(node))
        return with_scans(node, {each: r.Scan(str(at), each.schema) for at, each in reads})
