"""Statements of one session, on the database's own loop: run to their end, or step by step."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import pyarrow as pa

from noonmark import shown
from noonmark.adapter.contract import CopyIn, CopyOut, Done, Field, Outcome, Row, Rows
from noonmark.adapter.session.session import AdapterSession
from noonmark.embedded.answer import Step
from noonmark.errors import UsageError
from noonmark.rows.types import quote_name
from noonmark.tvc import Update

#: How many rows of a DataFrame are turned into Python's values at a time.
_COPY_ROWS = 10_000
#: The same, where they stay columns.
_COPY_TABLE_ROWS = 200_000


async def run(session: AdapterSession, text: str, values: Sequence[Any]) -> Outcome:
    """A statement's outcome, whose rows are still to come."""
    return await session.execute(await session.prepare(text), values)


async def execute(session: AdapterSession, text: str, values: Sequence[Any]) -> str:
    """Run a statement, or several, to the end; the last one's tag."""
    texts = await session.split(text)
    if values and len(texts) > 1:
        raise UsageError("values are for one statement, and there are several")
    tag = ""
    for each in texts:
        tag = await finish(await run(session, each, values))
    return tag


async def finish(outcome: Outcome) -> str:
    """Take an outcome to its end; its tag."""
    if isinstance(outcome, Done):
        return outcome.tag
    if isinstance(outcome, Rows | CopyOut):
        count = sum([len(chunk) async for chunk in outcome.chunks])
        await outcome.chunks.aclose()
        return f"{outcome.verb} {count}" if isinstance(outcome, Rows) else f"COPY {count}"
    return await _refuse_copy(outcome)


async def copy_table(session: AdapterSession, name: str, table: pa.Table) -> int:
    """Write the rows of an Arrow table through COPY."""
    columns = ", ".join(quote_name(column) for column in table.column_names)
    copy = await run(session, f"COPY {name} ({columns}) FROM STDIN", ())
    assert not isinstance(copy, Done | Rows | CopyOut), "COPY FROM takes rows"
    try:
        size = _COPY_TABLE_ROWS if copy.takes_tables else _COPY_ROWS
        for batch in table.to_batches(max_chunksize=size):
            if copy.takes_tables:
                found = await asyncio.to_thread(shown.table_for, batch, copy.fields)
                if found is not None and copy.write_table(found):
                    continue
            await copy.write(await asyncio.to_thread(shown.rows_for, batch, copy.fields))
    except BaseException:
        await copy.fail()
        raise
    await copy.finish()
    return int(table.num_rows)


async def _refuse_copy(copy: CopyIn) -> str:
    await copy.fail()
    raise UsageError("COPY FROM STDIN needs a client that sends rows", hint="Use INSERT.")


async def ask(
    session: AdapterSession, text: str, values: Sequence[Any]
) -> tuple[tuple[Field, ...], list[Row]]:
    """All rows of a query.

    Raises:
        UsageError: the statement gives none.
    """
    outcome = await run(session, text, values)
    if not isinstance(outcome, Rows):
        await finish(outcome)
        raise UsageError("the statement gives no rows", hint="Use execute.")
    try:
        return outcome.fields, [row async for chunk in outcome.chunks for row in chunk]
    finally:
        await outcome.chunks.aclose()


def subscribe_text(query: str, *, snapshot: bool, as_of: int | None, resume: int | None) -> str:
    """The SUBSCRIBE of a relation or a query.

    Raises:
        UsageError: a time to begin at and one to go on from.
    """
    if resume is not None:
        if as_of is not None:
            raise UsageError("as_of says where to begin, resume where to go on: give one of them")
        # Every time before `resume` was complete: what follows is after the last of them.
        snapshot, as_of = False, resume - 1
    what = query if " " not in query.strip() else f"({query})"
    at = "" if as_of is None else f" AS OF {as_of}"
    return f"SUBSCRIBE TO {what} WITH (PROGRESS, SNAPSHOT = {str(snapshot).lower()}){at}"


async def steps(session: AdapterSession, text: str) -> AsyncGenerator[Step, None]:
    """What a SUBSCRIBE says, up to one complete time after the other."""
    outcome = await run(session, text, ())
    assert isinstance(outcome, Rows)
    pending: list[Update[Row, int]] = []
    try:
        async for chunk in outcome.chunks:
            for time, progressed, diff, *row in chunk:
                if progressed:
                    yield Step(pending, int(time))
                    pending = []
                else:
                    pending.append(Update(tuple(row), int(time), int(diff)))
    finally:
        await outcome.chunks.aclose()


async def next_step(following: AsyncIterator[Step]) -> Step | None:
    """The next step, None at the end."""
    return await anext(following, None)


async def end(session: AdapterSession, following: AsyncGenerator[Step, None]) -> None:
    """Nobody follows any more."""
    with contextlib.suppress(RuntimeError):  # its last step is being cancelled this moment
        await following.aclose()
    await session.close()


def begin_text(isolation: str | None, *, read_only: bool) -> str:
    """The BEGIN of a transaction."""
    level = f" ISOLATION LEVEL {isolation}" if isolation else ""
    return f"BEGIN{level} READ {'ONLY' if read_only else 'WRITE'}"
