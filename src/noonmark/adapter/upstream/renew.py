"""ALTER SOURCE ... REFRESH of a topic: it is read anew, beside the source, and takes its place.

    beside   an ingestion of its own reads the topic that has the name now, from its beginning, as
             another incarnation (`source.impl.kafka.partitions`), into collections that nobody
             sees. The source stays as it is: in error, or at work
    switch   the source stops; the ingestion beside it reads what has come meanwhile, so that it is
             not behind what was shown. Then one commit, at one time: the relation gets the
             difference, its error is retracted (`swap`), the progress has the partitions of the new
             incarnation beside those of the old one, and the source goes on from there

Law (exact): before that time the relation is what it was; from it on it is what the topic has, as
its envelope says. Under UPSERT that is also the state which later records meet.
Law (all or nothing): a process that ends before the switch leaves the source as it was; what it has
read beside is dropped by the next one.

Where it runs: the adapter's loop; reading in threads and on Spark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from noonmark.adapter.aside import to_its_end
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.audit import ACTING
from noonmark.adapter.schedule.ended import remedy_of
from noonmark.adapter.upstream import staging
from noonmark.adapter.upstream.refresh import at_rest, at_work
from noonmark.adapter.upstream.swap import Read, Swap
from noonmark.adapter.upstream.topic import topic_feed
from noonmark.errors import (
    NoonmarkError,
    NotYetComplete,
    SerializationFailure,
    SourceStalled,
    StorageError,
)
from noonmark.ingest.ingestion import Ingestion
from noonmark.peer import Peer, ask
from noonmark.persist.log import command as c
from noonmark.remap.rows import REMAP_SCHEMA
from noonmark.source.contract import ERRORS_SCHEMA
from noonmark.storage.transaction import Transaction
from noonmark.tvc import Antichain, Partitioned, known_partitions, partition_frontier

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.ingest.engine import Engine
    from noonmark.source.impl.kafka import Kafka

T = TypeVar("T")

_TRANSIENT = (SourceStalled, StorageError)
#: How long the last tick may take, for which all DDL waits.
_LAST_TICK_S = 10.0
_PAUSES_S = (0.25, 0.5, 1.0, 2.0, 0.0)


async def renew_topic(database: Database, item: Item) -> None:
    """Read a source's topic anew.

    Raises:
        ConfigError: there is no topic of its name.
        SourceStalled: the brokers do not answer at once.
        NotYetComplete: they, or Spark, fail again and again.
        SerializationFailure: the source was altered meanwhile.
    """
    from noonmark.source.impl import kafka  # door: its client: only who has such a source

    worker = await at_work(database, item)
    _check_same(database, item)
    before = worker.source()
    assert isinstance(before, kafka.Kafka)
    source = await kafka.renew(before)
    peer = Peer("statement", f'reading for source "{item.name}"', database.clock)
    name = staging.staging_name(database.client, item)
    beside = _Beside(database, item, source, name, peer)
    try:
        reading = await beside.ask(partial(beside.begin, worker.engine(beside.peer)))
        await _patiently(beside, lambda: beside.ask(reading.tick))
        await _patiently(beside, lambda: to_its_end(_switch(beside, reading)))
    except BaseException:
        await asyncio.to_thread(staging.forget, database.client, beside.names)
        raise
    finally:
        beside.peer.leave()
        source.leave()


async def _patiently(beside: _Beside, act: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Do what may fail for a reason that goes away, as a tick may: a few times."""
    for pause_s in _PAUSES_S:
        try:
            await act()
        except Exception as error:
            if isinstance(error, NoonmarkError) and not isinstance(error, _TRANSIENT):
                raise
            why = error
        else:
            return
        await beside.database.clock.sleep(pause_s)
    raise NotYetComplete(
        f'the topic of source "{beside.item.name}" could not be read anew',
        detail=str(why),
        hint="Run the statement again when the cause has gone.",
    ) from why


