"""mz_catalog and mz_internal: what Materialize's users ask, under its names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from noonmark.adapter.catalog.item import BUILT_IN, DATABASE, Item
from noonmark.adapter.schedule.ended import ERRORED, status_of_table
from noonmark.adapter.schedule.lag import lag_ms
from noonmark.adapter.system.facts import Facts, Row, relation
from noonmark.adapter.system.pg_catalog import schema_oids
from noonmark.adapter.system.qualify import query_now
from noonmark.rows.value import Interval, timestamptz_of
from noonmark.source.contract import HasIncarnations
from noonmark.tvc import known_partitions

if TYPE_CHECKING:
    from noonmark.adapter.schedule.sources import SourceWorker

_TYPE = {
    "subsource": "source",
    "progress": "source",
    "errors": "source",
    "system": "view",
}


def object_type(item: Item) -> str:
    """What Materialize calls the kind of an item."""
    return _TYPE.get(item.kind, item.kind)


def _schema_id(facts: Facts, item: Item) -> str:
    return str(facts.schema_oid(item.schema_name))


def _objects(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items():
        if item.kind not in ("role", "schema"):
            yield (item.id, item.oid, _schema_id(facts, item), item.name, object_type(item),
                   item.owner)  # fmt: skip


def _relations(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items():
        if item.is_relation:
            yield (item.id, item.oid, _schema_id(facts, item), item.name, object_type(item),
                   item.owner)  # fmt: skip


def _tables(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("table"):
        yield (item.id, item.oid, _schema_id(facts, item), item.name, item.owner)


def _sources(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("source", "subsource", "progress", "errors"):
        upstream = str(item.definition.get("upstream", "")).replace("generator", "load-generator")
        kind = upstream if item.kind == "source" else item.kind
        envelope = item.definition.get("envelope")
        yield (item.id, item.oid, _schema_id(facts, item), item.name, kind, envelope, item.owner)


def _views(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("view"):
        yield (item.id, item.oid, _schema_id(facts, item), item.name,
               query_now(facts.catalog, item), item.owner)  # fmt: skip


def _materialized_views(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("materialized-view"):
        yield (item.id, item.oid, _schema_id(facts, item), item.name, "default",
               query_now(facts.catalog, item), item.owner)  # fmt: skip


def _indexes(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("index"):
        on = facts.catalog.by_number.get(item.needs[0]) if item.needs else None
        yield (item.id, item.oid, item.name, None if on is None else on.id, "default", item.owner)


def _columns(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items():
        defaults = item.definition.get("defaults", {}) if item.kind == "table" else {}
        for at, column in enumerate(item.schema, 1):
            yield (item.id, column.name, at, column.nullable, str(column.type),
                   defaults.get(column.name))  # fmt: skip


def _schemas(facts: Facts) -> Iterable[Row]:
    for name, number in schema_oids(facts):
        yield (str(number), number, "u1", name, DATABASE)


def _databases(_: Facts) -> Iterable[Row]:
    return [("u1", 16_384, DATABASE, DATABASE)]


def _roles(facts: Facts) -> Iterable[Row]:
    for at, (name, item) in enumerate(facts.catalog.all_roles().items(), 1):
        inherit = bool(item.definition.get("inherit", True))
        shown = f"s{at}" if not item.number or name == BUILT_IN else item.id
        yield (shown, facts.role_oid(name), name, inherit)


def _connections(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("connection"):
        yield (item.id, item.oid, _schema_id(facts, item), item.name,
               str(item.definition.get("kind", "")), item.owner)  # fmt: skip


def _secrets(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("secret"):
        yield (item.id, item.oid, _schema_id(facts, item), item.name, item.owner)


# --- mz_internal


def _dependencies(facts: Facts) -> Iterable[Row]:
    """Who stands on whom: what an item needs, and the source that a part belongs to."""
    by_number = facts.catalog.by_number
    for item in facts.catalog.items():
        below = dict.fromkeys((*item.needs, *([item.part_of] if item.part_of else ())))
        yield from ((item.id, by_number[number].id) for number in below if number in by_number)


def _frontiers(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items():
        found = facts.frontiers(item)
        if found is not None:
            yield (item.id, *found)


def _lag(facts: Facts) -> Iterable[Row]:
    """How far a view is behind its inputs, and behind the sources and tables below them."""
    for item in facts.catalog.items("materialized-view", "index"):
        own = facts.frontiers(item)
        if own is None:
            continue
        needed = facts.catalog.needs([item.number])
        near = [facts.frontiers(facts.catalog.by_number[n]) for n in item.needs]
        below = [facts.frontiers(i) for i in needed if i.kind in ("table", "source", "subsource")]
        inputs = [each[1] for each in near if each is not None]
        roots = [each[1] for each in below if each is not None]
        yield (item.id, _behind(own[1], inputs), _behind(own[1], roots))


def _wallclock_lag(facts: Facts) -> Iterable[Row]:
    """How long ago the newest complete time of everything stored was; NULL if none is."""
    now_ms = facts.now_ms
    for item in facts.catalog.items():
        found = facts.frontiers(item)
        if found is None:
            continue
        upper = found[1]
        # An empty frontier is complete for ever; a collection that was just made, at no time.
        lag = None if upper == 0 else Interval(0, 0, 0 if upper is None else
                                               max(0, now_ms - upper + 1) * 1000)  # fmt: skip
        yield (item.id, lag)


def _behind(upper: int | None, others: list[int | None]) -> Interval:
    known = [each for each in others if each is not None]
    if upper is None or not known:
        return Interval()
    return Interval(0, 0, max(0, max(known) - upper) * 1000)


def _source_statuses(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("source"):
        worker = facts.work.sources.get(item.number)
        if worker is not None:
            kind = str(item.definition.get("upstream", "")).replace("generator", "load-generator")
            changed = timestamptz_of(1000 * worker.changed_ms)
            status, news = worker.status, worker.news()
            told = facts.is_told(item)
            yield (item.id, item.name, kind, changed, status.state, status.error if told else None,
                   *(_releases(worker) if told else (None, None)),
                   "; ".join(news.values()) or None)  # fmt: skip
            yield from _table_statuses(facts, item, worker)


def _table_statuses(facts: Facts, item: Item, worker: SourceWorker) -> Iterable[Row]:
    """A source with tables has a status for each of them, too."""
    status, errors, news = worker.status, worker.errors(), worker.news()
    changed = timestamptz_of(1000 * worker.changed_ms)
    for part in facts.catalog.parts_of(item.number):
        if part.kind == "subsource":
            failure = errors.get(part.name)
            waiting = None if status.state == ERRORED else status.error
            told = facts.is_told(item) or facts.is_told(part)
            error = waiting if failure is None else failure.message
            yield (part.id, part.name, "subsource", changed,
                   status_of_table(status.state, failure), error if told else None,
                   *(_releases(worker) if told else (None, None)), news.get(part.name))  # fmt: skip


def _releases(worker: SourceWorker) -> tuple[bool | None, str | None]:
    """Whether upstream is told what is durable here and may be forgotten there; why not."""
    if worker.ingestion is None:
        return None, None
    why_not = worker.ingestion.source.releases
    return why_not is None, why_not


def _source_statistics(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("source"):
        worker = facts.work.sources.get(item.number)
        if worker is not None:
            status = worker.status
            records, size = worker.rates.totals()
            known, committed = _offsets(worker)
            lag = None if known is None or committed is None else known - committed
            yield (item.id, item.name, records, size, status.rows, status.rows,
                   status.ticks > 0, known, committed, lag, _lag_seconds(facts, worker),
                   *worker.rates.per_second(facts.session.database.clock.monotonic()))  # fmt: skip


def _lag_seconds(facts: Facts, worker: SourceWorker) -> float | None:
    """How old the last time is at which all that upstream had is durable here."""
    if worker.ingestion is None or worker.ingestion.is_finished:
        return None
    upper = worker.ingestion.resumption_frontier().only()
    return None if upper is None else max(0, facts.now_ms - upper) / 1000


def _offsets(worker: SourceWorker) -> tuple[int | None, int | None]:
    """How far upstream is known to be, and how far it is durable here: offsets, added up."""
    ingestion, last = worker.ingestion, worker.status.last
    if ingestion is None or last is None:
        return None, None
    source: object = ingestion.source
    unit = ingestion.source.offset_unit
    sums = []
    for frontier in (ingestion.remap.latest, last.released):
        counted = {
            partition: offset // unit
            for partition, offset in known_partitions(frontier).items()
            if not isinstance(source, HasIncarnations) or source.is_current(partition)
        }
        sums.append(sum(counted.values()))
    return sums[0], sums[1]


def _sinks(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("sink"):
        known = item.definition
        form = known.get("format", {"kind": "json"})["kind"]
        yield (item.id, item.oid, _schema_id(facts, item), item.name, "kafka",
               f"u{known['connection']}", str(known["envelope"]).lower(), form,
               item.owner)  # fmt: skip


def _sink_statuses(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("sink"):
        worker = facts.work.sinks.get(item.number)
        if worker is not None:
            changed = timestamptz_of(1000 * worker.changed_ms)
            error = worker.error if facts.is_told(item) else None
            yield (item.id, item.name, "kafka", changed, worker.state, error or None)


def _sink_statistics(facts: Facts) -> Iterable[Row]:
    """What this process has written, and the time up to which all is in the topic."""
    for item in facts.catalog.items("sink"):
        worker = facts.work.sinks.get(item.number)
        if worker is not None:
            frontier = worker.sink.frontier
            behind = lag_ms(facts.catalog, facts.state, item, frontier, facts.now_ms)
            lag = None if behind is None else behind / 1000
            yield (item.id, item.name, worker.sink.messages, frontier, lag)


_T, _I, _B, _D = "text", "integer", "bigint", "double precision"

RELATIONS = (
    relation("mz_catalog.mz_objects", _objects, id=_T, oid=_I, schema_id=_T, name=_T, type=_T,
             owner_id=_T),
    relation("mz_catalog.mz_relations", _relations, id=_T, oid=_I, schema_id=_T, name=_T, type=_T,
             owner_id=_T),
    relation("mz_catalog.mz_tables", _tables, id=_T, oid=_I, schema_id=_T, name=_T, owner_id=_T),
    relation("mz_catalog.mz_sources", _sources, id=_T, oid=_I, schema_id=_T, name=_T, type=_T,
             envelope_type=_T, owner_id=_T),
    relation("mz_catalog.mz_views", _views, id=_T, oid=_I, schema_id=_T, name=_T, definition=_T,
             owner_id=_T),
    relation("mz_catalog.mz_materialized_views", _materialized_views, id=_T, oid=_I, schema_id=_T,
             name=_T, cluster_id=_T, definition=_T, owner_id=_T),
    relation("mz_catalog.mz_indexes", _indexes, id=_T, oid=_I, name=_T, on_id=_T, cluster_id=_T,
             owner_id=_T),
    relation("mz_catalog.mz_columns", _columns, id=_T, name=_T, position=_I, nullable="boolean",
             type=_T, default=_T),
    relation("mz_catalog.mz_schemas", _schemas, id=_T, oid=_I, database_id=_T, name=_T,
             owner_id=_T),
    relation("mz_catalog.mz_databases", _databases, id=_T, oid=_I, name=_T, owner_id=_T),
    relation("mz_catalog.mz_roles", _roles, id=_T, oid=_I, name=_T, inherit="boolean"),
    relation("mz_catalog.mz_connections", _connections, id=_T, oid=_I, schema_id=_T, name=_T,
             type=_T, owner_id=_T),
    relation("mz_catalog.mz_secrets", _secrets, id=_T, oid=_I, schema_id=_T, name=_T, owner_id=_T),
    relation("mz_internal.mz_object_dependencies", _dependencies, object_id="text not null",
             referenced_object_id="text not null"),
    relation("mz_internal.mz_frontiers", _frontiers, object_id="text not null", read_frontier=_B,
             write_frontier=_B),
    relation("mz_internal.mz_materialization_lag", _lag, object_id=_T, local_lag="interval",
             global_lag="interval"),
    relation("mz_internal.mz_source_statuses", _source_statuses, id=_T, name=_T, type=_T,
             last_status_change_at="timestamptz", status=_T, error=_T, releases="boolean",
             releases_detail=_T, notice=_T),
    relation("mz_internal.mz_source_statistics", _source_statistics, id=_T, name=_T,
             messages_received=_B, bytes_received=_B, updates_staged=_B, updates_committed=_B,
             snapshot_committed="boolean", offset_known=_B, offset_committed=_B, offset_lag=_B,
             lag_seconds=_D, messages_per_second=_D, bytes_per_second=_D),
    relation("mz_catalog.mz_sinks", _sinks, id=_T, oid=_I, schema_id=_T, name=_T, type=_T,
             connection_id=_T, envelope_type=_T, format=_T, owner_id=_T),
    relation("mz_internal.mz_sink_statuses", _sink_statuses, id=_T, name=_T, type=_T,
             last_status_change_at="timestamptz", status=_T, error=_T),
    relation("mz_internal.mz_sink_statistics", _sink_statistics, id=_T, name=_T,
             messages_committed=_B, frontier=_B, lag_seconds=_D),
    relation("mz_internal.mz_wallclock_global_lag", _wallclock_lag, object_id="text not null",
             lag="interval"),
)  # fmt: skip
