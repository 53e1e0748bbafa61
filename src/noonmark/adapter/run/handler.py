"""What a handler is.

    async def run_x(session, statement, values) -> Outcome

runs a statement whose parameters have these values, and

    async def describe_x(session, statement, types) -> Described

says before that which parameters it takes and which columns it gives; `types` are those that the
client stated, None where it stated none. A kind without a describer takes and gives nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from noonmark.adapter.contract import Field, Outcome
from noonmark.rows.types import SqlType

if TYPE_CHECKING:
    from noonmark.adapter.session import AdapterSession


@dataclass(frozen=True)
class Described:
    """The types of $1, $2, ... and the result's columns; None for a statement without rows.

    `statement` is what is to be run instead of the one that was described: it knows more.
    """

    parameters: tuple[SqlType, ...] = ()
    fields: tuple[Field, ...] | None = None
    statement: Any = None


Handler: TypeAlias = "Callable[[AdapterSession, Any, Sequence[Any]], Awaitable[Outcome]]"
Describer: TypeAlias = (
    "Callable[[AdapterSession, Any, Sequence[SqlType | None]], Awaitable[Described]]"
)
Handlers: TypeAlias = dict[type[Any], Handler]
Describers: TypeAlias = dict[type[Any], Describer]
#: Runs a statement where that needs no waiting; None where it does.
Quick: TypeAlias = "Callable[[AdapterSession, Any, Sequence[Any]], Outcome | None]"
Quicks: TypeAlias = dict[type[Any], Quick]


def to_the_end(handler: Handler) -> Handler:
    """The handler of a statement that is not taken back: a cancel comes too late for it.

    What it does is several steps, one of them durable: ended between two of them, the catalog in
    memory would not be the one that is stored.
    """

    async def run(session: AdapterSession, statement: Any, values: Sequence[Any]) -> Outcome:
        task = asyncio.ensure_future(handler(session, statement, values))
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.shield(task)
        return task.result()

    return run