async def _switch(beside: _Beside, reading: Ingestion) -> None:
    database, item = beside.database, beside.item
    store = database.store
    async with at_rest(database, item), store.turn:
        _check_same(database, item)
        worker = database.work.sources.get(item.number)
        await database.work.remove([item.number])
        try:
            shown = None if worker is None else worker.ingestion
            if shown is None or not shown.is_settled:
                raise NotYetComplete(
                    f'source "{item.name}" has not read what it has bound',
                    detail=None if worker is None else worker.status.error,
                    hint="Run the statement again when it has.",
                )
            # What came since the tick before: little, of somebody who has just answered.
            await beside.ask(reading.tick, _LAST_TICK_S)
            switched = await asyncio.to_thread(beside.switched, shown, reading)
            await switched.txn.decide(patient=True)
            store.became(switched.catalog)
            await asyncio.to_thread(database.oracle.blocking.apply_write, switched.time)
        finally:
            await database.work.take_up([item.number])


def _check_same(database: Database, item: Item) -> None:
    """Refuse a source that is not what it was."""
    if database.store.catalog.by_number.get(item.number) is not item:
        raise SerializationFailure(
            f'source "{item.name}" was changed meanwhile', hint="Run the statement again."
        )


@dataclass(frozen=True)
class _Switched:
    """What is to be committed, at which time, and the catalog from then on."""

    txn: Transaction
    time: int
    catalog: Catalog


@dataclass(frozen=True)
class _Beside:
    """The next incarnation of a source, and the collection that it is read into."""

    database: Database
    item: Item
    source: Kafka
    name: str
    peer: Peer

    async def ask(self, act: Callable[[], T], seconds: float | None = None) -> T:
        """Do what asks the topic, in a thread that nobody else needs."""
        return await ask("statement", f'on source "{self.item.name}"', act, seconds=seconds)

    @property
    def names(self) -> tuple[str, str, str]:
        """The collections: rows, errors, remap."""
        return self.name, f"{self.name}_errors", f"{self.name}_remap"

    def begin(self, engine: Engine) -> Ingestion:
        """What reads it; blocks."""
        database, item = self.database, self.item
        client, oracle = database.client, database.oracle.blocking
        feed = topic_feed(database.catalog, self.source, self.name, item.definition)
        shapes = (feed.schema, feed.key), (ERRORS_SCHEMA, ("key",)), (REMAP_SCHEMA, ("partition",))
        wanted = [(name, *shape) for name, shape in zip(self.names, shapes, strict=True)]
        staging.create(client, item, wanted, oracle.write_ts())
        return Ingestion(
            client,
            oracle,
            self.source,
            item.name,
            engine,
            feeds=(feed,),
            errors_name=self.names[1],
            remap_name=self.names[2],
            remedy=remedy_of(database.catalog, item),
        ).start()

    def switched(self, shown: Ingestion, reading: Ingestion) -> _Switched:
        """The switch, while the source is stopped; blocks."""
        database, item, client = self.database, self.item, self.database.client
        time, txn = database.oracle.blocking.write_ts(), Transaction(client)
        swap = Swap(database, item, txn, time)
        was, now = _last(shown), _last(reading)
        swap.contents(Read(item.collection, was), Read(self.name, now), is_whole=True)
        names, errors = {self.name: item.collection}, [Read(reading.errors.name, now)]
        swap.errors(shown.errors, was, names, errors, is_whole=True)
        shown.seal_at(txn, time, _both(shown.remap.latest, reading.remap.latest))
        for name in self.names:
            txn.add(c.Drop(client.state.collection(name).id))
        definition = {**item.definition, "source": self.source.to_plain()}
        after = database.catalog.changed([replace(item, definition=definition)], ())
        database.store.put(txn, after, time, ACTING.get())
        return _Switched(txn, time, after)


def _last(ingestion: Ingestion) -> int:
    """The last time that is complete."""
    upper = ingestion.remap.upper.only()
    assert upper is not None, "a topic does not end"
    return upper - 1


def _both(was: Antichain[Partitioned], now: Antichain[Partitioned]) -> Antichain[Partitioned]:
    """Two incarnations, whose partitions are not the same."""
    return partition_frontier({**known_partitions(was), **known_partitions(now)})
