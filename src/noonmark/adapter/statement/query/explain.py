"""EXPLAIN: how a query is answered, at which time, and how a view is maintained."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.contract import Field, Outcome, Rows
from noonmark.adapter.peek.chunks import Listed
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.session.transaction import current
from noonmark.adapter.statement.handler import Described, Describers, Handlers
from noonmark.adapter.statement.query.select import planned, wish_of
from noonmark.adapter.statement.query.subscribe_view import is_maintained
from noonmark.adapter.subscribe.follow import is_linear
from noonmark.adapter.timestamp.choice import explain, select_timestamp
from noonmark.adapter.weight import weight_of
from noonmark.errors import Unsupported, WrongObjectType
from noonmark.rows.types import SqlType, Text
from noonmark.sql.ir.show import show
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.schedule.views import ViewWorker
    from noonmark.adapter.session.session import AdapterSession

FIELDS = (Field("QUERY PLAN", Text()),)
_READS = (st.Select, st.Subscribe)


async def describe_explain(
    session: AdapterSession, statement: st.Explain, types: Sequence[SqlType | None]
) -> Described:
    """One column of text; the parameters are those of what is explained."""
    inner = statement.statement
    if not isinstance(inner, _READS):
        return Described(fields=FIELDS)
    return Described((await planned(session, inner, types)).parameters, FIELDS)


async def run_explain(
    session: AdapterSession, statement: st.Explain, values: Sequence[Any]
) -> Outcome:
    """The explanation, a line a row."""
    if statement.stage == "materialized view":
        lines = await _view(session, statement)
    elif not isinstance(statement.statement, _READS):
        what = type(statement.statement).__name__
        raise Unsupported(f"EXPLAIN of {what} is not supported", hint="EXPLAIN a SELECT.")
    elif statement.stage == "timestamp":
        lines = await _timestamp(session, statement.statement, values)
    else:
        lines = await _plan(session, statement.statement, values)
    return Rows(FIELDS, Listed([(line,) for line in lines]), "EXPLAIN", counted=False)


async def _plan(
    session: AdapterSession, statement: st.Select | st.Subscribe, values: Sequence[Any]
) -> list[str]:
    plan = await planned(session, statement, (), values)
    weight = weight_of(plan.catalog, statement.query.text)
    lines = (await PLANNER.run(weight, show, plan.peek.relation)).splitlines()
    if isinstance(statement, st.Subscribe):
        how = "followed by its changes" if is_linear(plan.peek) else "recomputed where it changes"
        if plan.peek.system:
            return [*lines, "", "Subscribe: in process, looked at once a second"]
        if is_maintained(session, plan):
            return [*lines, "", "Subscribe: maintained as a view, which ends with it"]
        return [*lines, "", f"Subscribe: in process, {how}"]
    path = session.database.reads.path(plan.peek)
    return [*lines, "", f"Answered: {path.kind}", f"Why: {path.why}"]


async def _timestamp(
    session: AdapterSession, statement: st.Select | st.Subscribe, values: Sequence[Any]
) -> list[str]:
    plan = await planned(session, statement, (), values)
    transaction = current(session)
    if transaction is not None and transaction.time is not None:
        return [f"the transaction reads at {transaction.time}"]
    wish = await wish_of(session, statement, plan, values)
    question = await session.database.reads.question(plan.peek.collections, wish)
    return explain(question, select_timestamp(question))


def view_worker(session: AdapterSession, name: st.Name, verb: str) -> ViewWorker:
    """What maintains the materialized view of that name."""
    access = session.access(f"{verb} MATERIALIZED VIEW")
    item = access.named(name.parts, name.position)
    worker = session.database.work.views.get(item.number)
    if item.kind not in ("materialized-view", "index") or worker is None:
        raise WrongObjectType(f'"{name.last}" is not a materialized view', position=name.position)
    access.check("view", item)
    return worker


async def _view(session: AdapterSession, statement: st.Explain) -> list[str]:
    assert statement.name is not None, "the parser saw a name"
    worker = view_worker(session, statement.name, "EXPLAIN")
    return await asyncio.to_thread(_explained, worker)


def _explained(worker: ViewWorker) -> list[str]:
    from noonmark.compute.view.explain import explain_view  # door: only who needs Spark imports it

    return explain_view(worker.taken_up()).splitlines()


HANDLERS: Handlers = {st.Explain: run_explain}
DESCRIBERS: Describers = {st.Explain: describe_explain}
