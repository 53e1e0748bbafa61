"""Real-time recency: the time by which all that upstream had when the query arrived is in.

The four steps of a CONSISTENT read, for every source that the query uses, directly or through
views:

    1  after the query has arrived, ask the source for its upper: `latest()`, or `acknowledged()`
       where a source has acknowledged more than can be read yet
    2  wait until a durable binding covers it: `source_timestamps`
    3  the query's time is at least max(max(source_uppers), max(source_timestamps))
    4  the read at that time waits until every input is complete there (`reads`)

Law: a record that upstream had acknowledged before the query arrived is in the answer. It needs a
`latest()` that is linearizable: a source that has none makes such a read an error, never a guess.
With one source and any number of tables such reads are linearizable; with several sources, or over
several views, they still see everything that was upstream, at times that never change.

Only a read that asks for it pays: nothing is remembered between two of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from noonmark.adapter.catalog import Item
from noonmark.adapter.peek.planning import PlannedQuery
from noonmark.adapter.schedule.ended import outputs_of
from noonmark.adapter.system.settings import span_of
from noonmark.adapter.upstream.prepare import open_source
from noonmark.errors import QueryCanceled, SourceStalled, Unsupported
from noonmark.persist.log.definite import error_at
from noonmark.persist.log.state import State
from noonmark.remap.rows import element_of
from noonmark.source.contract import START, HasAcknowledged, Source, shown_partition
from noonmark.tvc import Antichain, Partitioned, known_partitions

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.session.session import AdapterSession

TIMEOUT_DEFAULT_MS = 10_000
_ON = ("on", "true", "yes", "1")
#: How many partitions an error names.
_SHOWN = 3
_PAUSE_FIRST_S, _PAUSE_LARGEST_S = 0.02, 0.25


def is_on(session: AdapterSession) -> bool:
    """Whether the session asks for real-time recency."""
    return session.variables.get("real_time_recency", "off").lower() in _ON


async def recency_of(session: AdapterSession, plan: PlannedQuery) -> int | None:
    """The recency bound of a query; None when the session does not ask for one."""
    if not is_on(session):
        return None
    database = session.database
    if database.read_only:
        raise Unsupported(
            "real-time recency is not supported by a read-only server",
            detail="Only the writer knows how far its sources are.",
            hint="SET real_time_recency = off, or connect to the writer.",
        )
    sources = sources_below(database, plan.leaves)
    if not sources:
        return None
    timeout_ms = _timeout_ms(session)
    waiting: dict[str, str] = {}
    try:
        async with asyncio.timeout(timeout_ms / 1000 if timeout_ms else None):
            times = await asyncio.gather(
                *(_time_of(database, source, waiting) for source in sources)
            )
    except TimeoutError:
        missing = "".join(f" Not covered: {each}." for each in waiting.values())
        raise QueryCanceled(
            "canceling statement: its sources could not be brought up to date in time",
            detail=f"real_time_recency_timeout is {timeout_ms} ms.{missing}",
            hint="Wait longer, or SET real_time_recency = off.",
        ) from None
    return max(times)


def _timeout_ms(session: AdapterSession) -> int:
    text = session.variables.get("real_time_recency_timeout")
    return TIMEOUT_DEFAULT_MS if text is None else span_of(text)


def sources_below(database: Database, items: Iterable[Item]) -> list[Item]:
    """The sources that items are computed from, directly or not.

    Raises:
        Unsupported: one of them cannot say how far it is.
    """
    found = database.catalog.needs(item.number for item in items if not item.is_virtual)
    sources = [item for item in found if item.kind == "source" and not item.is_written]
    for item in sources:
        if not _source(database, item).latest_is_linearizable:
            raise Unsupported(
                f'source "{item.name}" cannot be read with real-time recency',
                detail="What it says about how far upstream is may be older than an answer "
                "that upstream gave before: it is not linearizable.",
                hint="SET real_time_recency = off.",
            )
    return sources


def _source(database: Database, item: Item) -> Source:
    worker = database.work.sources.get(item.number)
    return open_source(database, item) if worker is None else worker.source()


async def _time_of(database: Database, item: Item, waiting: dict[str, str]) -> int:
    """Steps 1 to 3 for one source; `waiting` says what is missing while it does."""
    client = database.client
    progress = next(
        part.collection
        for part in database.catalog.parts_of(item.number)
        if part.kind == "progress"
    )
    uppers = _uppers(database, item)
    known = await _bound(database, progress)
    worker = database.work.sources.get(item.number)
    source, reached = _source(database, item), START if known is None else known[1]
    waiting[item.name] = f'source "{item.name}", which has not said how far it is'
    if isinstance(source, HasAcknowledged):
        asked = source.acknowledged(reached)
    else:
        asked = source.latest(client.clock, reached)
    try:
        latest = await asyncio.wrap_future(client.runtime.submit(asked))
    except SourceStalled:
        now = database.catalog.by_number.get(item.number)
        if worker is None or now is None or worker is database.work.sources.get(item.number):
            raise
        return await _time_of(database, now, waiting)  # it was begun anew, and says it again
    pause_s = _PAUSE_FIRST_S
    while known is None or not (
        known[1].at_or_beyond(latest) or _has_ended(database, item, known[0])
    ):
        waiting[item.name] = _missing(item, source, START if known is None else known[1], latest)
        seen = _upper(client.state, progress)
        worker = database.work.sources.get(item.number)
        if worker is not None and seen is not None:
            worker.want(seen)
        await _moved(database, progress, seen)
        now = database.catalog.by_number.get(item.number)
        if now is not None and now is not item:
            # It may be read anew: what it said before is bound under other partitions, or never.
            return await _time_of(database, now, waiting)
        before, known = known, await _bound(database, progress)
        if before is not None and known is not None and known[1] == before[1]:
            # Upstream lets nobody read on yet: asking at once again would only cost.
            await client.clock.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_LARGEST_S)
    waiting.pop(item.name)
    return max(known[0], *uppers)


def _has_ended(database: Database, item: Item, time: int) -> bool:
    """Whether all relations of a source are in a definite error at a time.

    Then nothing more will come, and a read there is that error: there is nothing to wait for.
    """
    state = database.client.state
    names = [each.collection for each in outputs_of(database.catalog, item)]
    found = [state.collection(name).errors for name in names if name in state.names]
    return bool(found) and all(error_at(errors, time) is not None for errors in found)


def _missing(
    item: Item, source: Source, bound: Antichain[Partitioned], latest: Antichain[Partitioned]
) -> str:
    """What a source has acknowledged and nobody can read here yet."""
    unit = source.offset_unit
    below = known_partitions(bound)
    behind = [
        f"partition {shown_partition(partition)}, "
        f"offsets {below.get(partition, 0) // unit} to {offset // unit - 1}"
        for partition, offset in ({} if latest.is_empty() else known_partitions(latest)).items()
        if offset > below.get(partition, 0)
    ]
    shown = ", ".join(behind[:_SHOWN]) + (", ..." if len(behind) > _SHOWN else "")
    why = ": a transaction may be open there" if isinstance(source, HasAcknowledged) else ""
    return f'source "{item.name}", {shown or "its end"}{why}'


def _uppers(database: Database, item: Item) -> list[int]:
    """The uppers of a source's collections; one that has ended has none."""
    state = database.client.state
    parts = [item, *database.catalog.parts_of(item.number)]
    uppers = [_upper(state, part.collection) for part in parts if part.is_stored]
    return [upper for upper in uppers if upper is not None] or [0]


def _upper(state: State, name: str) -> int | None:
    if name not in state.names:
        return 0
    return state.collection(name).upper.only()


async def _bound(database: Database, progress: str) -> tuple[int, Antichain[Partitioned]] | None:
    """The newest durable binding, as of the last complete time; None before the first."""
    state = database.client.state
    if progress not in state.names:
        return None
    collection = state.collection(progress)
    since, upper = collection.since.only(), collection.upper.only()
    if upper is not None and (since is None or upper <= since):
        return None
    if upper is None:  # the source has ended: its last binding holds for ever
        time = await database.oracle.read_ts()
    else:
        time = upper - 1
    read = database.client.create_or_load(progress)[1]
    snapshot = await asyncio.wrap_future(read.snapshot(max(time, since or 0)))
    counts = await asyncio.to_thread(snapshot.counts)
    return time, Antichain(tuple(element_of(row) for row in counts))


async def _moved(database: Database, name: str, seen: int | None) -> None:
    """Wait until a collection's upper is another one."""

    def ready(state: State) -> bool:
        return _upper(state, name) != seen

    client = database.client
    await asyncio.wrap_future(client.runtime.submit(client.journal.wait_for(ready)))
