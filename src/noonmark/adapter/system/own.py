"""noonmark.*: frontiers, shards, capabilities and ticks, as the location and the work have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.catalog.rights import may_read
from noonmark.adapter.schedule.ended import ERRORED, error_now
from noonmark.adapter.schedule.lag import lag_ms
from noonmark.adapter.system.facts import Facts, Row, relation

if TYPE_CHECKING:
    from noonmark.adapter.schedule.views import ViewWorker


def _frontiers(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items():
        found = facts.frontiers(item)
        if found is not None:
            lag = lag_ms(facts.catalog, facts.state, item, found[1], facts.now_ms)
            yield (item.id, item.name, item.kind, *found, lag)


def _shards(facts: Facts) -> Iterable[Row]:
    for shard in facts.state.collections.values():
        parts = sum(len(batch.parts) for batch in shard.batches)
        rows = sum(batch.rows for batch in shard.batches)
        size = sum(batch.bytes for batch in shard.batches)
        item = facts.catalog.of_collection(shard.name)
        yield (
            f"c{shard.id}",
            shard.name,
            None if item is None else item.id,
            shard.since.only(),
            shard.upper.only(),
            len(shard.batches),
            parts,
            rows,
            size,
        )


def _capabilities(facts: Facts) -> Iterable[Row]:
    for hold in facts.state.holds.values():
        shard = facts.state.collections.get(hold.collection)
        name = None if shard is None else shard.name
        kind = "write" if hold.writes else "read"
        yield (hold.id, name, kind, hold.frontier.only(), hold.owner, hold.expires_ms)


def _ticks(facts: Facts) -> Iterable[Row]:
    for worker in facts.work.views.values():
        for record in worker.records:
            yield (
                record.view, record.lower, record.upper, record.rows_in, record.rows_out,
                record.errors, record.jobs, record.ms, record.strategy,
                record.touched,
            )  # fmt: skip


def _view_statuses(facts: Facts) -> Iterable[Row]:
    """How each maintained view is doing; what stops one, for those who may read it.

    An error may name the row that a view does not get past.
    """
    for item in facts.catalog.items("materialized-view", "index"):
        worker, found = facts.work.views.get(item.number), facts.frontiers(item)
        if worker is None or found is None:
            continue
        since, upper = found
        hydrates = since is not None and upper is not None and upper <= since
        status, error, hint = _trouble(facts, item, worker)
        status = status or ("hydrating" if hydrates else "running")
        read = facts.catalog.by_number[item.needs[0]] if item.kind == "index" else item
        if may_read(facts.session.catalog, facts.session.user, read):
            yield (item.id, item.name, status, error, hint)
        else:
            yield (item.id, item.name, status, None, None)


def _trouble(facts: Facts, item: Item, worker: ViewWorker) -> tuple[str | None, ...]:
    """What is wrong with a view: its status, the error and what to do; None where nothing is."""
    if worker.error is not None:
        return "stalled", worker.error.message, worker.error.hint
    taken_over = error_now(facts.state, item.collection)
    if taken_over is not None:
        return ERRORED, taken_over.message, taken_over.hint
    if worker.failing is not None:
        more = worker.failing.errors - 1
        said = worker.failing.message + (f" (and {more:,} more)" if more else "")
        return ERRORED, said, _FAILING_HINT
    return None, None, None


_T, _B = "text", "bigint"
_FAILING_HINT = "The view answers again once the rows it reads, or its definition, are corrected."

RELATIONS = (
    relation("noonmark.frontiers", _frontiers, id="text not null", name="text not null",
             kind="text not null", since=_B, upper=_B, lag_ms=_B),
    relation("noonmark.shards", _shards, id="text not null", name="text not null", item_id=_T,
             since=_B, upper=_B, batches=_B, parts=_B, rows=_B, bytes=_B),
    relation("noonmark.capabilities", _capabilities, id="text not null", collection=_T, kind=_T,
             frontier=_B, owner=_T, expires_ms=_B),
    relation("noonmark.view_statuses", _view_statuses, id="text not null", name="text not null",
             status="text not null", error=_T, hint=_T),
    relation("noonmark.ticks", _ticks, view="text not null", lower=_B, upper=_B, rows_in=_B,
             rows_out=_B, errors=_B, jobs=_B, ms="double precision", strategy=_T,
             rows_touched=_B),
)  # fmt: skip
