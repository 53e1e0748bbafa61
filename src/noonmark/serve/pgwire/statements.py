"""Prepared statements and portals of one connection, with what is worth keeping of each.

A prepared statement's descriptions and encoders are made once per choice of formats. The names
belong to the session, because ``PREPARE`` and ``DEALLOCATE`` see them too; what is kept here for a
name counts only while the session still has the same statement under it.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, TypeVar

from noonmark.adapter.contract import Field, Prepared, Session
from noonmark.adapter.session.memory import text_bytes, value_bytes
from noonmark.errors import PortalTaken, StatementTaken, UnknownPortal, UnknownStatement
from noonmark.rows.pg.oid import oid
from noonmark.serve.pgwire import reply
from noonmark.serve.pgwire.codec import RowEncoder, row_description, spread
from noonmark.serve.pgwire.deliver import Stream
from noonmark.serve.pgwire.message import Bind

Formats = tuple[int, ...]
#: What a portal takes beside its values and its rows.
_PORTAL_BYTES = 2_000
#: What has no name, and is no longer than this, is not counted: there is one of it.
_LITTLE_BYTES = 16_000
#: For how many choices of formats a statement keeps what it made.
_CHOICES_MAX = 8
#: How many names are remembered that the session has forgotten.
_GONE_MAX = 100

K = TypeVar("K")
V = TypeVar("V")


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
            known = _kept(self._descriptions, formats, row_description(fields, formats))
        return known

    def encoder(self, formats: Formats, zone: dt.tzinfo) -> RowEncoder:
        """How the result's rows go on the wire."""
        known = self._encoders.get((formats, zone))
        if known is None:
            made = encoder(self.prepared.fields or (), formats, zone)
            known = _kept(self._encoders, (formats, zone), made)
        return known


def _kept(known: dict[K, V], key: K, made: V) -> V:
    """What was made, kept in the place of what was made first where there are many."""
    if len(known) >= _CHOICES_MAX:
        del known[next(iter(known))]
    known[key] = made
    return made


def encoder(fields: tuple[Field, ...], formats: Formats, zone: dt.tzinfo) -> RowEncoder:
    """How rows of these fields go on the wire."""
    return RowEncoder([field.type for field in fields], formats, zone)


class Portal:
    """A statement with its values, and the rows that are left of it; the Bind that made it."""

    __slots__ = ("answered", "bind", "formats", "ran", "size", "statement", "stream", "values")

    def __init__(
        self, statement: Statement, values: tuple[Any, ...], formats: Formats, bind: Bind
    ) -> None:
        self.statement, self.values, self.formats = statement, values, formats
        self.bind = bind
        self.stream: Stream | None = None
        self.size = 0
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
        self._unnamed_bytes = 0

    def check_new(self, name: str) -> None:
        """A name may be given once; the unnamed statement may be replaced."""
        if name and name in self._session.statements:
            raise StatementTaken(f'prepared statement "{name}" already exists')

    def add(self, name: str, prepared: Prepared) -> None:
        """Keep a statement under a name."""
        if name:
            self._session.statements[name] = prepared
        else:
            self._count_unnamed(prepared)
        if len(self._statements) > len(self._session.statements) + _GONE_MAX:
            self._forget_gone()  # DEALLOCATE says nothing here
        self._statements[name] = Statement(prepared)

    def _count_unnamed(self, prepared: Prepared) -> None:
        """It is in the place of the one before; only a long one is worth counting."""
        account, before = self._session.account, self._unnamed_bytes
        if before:
            self._unnamed_bytes = 0
            account.free("prepared statements", before)
        if len(prepared.text) > _LITTLE_BYTES:
            self._statements.pop("", None)
            size = text_bytes(prepared.text)
            account.take("prepared statements", size)
            self._unnamed_bytes = size

    def _forget_gone(self) -> None:
        there = self._session.statements
        kept = {name: each for name, each in self._statements.items() if name in there or not name}
        self._statements = kept

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
            else:
                self._free(old)
        size = value_bytes(portal.values)
        if name or size > _LITTLE_BYTES:
            self._count(portal, _PORTAL_BYTES + size)
        self._portals[name] = portal

    def suspended(self, portal: Portal) -> None:
        """A portal has rows that nobody took yet.

        Raises:
            OutOfMemory: the session may keep no more.
        """
        if portal.stream is not None and not portal.stream.counted:
            portal.stream.counted = True
            self._count(portal, portal.stream.bytes)

    def _count(self, portal: Portal, size: int) -> None:
        if size:
            self._session.account.take("portals", size, int(not portal.size))
            portal.size += size

    def _free(self, portal: Portal) -> None:
        if portal.size:
            self._session.account.free("portals", portal.size)
            portal.size = 0

    @property
    def unfinished(self) -> bool:
        """Whether some portal, perhaps a replaced one, has rows that nobody took."""
        return any(not portal.finished for portal in self._portals.values()) or bool(self._left)

    def forget_portals(self) -> None:
        """Forget every portal: all are finished."""
        if self._portals:
            for portal in self._portals.values():
                self._free(portal)
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
            self._free(portal)
            await portal.close()

    async def close_all(self) -> None:
        """Forget every portal: they end with their transaction."""
        while self._portals:
            await self.close(next(iter(self._portals)))
        while self._left:
            portal = self._left.pop()
            self._free(portal)
            await portal.close()
