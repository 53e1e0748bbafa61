"""Statements that differ in their literals alone are planned once.

A text that is sent to be run at once, without parameters, is looked at for its shape
(`noonmark.sql.statement.shape`). The second text of a shape prepares the shape itself; from then on
a text of that shape is its plan with other values, and is neither read nor planned.

Law (same): the outcome is that of the text itself, its errors included: a text whose literals a
parameter cannot stand for is run as it is, and where one that shares a plan fails, what planning
the text itself says is what the client is told.
Law (catalog): what is shared was planned against the session's catalog of now, under the search
path and the role of now: a change of one of these ends it. No setting changes what is shared.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog
from noonmark.adapter.contract import Outcome, Prepared
from noonmark.adapter.session.memory import Account, Cache, text_bytes
from noonmark.errors import EvaluationError, NoonmarkError, QueryCanceled, UndefinedParameter
from noonmark.rows import types as t
from noonmark.rows.types import SqlType
from noonmark.sql.coerce import UNKNOWN, coerce
from noonmark.sql.ir.scalar import Literal
from noonmark.sql.statement import parse_statements
from noonmark.sql.statement.shape import Shape, shape_of

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: How many shapes a session knows.
SHAPES_MAX = 256
#: Quoted literals of these types are read alike, whatever the settings of the session.
_READ = (t.Text, t.Varchar, t.SmallInt, t.Integer, t.BigInt, t.Boolean, t.Date, t.Timestamp,
         t.Uuid, t.Double)  # fmt: skip
#: Errors that may be about a literal: of values, of names and types, of what is not supported.
_OF_LITERALS = ("22", "42", "0A")


_Key = tuple[str, tuple[SqlType | None, ...]]


@dataclass(frozen=True)
class _Kept:
    """What is known of a shape: the statement with parameters, or that there can be none."""

    catalog: Catalog
    prepared: Prepared | None


class Alike:
    """The shapes of the statements of one session."""

    def __init__(self, account: Account) -> None:
        #: None for a shape that was seen once.
        self._kept: Cache[_Key, _Kept | None] = Cache("shapes", 8 << 20, SHAPES_MAX, account)

    def clear(self) -> None:
        """Forget all: names or rights are others now."""
        self._kept.clear()

    async def find(
        self, session: AdapterSession, text: str
    ) -> tuple[Prepared, Sequence[Any]] | None:
        """The statement with parameters and their values; None where the text is run as it is."""
        failed = session.transaction is not None and session.transaction.failed
        shape = None if failed else shape_of(text)
        if shape is None:
            return None
        key = (shape.text, shape.types)
        if key not in self._kept:
            self._keep(key, None)
            return None
        kept = self._kept.renew(key)
        if kept is None or kept.catalog is not session.catalog:
            kept = await self._prepare(session, shape, text)
            self._keep(key, kept)
        if kept.prepared is None:
            return None
        values = _values(shape, kept.prepared.parameters)
        return None if values is None else (kept.prepared, values)

    def _keep(self, key: _Key, kept: _Kept | None) -> None:
        shape = key[0]
        self._kept.keep(key, kept, 2 * len(shape) if kept is None else 2 * text_bytes(shape))

    async def _prepare(self, session: AdapterSession, shape: Shape, text: str) -> _Kept:
        """The statement with parameters, if the text itself is one that can be planned, too.

        A parameter is taken where a literal of its type is not: SET casts it as if it was written.
        """
        catalog, transaction = session.catalog, session.transaction
        prepared: Prepared | None
        try:
            plain = await session.prepare(text)
            prepared = await session.prepare(shape.text, shape.types)
            if plain.fields != prepared.fields:
                prepared = None
        except QueryCanceled:
            raise
        except NoonmarkError:
            prepared = None
            if transaction is not None:
                transaction.failed = False  # nobody asked for what has failed
        return _Kept(catalog, prepared)


def _values(shape: Shape, types: Sequence[SqlType]) -> list[Any] | None:
    """The values of the parameters; None where one has to be seen as the literal that it is."""
    found: list[Any] = []
    for value, stated, kind in zip(shape.values, shape.types, types, strict=True):
        if stated is not None:
            found.append(value)
            continue
        if not isinstance(kind, _READ):
            return None
        try:
            read = coerce(Literal(UNKNOWN, value), kind)
        except EvaluationError:
            return None
        if not isinstance(read, Literal):
            return None
        found.append(read.value)
    return found


async def ask(session: AdapterSession, text: str) -> Outcome:
    """Run one statement that has no parameters, as a simple query is."""
    shared = await session.alike.find(session, text)
    if shared is None:
        prepared = await session.prepare(text)
        if prepared.parameters:
            raise UndefinedParameter(
                "there is no parameter $1", hint="A simple query has none: write the value itself."
            )
        return await session.execute(prepared)
    prepared, values = shared
    try:
        return await session.execute(replace(prepared, text=text), values)
    except NoonmarkError as error:
        if error.sqlstate[:2] in _OF_LITERALS:
            # What planning the text itself says, with the position there, comes first.
            await session.describe(parse_statements(text)[0].statement)
        raise
