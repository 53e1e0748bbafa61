"""REFRESH MATERIALIZED VIEW: a materialized view is always fresh; this waits until it shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.session.transaction import current
from noonmark.adapter.statement.ddl.find import find, missing
from noonmark.adapter.statement.ddl.path import in_path
from noonmark.adapter.statement.handler import Handlers
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


async def run_refresh(session: AdapterSession, statement: st.Refresh, _: Sequence[Any]) -> Outcome:
    """Wait until the view includes everything that was acknowledged before the statement."""
    name = in_path(session, statement).name
    access = session.access("REFRESH MATERIALIZED VIEW")
    item = find(access, "materialized-view", name)
    if item is None:
        raise missing("materialized-view", name)
    access.check("view", item)
    transaction = current(session)
    if transaction is None or item.collection not in transaction.fresh:
        reads = session.database.reads
        chosen = await reads.choose([item.collection])
        await reads.complete([item.collection], chosen.time)
    told = f'materialized view "{item.name}" is maintained: it is always fresh'
    return Done("REFRESH MATERIALIZED VIEW", (Notice(told),))


HANDLERS: Handlers = {st.Refresh: run_refresh}
