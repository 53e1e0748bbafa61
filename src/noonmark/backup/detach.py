"""A copy and the upstream of its original: it may not touch what the original needs there.

    PostgreSQL   the replication slot is the original's, and its position may be ahead of the copy.
                 The copy gets the name of a slot that does not exist: its tables say that they
                 cannot be followed, and ALTER SOURCE ... REFRESH reads them anew with a slot of
                 their own.
    Kafka        offsets are the copy's own, so it goes on by itself; it notes how far it is under a
                 consumer group of its own.
    sinks        would write what the original has written, or writes: they do not come along.

Other sources take nothing from upstream that another reader would miss.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from noonmark.adapter.catalog import Item
from noonmark.adapter.catalog.store import COLLECTION, CatalogStore
from noonmark.adapter.system import system_items
from noonmark.clock import Clock
from noonmark.oracle import TimestampOracle
from noonmark.persist.client import Client


@dataclass(frozen=True)
class Detached:
    """What was changed, by name: PostgreSQL sources, Kafka sources, and sinks that are gone."""

    slots: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()


def detach(client: Client, oracle: TimestampOracle, clock: Clock) -> Detached:
    """Detach a location from what its original uses upstream. Blocks."""
    if COLLECTION not in client.state.names:
        return Detached()
    store = CatalogStore(client, oracle, system_items())
    store.load()
    upper = client.state.collection(COLLECTION).upper.only()
    if upper:
        oracle.apply_write(upper)
    slots = [each for each in store.catalog.items("source") if _upstream(each) == "postgres"]
    groups = [each for each in store.catalog.items("source") if _upstream(each) == "kafka"]
    sinks = list(store.catalog.items("sink"))
    added = [
        *(_with(each, {"slot": f"noonmark_{clock.fresh_id()}"}) for each in slots),
        *(_with(each, {"group": f"noonmark-{clock.fresh_id()}"}) for each in groups),
    ]
    if added or sinks:
        asyncio.run(store.change(added, [each.number for each in sinks]))
    return Detached(*(tuple(each.name for each in some) for some in (slots, groups, sinks)))


def _upstream(item: Item) -> str | None:
    found: str | None = item.definition.get("upstream")
    return found


def _with(item: Item, changes: Mapping[str, Any]) -> Item:
    source = {**item.definition["source"], **changes}
    return replace(item, definition={**item.definition, "source": source})
