"""How far a relation is behind: for system relations, the console and alerts.

A source follows its upstream, so it is as far behind as its newest complete time is old. A table is
complete up to its last write by definition: it is never behind, and neither is a view over tables
that has taken that write in, however long ago that was.

Law: the lag of a relation is 0 when no source is below it and nothing below it is newer than it
is; otherwise it is the age of its newest complete time. What is complete for ever has none.

Where it runs: wherever it is asked; pure.
"""

from __future__ import annotations

from noonmark.adapter.catalog import Catalog, Item
from noonmark.persist.log.state import State

_FOLLOWS_CLOCK = ("source", "subsource")


def lag_ms(
    catalog: Catalog, state: State, item: Item, upper: int | None, now_ms: int
) -> int | None:
    """How far an item that is complete below `upper` is behind.

    Args:
        catalog: where the item is.
        state: the location, where what is below it is.
        item: a relation, or a sink.
        upper: how far it is; None when it is complete for ever.
        now_ms: the wall time.
    """
    if upper is None:
        return None
    below = catalog.needs([item.number])
    moves = any(each.kind in _FOLLOWS_CLOCK for each in below)
    written = [
        state.collection(each.collection).upper.only() or 0
        for each in below
        if each.kind == "table" and each.collection in state.names
    ]
    if item.kind == "table" or (not moves and max(written, default=0) <= upper):
        return 0
    return max(0, now_ms - upper)
