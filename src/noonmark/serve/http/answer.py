"""Running a request's statements, told to a `Listener` as it happens.

The first error ends the rest. Statements of one request are one transaction unless they say
otherwise, as in one simple query of PostgreSQL's protocol. COPY has no place here and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from noonmark import defect
from noonmark.adapter.contract import CopyOut, Done, Field, Notice, Outcome, Row, Rows, Session
from noonmark.errors import NoonmarkError, Unsupported
from noonmark.serve.beside import CHARACTERS_MAX, beside
from noonmark.serve.http.request import Request, Todo, parameters, statements
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire.link import Lost


class Listener(Protocol):
    """Who hears of results."""

    async def begin(self, fields: tuple[Field, ...] | None, streaming: bool) -> None:
        """A statement begins to answer; with rows if it has fields."""

    async def rows(self, chunk: Sequence[Row]) -> None:
        """Some rows."""

    async def end(self, tag: str, notices: Sequence[Notice]) -> None:
        """The statement ended well."""

    async def fail(self, error: NoonmarkError, offset: int = 0) -> None:
        """It did not; nothing more comes. `offset`: where its statement begins in the text."""


async def answer(session: Session, request: Request, listener: Listener, figures: Figures) -> None:
    """Run a request; what happens, errors too, is told to the listener.

    Raises:
        Lost: the listener's client is gone.
    """
    offset = 0
    try:
        todo = await statements(session, request)
        if len(todo) > 1:
            session.begin_implicit()
        try:
            for number, one in enumerate(todo, 1):
                offset = one.at
                tag, notices = await _run(session, one, listener)
                if number == len(todo):  # an error of the commit is the last statement's
                    await session.end_implicit(True)
                await listener.end(tag, notices)
        except BaseException:
            await session.end_implicit(False)
            raise
    except Lost:
        raise
    except NoonmarkError as error:
        await _fail(session, error, listener, figures, offset)
    except Exception as error:
        await _fail(session, defect.report(error, "a statement"), listener, figures, offset)


async def _fail(
    session: Session, error: NoonmarkError, listener: Listener, figures: Figures, offset: int
) -> None:
    session.fail()
    figures.errors.labels("http", error.sqlstate).inc()
    await listener.fail(error, offset)


async def _run(session: Session, one: Todo, listener: Listener) -> tuple[str, Sequence[Notice]]:
    """Run one statement; its tag and what there is to know."""
    prepared = await session.prepare(one.query)
    long = sum(len(each) for each in one.params if isinstance(each, str)) > CHARACTERS_MAX
    read = partial(parameters, prepared, one.params, session)
    values = await beside(read) if long else read()
    outcome = await session.execute(prepared, values)
    if isinstance(outcome, Done):
        await listener.begin(None, False)
        return outcome.tag, outcome.notices
    if not isinstance(outcome, Rows):
        await _refuse(outcome)
        raise Unsupported("COPY is not supported over HTTP", hint="Use PostgreSQL's protocol.")
    count = 0
    try:
        await listener.begin(outcome.fields, outcome.verb == "SUBSCRIBE")
        async for chunk in outcome.chunks:
            count += len(chunk)
            await listener.rows(chunk)
    finally:
        await outcome.chunks.aclose()
    tag = f"{outcome.verb} {count}" if outcome.counted else outcome.verb
    return tag, outcome.notices


async def _refuse(outcome: Outcome) -> None:
    if isinstance(outcome, CopyOut):
        await outcome.chunks.aclose()
    elif not isinstance(outcome, Done | Rows):
        await outcome.fail()
