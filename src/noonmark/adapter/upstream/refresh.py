"""Tables of a PostgreSQL source that are read later than the others: added, or refreshed.

    stage    a snapshot of the table is read into a collection that nobody sees, while the source
             goes on; nothing is said about it yet
    join     one commit: the source's item has the table as one more output, pending. Its next ticks
             bring it forward with the others, from the snapshot on
    switch   one commit, at one time: the relation gets the difference between what it had and what
             the pending output has, its error is retracted, the old output is retired (`switch`)

A process that ends while it stages leaves an empty collection, which the next one drops. One that
ends after joining goes on: what is pending is in the catalog.

Where it runs: the adapter's loop; reading in threads and on Spark.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Item
from noonmark.adapter.upstream.staging import create, forget, staging_name
from noonmark.errors import NotYetComplete, SerializationFailure
from noonmark.ingest.feed import postgres_table
from noonmark.ingest.stage import Staging, stage
from noonmark.peer import Peer
from noonmark.persist.log import command as c
from noonmark.source.contract import ERRORS_SCHEMA
from noonmark.storage.transaction import completing

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.schedule.sources import SourceWorker
    from noonmark.source.impl.postgres import Postgres
    from noonmark.source.impl.postgres.restage import Relation, Restaged

#: How long a source that was just taken up may take for its first tick.
_BEGIN_S = 30.0
#: How long a tick that is under way may take before a source is stopped for its tables.
REST_S = 600.0


@dataclass(frozen=True)
class Wanted:
    """A table to be read.

    Attributes:
        upstream: its schema and name there.
        place: the schema and name of its relation.
        part: the item that it is refreshed for; None where it is added.
    """

    upstream: tuple[str, str]
    place: tuple[str, str]
    part: Item | None = None

    def relation(self) -> Relation | None:
        """What the table has to fit."""
        # door: PostgreSQL's client: only who has such an object
        from noonmark.source.impl.postgres.restage import Relation

        part = self.part
        return None if part is None else Relation(part.name, part.schema, part.key)


async def at_work(database: Database, item: Item) -> SourceWorker:
    """The worker of a source, once it has ticked: one that was just altered begins anew."""
    worker = database.work.sources.get(item.number)
    if worker is not None:
        worker.want(await database.oracle.read_ts())
        begun = asyncio.shield(asyncio.wrap_future(worker.begun))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(begun, _BEGIN_S)
    if worker is None or worker.ingestion is None or not worker.begun.done():
        raise NotYetComplete(
            f'source "{item.name}" has not begun',
            detail=None if worker is None else worker.status.error,
            hint="Run the statement again when it has.",
        )
    return worker


async def read_beside(
    database: Database, item: Item, wanted: Sequence[Wanted], *, new_slot: bool = False
) -> tuple[str, ...]:
    """Stage tables and have them join; returns what their readers should know.

    Args:
        database: whose source it is.
        item: the source's.
        wanted: the tables.
        new_slot: whether the source is to go on with a slot of its own making; then `wanted` are
            all of its tables.
    """
    # door: PostgreSQL's client: only who has such an object
    from noonmark.source.impl.postgres.restage import Restaged, restage

    worker = await at_work(database, item)
    source: Any = worker.source()
    slot = f"noonmark_{database.clock.fresh_id()}"
    tables = [(each.upstream, each.relation()) for each in wanted]
    peer = Peer("statement", f'on source "{item.name}"', database.clock)
    making = partial(restage, source, tables, slot, new_slot=new_slot)
    async with source.keeping_log():
        restaged = await peer.call(making, undo=Restaged.abandon)
        staged: list[_Staged] = []
        made: list[str] = []
        try:
            for each, output in zip(wanted, restaged.outputs, strict=True):
                name = staging_name(database.client, item)
                made += [name, f"{name}_errors"]
                read = await peer.call(partial(_stage, database, item, restaged, (output, name)))
                staged.append(replace(read, wanted=each))
            await _join(database, item, restaged, staged, new_slot=new_slot)
        except BaseException:
            peer.leave(restaged.abandon)
            await asyncio.to_thread(forget, database.client, made)
            raise
        peer.leave(restaged.close)
    return restaged.notices


@dataclass(frozen=True)
class _Staged:
    """A table that was read: under which names, and what would commit it."""

    output: int
    collection: str
    errors: str
    time: int
    appends: tuple[c.Append, ...]
    wanted: Wanted | None = None

    def pending(self) -> dict[str, Any]:
        """What the source's item remembers of it."""
        assert self.wanted is not None
        return {
            "output": self.output,
            "staging": self.collection,
            "errors": self.errors,
            "time": self.time,
            "place": list(self.wanted.place),
            "part": 0 if self.wanted.part is None else self.wanted.part.number,
        }


