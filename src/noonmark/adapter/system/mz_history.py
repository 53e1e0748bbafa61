"""mz_internal and mz_catalog: who is here, what happened, and what has its first rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from noonmark.adapter.catalog.item import BUILT_IN
from noonmark.adapter.catalog.privilege import is_superuser
from noonmark.adapter.system.facts import Facts, Row, relation
from noonmark.rows.value import timestamptz_of

if TYPE_CHECKING:
    from noonmark.adapter.schedule.sinks import SinkWorker
    from noonmark.adapter.schedule.sources import SourceWorker

#: Sessions have numbers; Materialize's users ask for a uuid, and get one that follows from it.
_SESSIONS = UUID("2f0bb3cb-7e0e-4a3c-8a2e-0f7f3a1e5c11")


def _audit_events(facts: Facts) -> Iterable[Row]:
    """Every change of the catalog, newest last; the newest 10,000 are kept."""
    for number, time, event, kind, details, role in facts.session.database.store.audit.events:
        yield (number, event, kind, details, role, timestamptz_of(1000 * time))


def _sessions(facts: Facts) -> Iterable[Row]:
    asks = facts.session
    all_of_it = is_superuser(facts.catalog, asks.user)
    for session in asks.database.sessions.values():
        is_own = asks.user in (session.session_user, session.login_user)
        peer = session.peer.rpartition(":")[0] or session.peer if all_of_it or is_own else None
        yield (
            uuid5(_SESSIONS, f"{session.id}/{session.connected_ms}"),
            session.id,
            _role_id(facts, session.session_user),
            peer,
            timestamptz_of(1000 * session.connected_ms),
        )


def _role_id(facts: Facts, name: str) -> str:
    role = facts.catalog.roles().get(name)
    return "s1" if role is None or name == BUILT_IN else role.id


def _hydration(facts: Facts) -> Iterable[Row]:
    """Whether the first contents are there; of a sink, whether the first rows are written."""
    for item in facts.catalog.items("materialized-view", "index", "source", "sink"):
        if item.kind == "sink":
            sink = facts.work.sinks.get(item.number)
            yield (item.id, None, sink is not None and sink.sink.frontier is not None)
        elif item.kind == "source" and facts.frontiers(item) is None:
            source = facts.work.sources.get(item.number)
            yield (item.id, None, source is not None and source.status.ticks > 0)
        else:
            found = facts.frontiers(item)
            if found is not None:
                since, upper = found
                yield (item.id, None, upper is None or (since is not None and upper > since))


def _history(facts: Facts, workers: Mapping[int, SourceWorker | SinkWorker]) -> Iterable[Row]:
    """What each of them was since the server started."""
    for number, worker in workers.items():
        item = facts.catalog.by_number.get(number)
        if item is not None:
            told = facts.is_told(item)
            for time, state, error in worker.history.entries():
                shown = error if told else None
                yield (timestamptz_of(1000 * time), item.id, state, shown, None, None)


_T, _B = "text", "bigint"
_HISTORY = {"status": _T, "error": _T, "details": "jsonb", "replica_id": _T}

RELATIONS = (
    relation("mz_catalog.mz_audit_events", _audit_events, 14_400, id="bigint not null",
             event_type="text not null", object_type="text not null", details="jsonb not null",
             user=_T, occurred_at="timestamptz not null"),
    relation("mz_internal.mz_sessions", _sessions, 14_401, id="uuid not null",
             connection_id="bigint not null", role_id="text not null", client_ip=_T,
             connected_at="timestamptz not null"),
    relation("mz_internal.mz_hydration_statuses", _hydration, 14_402, object_id="text not null",
             replica_id=_T, hydrated="boolean not null"),
    relation("mz_internal.mz_source_status_history",
             lambda facts: _history(facts, facts.work.sources), 14_403,
             occurred_at="timestamptz not null", source_id="text not null", **_HISTORY),
    relation("mz_internal.mz_sink_status_history",
             lambda facts: _history(facts, facts.work.sinks), 14_404,
             occurred_at="timestamptz not null", sink_id="text not null", **_HISTORY),
)  # fmt: skip
