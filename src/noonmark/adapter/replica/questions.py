"""What a replica asks the writer: how far its timeline is, and to complete collections.

Read             the oracle's read time, given after the question came
Applied(t)       a strict read is answered at t, which was complete: none may be before it now
Bring(names, t)  make these collections complete at t; answered when they are
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from noonmark import defect
from noonmark.errors import NoonmarkError, NotYetComplete
from noonmark.persist.client import Client
from noonmark.persist.question import Answerer, NotAnswered

if TYPE_CHECKING:
    from noonmark.adapter.database import Database

#: How far ahead of the writer's clock a replica may move the timeline: as clocks may differ.
AHEAD_MS = 60_000
#: How long the writer may take to say a time; what it is to bring may take as long as it does.
ANSWER_S = 10.0


class Read(msgspec.Struct, frozen=True, tag="read"):
    """See the module."""


class Applied(msgspec.Struct, frozen=True, tag="applied"):
    """See the module."""

    time: int


class Bring(msgspec.Struct, frozen=True, tag="bring"):
    """See the module."""

    names: tuple[str, ...]
    time: int


Question = Read | Applied | Bring


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time, or why there is none; `never` when asking again gives the same."""

    time: int = 0
    error: str | None = None
    detail: str | None = None
    hint: str | None = None
    never: bool = False


_questions = msgspec.msgpack.Decoder(Question)
_answers = msgspec.msgpack.Decoder(Answer)


async def ask(client: Client, question: Question) -> int:
    """What the writer answers; runs on the adapter's loop.

    Raises:
        NotAnswered: it cannot be asked, does not know, or is silent about a time for `ANSWER_S`.
        NotYetComplete: what is to be brought cannot be; says why.
    """
    body = msgspec.msgpack.encode(question)
    limit_s = None if isinstance(question, Bring) else ANSWER_S
    try:
        async with asyncio.timeout(limit_s):
            said = await asyncio.wrap_future(client.runtime.submit(client.ask(body)))
    except TimeoutError:
        raise NotAnswered("the writer did not answer", detail=f"In {limit_s} s.") from None
    found = _answers.decode(said)
    if found.error is None:
        return found.time
    kind = NotYetComplete if found.never else NotAnswered
    raise kind(found.error, detail=found.detail, hint=found.hint)


def answerer(database: Database) -> Answerer:
    """How the writer's database answers; made on the adapter's loop, called on that of persist."""
    loop = asyncio.get_running_loop()

    async def answer(body: bytes) -> bytes:
        asked = _questions.decode(body)
        working = asyncio.run_coroutine_threadsafe(_answered(database, asked), loop)
        return msgspec.msgpack.encode(await asyncio.wrap_future(working))

    return answer


async def _answered(database: Database, asked: Question) -> Answer:
    try:
        return Answer(await _done(database, asked))
    except NoonmarkError as error:
        never = isinstance(error, NotYetComplete)
        return Answer(error=error.message, detail=error.detail, hint=error.hint, never=never)
    except Exception as error:
        return Answer(error=defect.report(error, "a question of a replica").message)


async def _done(database: Database, asked: Question) -> int:
    if isinstance(asked, Bring):
        await database.work.bring(asked.names, asked.time)
        return asked.time
    if isinstance(asked, Applied):
        ahead_ms = asked.time - database.clock.now_ms()
        if ahead_ms > AHEAD_MS:
            raise NotAnswered(
                f"the timeline is not moved {ahead_ms} ms ahead of the writer's clock",
                hint="Look at the clocks of both machines.",
            )
        await database.oracle.apply_write(asked.time)
        return asked.time
    return await database.oracle.read_ts()
