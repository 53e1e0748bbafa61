"""Prepared statements and portals of one connection, with what is worth keeping of each.

A prepared statement's descriptions and encoders are made once per choice of formats. The names
belong to the session, because ``PREPARE`` and ``DEALLOCATE`` see them too; what is kept here for a
name counts only while the session still has the same statement under it.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from noonmark.adapter.contract import Field, Prepared, Session
from noonmark.errors import PortalTaken, StatementTaken, UnknownPortal, UnknownStatement
from noonmark.rows.pg.oid import oid
from noonmark.serve.pgwire import reply
from noonmark.serve.pgwire.codec import RowEncoder, row_description, spread
from noonmark.serve.pgwire.deliver import Stream
from noonmark.serve.pgwire.message import Bind

Formats = tuple[int, ...]


class Statement:
    """A prepared statement, its descriptions and its encoders."""

    __slots__ = ("_descriptions", "_encoders", "parameter_description", "prepared")

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.parameter_description = reply.parameter_description(
            [oid(sql_type) for sql_type in prepared.parameters]
        )
        self._descriptions: dict[Formats, bytes] = {}
        self._encoders: dict[tuple[Formats, dt.tzinfo], RowEncoder] = {}

    def formats(self, asked: Formats) -> Formats:
        """One format per column of the result."""
        return spread(asked, len(self.prepared.fields or ()))

    def description(self, formats: Formats) -> bytes:
        """The result's columns, or that there are none."""
        fields = self.prepared.fields
        if fields is None:
            return reply.NO_DATA
        known = self._descriptions.get(formats)
        if known is None:
            known = self._descriptions[formats] = row_description(fields, formats)
        return known

    def encoder(self, formats: Formats, zone: dt.tzinfo) -> RowEncoder:
        """How the result's rows go on the wire."""
        known = self._encoders.get((formats, zone))
        if known is None:
            known = self._encoders[formats, zone] = encoder(
                self.prepared.fields or (), formats, zone
            )
        return known


def encoder(fields: tuple[Field, ...], formats: Formats, zone: dt.tzinfo) -> RowEncoder:
    """How rows of these fields go on the wire."""
    return RowEncoder([field.type for field in fields], formats, zone)


class Portal:
    """A statement with its values, and the rows that are left of it; the Bind that made it."""

    __slots__ = ("answered", "bind", "formats", "ran", "statement", "stream", "values")

    def __init__(
        self, statement: Statement, values: tuple[Any, ...], formats: Formats, bind: Bind
    ) -> None:
        self.statement, self.values, self.formats = statement, values, formats
        self.bind = bind
        self.stream: Stream | None = None
        self.ran = self.answered = False  # begun; all of it sent at once

    @property
    def finished(self) -> bool:
        """Whether nothing of it is left to let go."""
        return self.stream is None or self.stream.ended

    async def close(self) -> None:
        """Let go of the rows that are left."""
        if self.stream is not None:
            await self.stream.close()


class Names:
    """The statements and portals of a connection by name; "" is the unnamed one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._statements: dict[str, Statement] = {}
        self._portals: dict[str, Portal] = {}
        self._left: list[Portal] = []  # portals that were replaced

    def check_new(self, name: str) -> None:
        """A name may be given once; the unnamed statement may be replaced."""
        if name and name in self._session.statements:
            raise StatementTaken(f'prepared statement "{name}" already exists')

    def add(self, name: str, prepared: Prepared) -> None:
        """Keep a statement under a name."""
        if name:
            self._session.statements[name] = prepared
        self._statements[name] = Statement(prepared)

    def statement(self, name: str) -> Statement:
        """The statement of a name."""
        known = self._statements.get(name)
        if not name:
            if known is None:
                raise UnknownStatement("unnamed prepared statement does not exist")
            return known
        prepared = self._session.statements.get(name)
        if prepared is None:
            self._statements.pop(name, None)
            raise UnknownStatement(f'prepared statement "{name}" does not exist')
        if known is None or known.prepared is not prepared:
            known = self._statements[name] = Statement(prepared)
        return known

    def now(self, name: str) -> Statement | None:
        """The statement that a name has here and in the session; None where they are not one."""
        known = self._statements.get(name)
        if known is None or not name:
            return known
        return known if self._session.statements.get(name) is known.prepared else None

    def forget(self, name: str) -> None:
        """Forget a statement, if there is one."""
        self._statements.pop(name, None)
        if name:
            self._session.statements.pop(name, None)

    def open(self, name: str, portal: Portal) -> None:
        """Keep a portal under a name; the unnamed one may be replaced."""
        old = self._portals.get(name)
        if old is not None:
            if name:
                raise PortalTaken(f'cursor "{name}" already exists')
            if not old.finished:
                self._left.append(old)
        self._portals[name] = portal

    @property
    def unfinished(self) -> bool:
        """Whether some portal, perhaps a replaced one, has rows that nobody took."""
        return any(not portal.finished for portal in self._portals.values()) or bool(self._left)

    def forget_portals(self) -> None:
        """Forget every portal: all are finished."""
        self._portals.clear()

    def portal(self, name: str) -> Portal:
        """The portal of a name."""
        found = self._portals.get(name)
        if found is None:
            raise UnknownPortal(f'portal "{name}" does not exist')
        return found

    async def close(self, name: str) -> None:
        """Forget a portal, if there is one."""
        portal = self._portals.pop(name, None)
        if portal is not None:
            await portal.close()

    async def close_all(self) -> None:
        """Forget every portal: they end with their transaction."""
        while self._portals:
            await self.close(next(iter(self._portals)))
        while self._left:
            await self._left.pop().close()