def _stage(database: Database, item: Item, restaged: Restaged, to: tuple[int, str]) -> _Staged:
    """Read one table, that of an output, into a collection of that name; blocks."""
    output, name = to
    client, source = database.client, restaged.source
    feed = postgres_table(source, output, name)
    progress = next(p for p in database.catalog.parts_of(item.number) if p.kind == "progress")
    # Before every time that the source may be complete at when the table joins.
    time = (client.state.collection(progress.collection).upper.only() or 1) - 1
    wanted = ((name, feed.schema, feed.key), (f"{name}_errors", ERRORS_SCHEMA, ("key",)))
    create(client, item, wanted, time)
    collection, errors = (client.state.collection(each) for each, _, _ in wanted)
    reading = Peer("statement", f'reading for source "{item.name}"', database.clock)
    engine = database.work.sources[item.number].engine(reading)
    what = Staging(feed, collection, errors, time)
    appends = stage(client, engine, source, restaged.splits(output), what)
    return _Staged(output, name, errors.name, time, tuple(appends))


@asynccontextmanager
async def at_rest(database: Database, item: Item) -> AsyncIterator[None]:
    """A block in which a source does not tick."""
    worker = database.work.sources.get(item.number)
    if worker is None:
        yield
        return
    async with worker.resting(REST_S) as rests:
        if not rests:
            raise NotYetComplete(
                f'source "{item.name}" reads for too long',
                detail=worker.status.error,
                hint="Run the statement again when it has caught up.",
            )
        yield


async def _join(
    database: Database,
    item: Item,
    restaged: Restaged,
    staged: Sequence[_Staged],
    *,
    new_slot: bool,
) -> None:
    """Make the tables outputs of the source, in one commit, between two ticks of it."""
    # door: PostgreSQL's client: only who has such an object
    from noonmark.source.impl.postgres.restage import retired

    store, client = database.store, database.client
    async with at_rest(database, item), store.turn:
        if store.catalog.by_number.get(item.number) is not item:
            raise SerializationFailure(
                f'source "{item.name}" was changed meanwhile', hint="Run the statement again."
            )
        source: Postgres = restaged.source
        if new_slot:  # nothing of the old slot's outputs is read any more
            source = retired(source, range(len(source.tables) - len(staged)))
        pending = [*item.definition.get("pending", ()), *(each.pending() for each in staged)]
        definition = {**item.definition, "source": source.to_plain(), "pending": pending}
        parts = {p.kind: p.collection for p in store.catalog.parts_of(item.number)}
        await database.work.remove([item.number])

        def commands(_: int) -> list[c.AnyCommand]:
            state = client.state
            upper = state.collection(parts["progress"]).upper
            made: list[c.AnyCommand] = []
            for each in staged:
                made += each.appends
                made += completing(client, state.names[each.collection], upper)
                made += completing(client, state.names[each.errors], each.time + 1)
            return made

        try:
            await store.change([replace(item, definition=definition)], beside=commands)
        finally:
            await database.work.take_up([item.number])
