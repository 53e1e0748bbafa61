"""Sequences as SQL sees them: nextval and its kin, pg_sequence, pg_sequences, information_schema.

Law (session): `currval` and `lastval` are what this session's own `nextval` gave last, whatever
others did meanwhile; before that they are errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from noonmark.adapter.catalog.item import DATABASE, Item
from noonmark.adapter.catalog.privilege import PRIVILEGES, has
from noonmark.adapter.system.facts import Facts, Row, relation
from noonmark.adapter.system.objects import Objects, ask
from noonmark.errors import (
    InsufficientPrivilege,
    ReadOnly,
    UndefinedColumn,
    UndefinedTable,
    UsageError,
    WrongObjectType,
)
from noonmark.rows import types as t
from noonmark.rows.types import quote_name
from noonmark.sql.functions.function import Function

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_TYPE_OIDS = {"smallint": 21, "integer": 23, "bigint": 20}
_BITS = {"smallint": 16, "integer": 32, "bigint": 64}


class NotInSession(UsageError, id="sequence_not_asked", sqlstate="55000"):
    """This session has not taken a number yet."""


class _Asked:
    """The functions of one session."""

    def __init__(self, session: AdapterSession) -> None:
        self._session = session
        self._objects = Objects(session)

    def _sequence(self, number: int, *rights: str) -> Item:
        item = self._objects.item(number)
        if item is None:
            raise UndefinedTable(f"could not open relation with OID {number}")
        if item.kind != "sequence":
            raise WrongObjectType(f'"{item.name}" is not a sequence')
        session = self._session
        if not any(has(session.catalog, session.user, right, item) for right in rights):
            raise InsufficientPrivilege(f"permission denied for sequence {item.name}")
        return item

    def _check_writing(self, function: str) -> None:
        transaction = self._session.transaction
        if transaction is not None and getattr(transaction, "read_only", False):
            raise ReadOnly(f"cannot execute {function}() in a read-only transaction")

    def next_value(self, number: int) -> int:
        """nextval(regclass)."""
        item = self._sequence(number, "USAGE", "UPDATE")
        self._check_writing("nextval")
        value = self._session.database.sequences.next_value(item)
        self._session.taken.take(item.definition["uid"], value)
        return value

    def current_value(self, number: int) -> int:
        """currval(regclass)."""
        item = self._sequence(number, "USAGE", "SELECT")
        value = self._session.taken.of(item.definition["uid"])
        if value is None:
            raise NotInSession(
                f'currval of sequence "{item.name}" is not yet defined in this session'
            )
        return value

    def last_value(self) -> int:
        """lastval()."""
        value = self._session.taken.last
        if value is None:
            raise NotInSession("lastval is not yet defined in this session")
        return value

    def set_value(self, number: int, value: int, called: bool = True) -> int:
        """setval(regclass, value [, is_called])."""
        item = self._sequence(number, "UPDATE")
        self._check_writing("setval")
        self._session.database.sequences.set_value(item, value, called)
        if called:
            self._session.taken.put(item.definition["uid"], value)
        return value

    def number(self, name: str) -> int:
        """The oid of a sequence by its name."""
        return self._objects.regclass(name)

    def serial(self, table: str, column: str) -> str | None:
        """pg_get_serial_sequence: the sequence that a column owns."""
        item = self._objects.item(self._objects.regclass(table))
        assert item is not None, "it was found"
        if column not in item.schema:
            raise UndefinedColumn(f'column "{column}" of relation "{item.name}" does not exist')
        for each in self._session.catalog.parts_of(item.number):
            if each.kind == "sequence" and each.definition.get("column") == column:
                return f"{quote_name(each.schema_name)}.{quote_name(each.name)}"
        return None


def about_sequences(session: AdapterSession) -> list[Function]:
    """The functions; each takes a name, or what ::regclass gives."""
    asked, big, text = _Asked(session), t.BigInt(), t.Text
    number = asked.number

    def both(name: str, more: tuple[type[t.SqlType], ...], meaning: object) -> list[Function]:
        by_oid = meaning
        assert callable(by_oid)
        return [
            ask(name, (t.Integer, *more), big, by_oid, fallible=True, volatile=True),
            ask(name, (text, *more), big, lambda n, *rest: by_oid(number(n), *rest),
                fallible=True, volatile=True),
        ]  # fmt: skip

    return [
        *both("nextval", (), asked.next_value),
        *both("currval", (), asked.current_value),
        *both("setval", (t.BigInt,), asked.set_value),
        *both("setval", (t.BigInt, t.Boolean), asked.set_value),
        ask("lastval", (), big, asked.last_value, fallible=True, volatile=True),
        ask("pg_get_serial_sequence", (text, text), t.Text(), asked.serial, fallible=True),
        ask("pg_sequence_last_value", (t.Integer,), big,
            lambda n: _last(session, asked._sequence(n, "USAGE", "SELECT")), fallible=True),
    ]  # fmt: skip


def _last(session: AdapterSession, item: Item) -> int | None:
    value, called = session.database.sequences.last(item)
    return value if called else None


def sequence_rows(session: AdapterSession, item: Item) -> list[Row]:
    """SELECT * FROM a sequence."""
    value, called = session.database.sequences.last(item)
    return [(value, 0, called)]


def _seen(facts: Facts) -> list[Item]:
    user, catalog = facts.session.user, facts.catalog
    rights = PRIVILEGES["sequence"]
    return [
        item
        for item in catalog.items("sequence")
        if any(has(catalog, user, each, item) for each in rights)
    ]


def _pg_sequence(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("sequence"):
        has_ = item.definition
        yield (
            item.oid, _TYPE_OIDS[has_["type"]], has_["start"], has_["increment"], has_["max"],
            has_["min"], has_["cache"], has_["cycle"],
        )  # fmt: skip


def _pg_sequences(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("sequence"):
        has_ = item.definition
        last = _last(facts.session, item) if item in _seen(facts) else None
        yield (
            item.schema_name, item.name, item.owner, has_["type"], has_["start"], has_["min"],
            has_["max"], has_["increment"], has_["cycle"], has_["cache"], last,
        )  # fmt: skip


def _sequences(facts: Facts) -> Iterable[Row]:
    for item in _seen(facts):
        has_ = item.definition
        if has_.get("identity"):
            continue
        yield (
            DATABASE, item.schema_name, item.name, has_["type"], _BITS[has_["type"]], 2, 0,
            *(str(has_[name]) for name in ("start", "min", "max", "increment")),
            "YES" if has_["cycle"] else "NO",
        )  # fmt: skip


_T, _I, _B = "text", "integer", "bigint"

RELATIONS = (
    relation(
        "pg_catalog.pg_sequence", _pg_sequence, 2224,
        seqrelid="oid not null", seqtypid="oid", seqstart=_B, seqincrement=_B, seqmax=_B,
        seqmin=_B, seqcache=_B, seqcycle="boolean",
    ),
    relation(
        "pg_catalog.pg_sequences", _pg_sequences, 12_008,
        schemaname="name", sequencename="name", sequenceowner="name", data_type="regtype",
        start_value=_B,
        min_value=_B, max_value=_B, increment_by=_B, cycle="boolean", cache_size=_B,
        last_value=_B,
    ),
)  # fmt: skip
SEQUENCES = relation(
    "information_schema.sequences", _sequences,
    sequence_catalog="name", sequence_schema="name", sequence_name="name", data_type=_T,
    numeric_precision=_I, numeric_precision_radix=_I, numeric_scale=_I, start_value=_T,
    minimum_value=_T, maximum_value=_T, increment=_T, cycle_option=_T,
)  # fmt: skip
