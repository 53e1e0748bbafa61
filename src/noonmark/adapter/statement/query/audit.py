"""AUDIT MATERIALIZED VIEW: the view against its definition, recomputed from its inputs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.contract import Field, Notice, Outcome, Row, Rows
from noonmark.adapter.peek.chunks import Listed
from noonmark.adapter.peek.planning import time_of
from noonmark.adapter.peek.reads import Wish
from noonmark.adapter.session.transaction import isolation_of
from noonmark.adapter.statement.handler import Described, Describers, Handlers
from noonmark.adapter.statement.query.explain import view_worker
from noonmark.rows.types import BigInt, SqlType, Text
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.schedule.views import ViewWorker
    from noonmark.adapter.session.session import AdapterSession
    from noonmark.compute.view.audit import Audit


def _fields(worker: ViewWorker) -> tuple[Field, ...]:
    columns = (Field(column.name, column.type) for column in worker.item.schema)
    return (Field("mz_diff", BigInt()), Field("mz_error", Text()), *columns)


async def describe_audit(
    session: AdapterSession, statement: st.Audit, _: Sequence[SqlType | None]
) -> Described:
    """How often a row is there too often, an error, the row."""
    return Described(fields=_fields(view_worker(session, statement.name, "AUDIT")))


async def run_audit(session: AdapterSession, statement: st.Audit, _: Sequence[Any]) -> Outcome:
    """The rows in which the view differs from its definition at one time: none, if all is well."""
    worker = view_worker(session, statement.name, "AUDIT")
    database = session.database
    view = await asyncio.to_thread(worker.taken_up)
    names = (view.name, *view.definition.inputs)
    as_of = None if statement.as_of is None else time_of(session, statement.as_of)
    choice, held = await database.reads.choose_held(names, Wish(isolation_of(session), as_of))
    try:
        await database.reads.complete(names, choice.time)
        await database.spark()
        found = await asyncio.to_thread(_audited, worker, choice.time)
    finally:
        await database.reads.holds.release(held)
    rows: list[Row] = [(each.extra, each.error, *each.row) for each in found.differences]
    return Rows(_fields(worker), Listed(rows), "AUDIT", notices=_notices(found))


def _audited(worker: ViewWorker, time: int) -> Audit:
    from noonmark.compute.view.audit import audit  # door: only who needs Spark imports it

    return audit(worker.taken_up(), time)


def _notices(found: Audit) -> tuple[Notice, ...]:
    """That the text itself could not be the judge."""
    if found.judge != "maintained":
        return ()
    return (
        Notice(
            "the query as it is written could not be asked; the maintained plan was",
            detail="Either a value in it that is not needed has an error now, or the query "
            "is too large for the plain meaning and has a part that Spark has not.",
        ),
    )


HANDLERS: Handlers = {st.Audit: run_audit}
DESCRIBERS: Describers = {st.Audit: describe_audit}
