"""INSERT ... SELECT of many rows by columns: what kernels compute is stored as it is.

Rows that a worker's kernels computed are columns already. Where nothing has to look at single rows
(no CHECK, generated column, domain, UNIQUE, FOREIGN KEY, RETURNING or ON CONFLICT), they go from
there into the commit, and keys are compared by columns, too. In a transaction that is so for tables
that it has made itself, as CREATE TABLE AS does.

Law (same): `inserted` is what the statement does row by row, or None; then nothing has happened,
and it is done row by row, which says what is wrong with which row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.adapter.catalog import Item
from noonmark.adapter.session.transaction import OpenTransaction, writing
from noonmark.adapter.statement.dml.insert import InsertPlan
from noonmark.adapter.statement.dml.plan import Source
from noonmark.adapter.statement.dml.read import check_columns, read_then_insert, time_inside
from noonmark.adapter.table.constraints import is_constrained
from noonmark.adapter.table.inserted import InsertedRows
from noonmark.errors import NoonmarkError
from noonmark.rows.conform import conform

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: What a definition says of a table whose rows have to be looked at one by one.
_BY_ROW = {"checks", "generated"}


async def inserted(session: AdapterSession, plan: InsertPlan, values: Sequence[Any]) -> int | None:
    """How many rows the INSERT has written; None where it takes rows.

    Raises:
        ProgramLimitExceeded: there are more than one statement may write.
    """
    source, item = plan.source, plan.item
    if source is None or plan.conflict is not None or plan.returning is not None:
        return None
    if not _is_plain(item):
        return None
    transaction = await writing(session)
    if transaction is not None:
        return await _into_fresh(session, transaction, plan, values)
    compute = partial(_computed, session, item, source, values)
    return await read_then_insert(
        session, source.writing(item.collection), item.collection, compute
    )


async def _into_fresh(
    session: AdapterSession, transaction: OpenTransaction, plan: InsertPlan, values: Sequence[Any]
) -> int | None:
    """The same for a table that the transaction has just made: its rows wait for COMMIT."""
    source, item, fresh = plan.source, plan.item, transaction.fresh
    assert source is not None, "who asks has looked"
    own = transaction.pending.keys() | fresh
    if item.collection not in fresh or own & set(source.peek.collections):
        return None
    if is_constrained(session.catalog, item.collection):
        return None
    reads = source.needs.tables - fresh
    time = await time_inside(session, transaction, reads)
    data = await _computed(session, item, source, values, time)
    if data is None:
        return None
    rows = InsertedRows(data, item.schema, transaction.grow)
    await transaction.write({item.collection: rows}, time, reads)
    return int(data.num_rows)


async def _computed(
    session: AdapterSession, item: Item, source: Source, values: Sequence[Any], time: int
) -> pa.Table | None:
    """The rows as they are stored; None where columns do not serve."""
    peek = source.peek.bound(values, max(time, session.database.clock.now_ms()))
    found = await session.database.reads.table(peek, time)
    check_columns(session, item)
    return None if found is None else await asyncio.to_thread(_fitted, item, found)


def _is_plain(item: Item) -> bool:
    has_domains = any(column.domain is not None for column in item.schema)
    return not has_domains and not _BY_ROW & item.definition.keys()


def _fitted(item: Item, table: pa.Table) -> pa.Table | None:
    """The rows as they are stored; None where one is not as its column has it."""
    try:
        fitted = conform(table.rename_columns(list(item.schema.names)), item.schema)
    except NoonmarkError:
        return None
    strict = item.definition.get("not_null", ())
    return None if any(fitted.column(name).null_count for name in strict) else fitted
