"""SUBSCRIBE: rows that come as they happen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from noonmark.adapter.contract import Outcome, Rows
from noonmark.adapter.peek.planning import PlannedQuery, time_of
from noonmark.adapter.session.transaction import reading
from noonmark.adapter.statement.handler import Described, Describers, Handlers
from noonmark.adapter.statement.query.select import plan_bytes, planned, wish_of, with_times
from noonmark.adapter.statement.query.subscribe_view import (
    begin_view,
    end_view,
    is_maintained,
    view_peek,
)
from noonmark.adapter.subscribe.envelope import Envelope
from noonmark.adapter.subscribe.stream import Stream, Subscribed
from noonmark.errors import Unsupported
from noonmark.rows.types import SqlType
from noonmark.sql.rules.temporal import separated
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


@dataclass(frozen=True)
class TypedSubscribe(st.Subscribe):
    """A SUBSCRIBE that was prepared: the types of its parameters are known."""

    types: tuple[SqlType, ...] = ()


def _typed(statement: st.Subscribe, types: tuple[SqlType, ...]) -> TypedSubscribe:
    given = {field.name: getattr(statement, field.name) for field in fields(st.Subscribe)}
    return TypedSubscribe(**given, types=types)


def _envelope(statement: st.Subscribe, plan: PlannedQuery) -> Envelope:
    if statement.order:
        raise Unsupported(
            "WITHIN TIMESTAMP ORDER BY is not supported", position=statement.order[0].position
        )
    if statement.envelope is not None and not statement.key:
        raise Unsupported(
            f"ENVELOPE {statement.envelope.upper()} without a key is not supported",
            hint=f"Say ENVELOPE {statement.envelope.upper()} (KEY (...)).",
        )
    return Envelope.of(plan.fields, statement.envelope, statement.key, statement.progress)


def _check(statement: st.Subscribe, plan: PlannedQuery) -> None:
    if plan.peek.system and statement.as_of is not None:
        raise Unsupported(
            f"SUBSCRIBE to {min(plan.peek.system)} AS OF a time is not supported",
            detail="It is made at the moment of a query, and has no history.",
            hint="Leave AS OF away.",
            position=statement.as_of.position,
        )
    separated(plan.peek.relation)  # refuses mz_now() where it has no turn


async def describe_subscribe(
    session: AdapterSession, statement: st.Subscribe, types: Sequence[SqlType | None]
) -> Described:
    """Its parameters and columns."""
    plan = await planned(session, statement, with_times(statement, types))
    key = (statement.query, plan.parameters)
    session.plans.keep(key, plan, plan_bytes(statement.query.text, plan))
    described = _envelope(statement, plan).fields
    return Described(plan.parameters, described, _typed(statement, plan.parameters))


async def run_subscribe(
    session: AdapterSession, statement: st.Subscribe, values: Sequence[Any]
) -> Outcome:
    """Begin at a time that is held from then on."""
    types = statement.types if isinstance(statement, TypedSubscribe) else ()
    plan = await planned(session, statement, types, values)
    _check(statement, plan)
    envelope = _envelope(statement, plan)
    await reading(session, (), "SUBSCRIBE")
    reads = session.database.reads
    names = plan.peek.collections
    up_to = None if statement.up_to is None else time_of(session, statement.up_to, values)
    wish = await wish_of(session, statement, plan, values)
    choice, held = await reads.choose_held(names, wish)
    system = session.system_rows if plan.peek.system else None
    peek = plan.peek.bound(values)
    what = Subscribed(peek, envelope, choice.time, statement.snapshot, up_to, system)
    if not is_maintained(session, plan):
        return Rows(envelope.fields, Stream(session.database, what, held).chunks(), "SUBSCRIBE")
    try:
        item = await begin_view(session, statement.query, plan, values, choice.time)
    finally:
        await reads.holds.release(held)
    held = await reads.holds.take([item.collection], choice.time)
    stream = Stream(session.database, replace(what, peek=view_peek(item)), held)
    chunks = stream.chunks().then(partial(end_view, session.database, item))
    return Rows(envelope.fields, chunks, "SUBSCRIBE")


HANDLERS: Handlers = {st.Subscribe: run_subscribe, TypedSubscribe: run_subscribe}
DESCRIBERS: Describers = {st.Subscribe: describe_subscribe, TypedSubscribe: describe_subscribe}
