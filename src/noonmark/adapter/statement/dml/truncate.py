"""TRUNCATE: all rows of tables go at one time, and their sequences may begin again with it.

Law (foreign): a table that others refer to is emptied only together with them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.session.transaction import current, end_group
from noonmark.adapter.statement.ddl.sequence import run_alter_sequence
from noonmark.adapter.statement.dml.read import (
    Needs,
    Reading,
    Writes,
    check_columns,
    read_then_write,
)
from noonmark.adapter.statement.dml.target import target
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.table.constraints import referencing
from noonmark.errors import Unsupported
from noonmark.sql.ir.relation import Scan
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


async def run_truncate(
    session: AdapterSession, statement: st.Truncate, _: Sequence[Any]
) -> Outcome:
    """Take all rows out of tables, at one time."""
    catalog = session.catalog
    items = [target(session, catalog, name, "truncate") for name in statement.tables]
    items, notices = _with_children(catalog, items, cascade=statement.cascade)
    session.access("TRUNCATE", catalog).check("target", *items)

    async def empty() -> None:
        needs = Needs(frozenset(i.collection for i in items))
        await read_then_write(session, needs, compute)

    async def compute(reading: Reading) -> tuple[Writes, Any]:
        writes = {}
        for item in items:
            found = await reading.multiset(Peek.of(Scan(item.collection, item.schema)))
            writes[item.collection] = [(row, -count) for row, count in found.items()]
        check_columns(session, *items)
        return writes, None

    async def restart() -> None:
        await empty()
        for item in items:
            for part in catalog.parts_of(item.number):
                if part.kind == "sequence":
                    name = st.Name((part.schema_name, part.name))
                    again = st.AlterSequence(name, {"restart": None})
                    await run_alter_sequence(session, again, ())

    await (_as_one(session, restart) if statement.restart else empty())
    return Done("TRUNCATE TABLE", tuple(notices))


def _with_children(
    catalog: Catalog, items: Sequence[Item], *, cascade: bool
) -> tuple[list[Item], list[Notice]]:
    """The tables, and with CASCADE those that refer to them.

    Raises:
        Unsupported: others refer to one of them; as in PostgreSQL.
    """
    found = {item.number: item for item in items}
    notices: list[Notice] = []
    waiting = list(found.values())
    while waiting:
        item = waiting.pop(0)
        for child, _foreign in referencing(catalog, item):
            if child.number in found:
                continue
            if not cascade:
                raise Unsupported(
                    "cannot truncate a table referenced in a foreign key constraint",
                    detail=f'Table "{child.name}" references "{item.name}".',
                    hint=f'Truncate table "{child.name}" at the same time, '
                    "or use TRUNCATE ... CASCADE.",
                )
            notices.append(Notice(f'truncate cascades to table "{child.name}"'))
            found[child.number] = child
            waiting.append(child)
    return list(found.values()), notices


async def _as_one(session: AdapterSession, work: Callable[[], Awaitable[None]]) -> None:
    """Several changes in the session's transaction, or in one of their own."""
    if current(session) is not None:
        await work()
        return
    session.grouped = True
    try:
        await work()
        await end_group(session)
    except BaseException:
        transaction, session.transaction = session.transaction, None
        if transaction is not None:
            await transaction.rollback()
        raise
    finally:
        session.grouped = False


HANDLERS: Handlers = {st.Truncate: run_truncate}
