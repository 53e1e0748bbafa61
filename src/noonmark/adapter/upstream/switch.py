"""The switch: a table that was read beside the others becomes what its relation shows.

One commit, at one time t, between two ticks of the source:

    the relation     gets the difference between its contents and those of the staged collection, as
                     updates at t; its error ends at t (or becomes that of the staged one)
    the errors       of the table's old output go, those of its new one are shown under its name
    the catalog      has the relation fed by the new output, and the old one retired
    everything else  of the source is complete at t, at which nothing else happened

So whoever reads the relation, or a view over it, sees the old contents, or the error, before t, and
from t on the new ones. A relation that is added begins at t.

Where it runs: a task of the adapter's loop for each source that has something pending; comparing in
a thread, or on Spark.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.audit import ACTING
from noonmark.adapter.upstream.swap import Read, Swap
from noonmark.persist.log import command as c
from noonmark.source.impl import postgres
from noonmark.source.impl.postgres import partitions
from noonmark.storage.description import CollectionDescription
from noonmark.storage.transaction import Transaction
from noonmark.tvc import Antichain, known_partitions

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.schedule.sources import SourceWorker
    from noonmark.ingest.ingestion import Ingestion

_LOOK_S = 0.05
#: How long a tick that is under way may take before the source is asked again.
_REST_S = 600.0


async def finish(database: Database, number: int) -> None:
    """Wait until what is pending of a source has joined it, and switch."""
    while True:
        item = database.catalog.by_number.get(number)
        if item is None or not item.definition.get("pending"):
            return
        worker = database.work.sources.get(number)
        if worker is not None and worker.ingestion is not None:
            if _has_joined(worker.ingestion, item):
                # Outside of the catalog's turn: a tick may take its time, or for ever.
                async with worker.resting(_REST_S) as rests:
                    if rests and await _switch(database, item, worker):
                        return
            worker.want(await database.oracle.read_ts())
        await database.clock.sleep(_LOOK_S)


def _has_joined(ingestion: Ingestion, item: Item) -> bool:
    known = known_partitions(ingestion.remap.latest)
    outputs = [each["output"] for each in item.definition["pending"]]
    return all(partitions.joined(output) in known for output in outputs)


async def _switch(database: Database, item: Item, worker: SourceWorker) -> bool:
    """False when the source is not ready for it: then it goes on, and is asked again."""
    store = database.store
    async with store.turn:
        if store.catalog.by_number.get(item.number) is not item:
            return False
        await database.work.remove([item.number])
        try:
            ingestion = worker.ingestion
            if ingestion is None or not ingestion.is_settled or not _has_joined(ingestion, item):
                return False
            after = await asyncio.to_thread(_commit, database, item, ingestion)
            store.became(after)
        finally:
            await database.work.take_up([item.number])
    return True


def _commit(database: Database, item: Item, ingestion: Ingestion) -> Catalog:
    """See the module; blocks."""
    client, catalog = database.client, database.catalog
    parts = {each.number: each for each in catalog.parts_of(item.number)}
    for each in item.definition["pending"]:
        if each["part"]:
            columns = client.state.collection(each["staging"]).schema.columns
            found = client.state.collection(parts[each["part"]].collection)
            # What was added upstream is NULL in the rows that are there.
            if more := columns[len(found.schema.columns) :]:
                client.evolve(found.name, tuple(more)).result()
    upper = ingestion.remap.upper.only()
    assert upper is not None, "a source with tables does not end"
    oracle = database.oracle.blocking
    time = oracle.write_ts()
    after = _Switch(database, item, ingestion, parts, upper - 1, time).commit()
    oracle.apply_write(time)
    return after


@dataclass(frozen=True)
class _Switch:
    """One switch: what is pending, as of `as_of`, becomes what is shown, at `time`."""

    database: Database
    item: Item
    ingestion: Ingestion
    parts: Mapping[int, Item]
    as_of: int
    time: int

    @cached_property
    def pending(self) -> list[dict[str, Any]]:
        """What is pending, as the item has it."""
        return list(self.item.definition["pending"])

    @cached_property
    def txn(self) -> Transaction:
        """The one commit."""
        return Transaction(self.database.client)

    @cached_property
    def swap(self) -> Swap:
        """What it does to relations and errors."""
        return Swap(self.database, self.item, self.txn, self.time)

    def commit(self) -> Catalog:
        """All of it; the catalog from then on."""
        database, txn = self.database, self.txn
        catalog, state = database.catalog, database.client.state
        numbers = itertools.count(catalog.next_number)
        changed = [
            self._refresh(self.parts[each["part"]], each)
            if each["part"]
            else self._new_item(each, next(numbers))
            for each in self.pending
        ]
        names = {p["staging"]: now.collection for p, now in zip(self.pending, changed, strict=True)}
        tables = {number for number, part in self.parts.items() if part.kind == "subsource"}
        is_whole = {each["part"] for each in self.pending} >= tables
        beside = [Read(each["errors"], each["time"]) for each in self.pending]
        errors = self.ingestion.errors
        self.swap.errors(errors, self.as_of, names, beside, is_whole=is_whole)
        self.ingestion.seal_at(txn, self.time)
        for each, now in zip(self.pending, changed, strict=True):
            staging = state.collection(each["staging"])
            if each["part"]:
                txn.add(c.Drop(staging.id))
            else:
                about = CollectionDescription(now.schema, now.key, now.kind).annotation()
                txn.add(c.AllowCompaction(staging.id, Antichain.of(self.time)))
                txn.add(c.Rename(staging.id, now.collection))
                txn.add(c.Annotate(staging.id, about))
            txn.add(c.Drop(state.collection(each["errors"]).id))
        after = catalog.changed([self._settled(), *changed], ())
        database.store.put(txn, after, self.time, ACTING.get())
        txn.commit().result()
        return after

    def _refresh(self, part: Item, pending: dict[str, Any]) -> Item:
        """The new contents of a relation; returns its item as it is from then on."""
        staging = self.database.client.state.collection(pending["staging"])
        shown, beside = Read(part.collection, self.as_of), Read(staging.name, self.as_of)
        self.swap.contents(shown, beside, is_whole=False)
        definition = {**part.definition, "output": pending["output"]}
        return replace(part, schema=staging.schema, definition=definition)

    def _new_item(self, pending: dict[str, Any], number: int) -> Item:
        """The item of a relation that is new, and begins now."""
        staging = self.database.client.state.collection(pending["staging"])
        schema_name, name = pending["place"]
        return Item(
            number,
            "subsource",
            schema_name,
            name,
            staging.schema,
            staging.key,
            {"output": pending["output"]},
            part_of=self.item.number,
            owner=self.item.owner,
            retain_ms=self.item.retain_ms,
        )

    def _settled(self) -> Item:
        """The source's item without what was pending, and with the old outputs retired."""
        # door: PostgreSQL's client: only who has such an object
        from noonmark.source.impl.postgres.restage import retired

        definition = dict(self.item.definition)
        del definition["pending"]
        refreshed = [self.parts[each["part"]] for each in self.pending if each["part"]]
        source = postgres.Postgres.from_plain("", dict(definition["source"]))
        source = retired(source, [part.definition["output"] for part in refreshed])
        return replace(self.item, definition={**definition, "source": source.to_plain()})
