"""What a handler is.

    async def run_x(session, statement, values) -> Outcome

runs a statement whose parameters have these values, and

    async def describe_x(session, statement, types) -> Described

says before that which parameters it takes and which columns it gives; `types` are those that the
client stated, None where it stated none. A kind without a describer takes and gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from noonmark.adapter.aside import to_its_end
from noonmark.adapter.contract import Answer, Field, Outcome
from noonmark.adapter.session.transaction import current, end_group
from noonmark.errors import InTransaction
from noonmark.rows.types import SqlType
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: Where a word of a name like CreateSource begins.
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


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
FastPath: TypeAlias = "Callable[[AdapterSession, Any, Sequence[Any]], Answer | None]"
FastPaths: TypeAlias = dict[type[Any], FastPath]


def to_the_end(handler: Handler) -> Handler:
    """The handler of a statement that is not taken back once it has begun."""

    async def run(session: AdapterSession, statement: Any, values: Sequence[Any]) -> Outcome:
        return await to_its_end(awaited(handler(session, statement, values)))

    return run


async def awaited(outcome: Awaitable[Outcome]) -> Outcome:
    """What a handler gives, as a coroutine."""
    return await outcome


def alone(handler: Handler) -> Handler:
    """The handler of a statement that is never part of a transaction.

    In BEGIN it is refused. Among statements that were sent as one, what came before is committed.
    """

    async def run(session: AdapterSession, statement: Any, values: Sequence[Any]) -> Outcome:
        transaction = current(session)
        if transaction is None:
            return await handler(session, statement, values)
        if not transaction.implicit:
            raise InTransaction(
                f"{shown(statement)} cannot run inside a transaction block",
                detail="It could not be undone by ROLLBACK.",
                hint="Run it by itself: drivers call that autocommit.",
            )
        await end_group(session)
        grouped, session.grouped = session.grouped, False
        try:
            return await handler(session, statement, values)
        finally:
            session.grouped = grouped

    return run


def shown(statement: Any) -> str:
    """What a statement is called."""
    kind = getattr(statement, "kind", "table").replace("-", " ")
    words = {st.AddColumn: "alter table add column",
             st.AlterSource: f"alter {kind} set"}  # fmt: skip
    return words.get(type(statement), _WORDS.sub(" ", type(statement).__name__)).upper()
