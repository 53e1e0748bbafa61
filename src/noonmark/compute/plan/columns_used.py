"""Which columns of its inputs a plan uses.

Law: a plan gives the same rows over inputs of which only the columns of ``used(plan)`` are known.
Changes are read, and travel to tasks, without the others.

Where it runs: driver; pure.
"""

from __future__ import annotations

from noonmark.compute.plan.operators import operator_of
from noonmark.sql.ir import relation as r


def used(plan: r.Relation) -> dict[str, tuple[str, ...]]:
    """The columns of each collection that the plan reads, in their order; one of them at least."""
    found: dict[str, set[int]] = {}
    _visit(plan, None, found)
    scans = r.scans(plan)
    return {
        name: tuple(each for at, each in enumerate(scans[name].names) if at in (places or {0}))
        for name, places in found.items()
    }


def _visit(node: r.Relation, wanted: set[int] | None, found: dict[str, set[int]]) -> None:
    """`wanted` are the columns of the node that somebody asks for; None for all of them."""
    if isinstance(node, r.Scan):
        everything = set(range(len(node.columns)))
        found.setdefault(node.collection, set()).update(everything if wanted is None else wanted)
    for below, needed in operator_of(node).used(node, wanted):
        _visit(below, needed, found)
