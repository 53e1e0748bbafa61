"""CREATE SEQUENCE, ALTER SEQUENCE, and what GENERATED ... AS IDENTITY may say of its own."""

from __future__ import annotations

from typing import Any

from noonmark.errors import InvalidSyntax
from noonmark.sql.statement import tables as s
from noonmark.sql.statement.base import Name
from noonmark.sql.statement.reader import Reader

#: The types of a column that makes its own sequence, by the word that is written.
SERIAL = {
    "smallserial": "smallint", "serial2": "smallint",
    "serial": "integer", "serial4": "integer",
    "bigserial": "bigint", "serial8": "bigint",
}  # fmt: skip


def create_sequence(reader: Reader) -> s.CreateSequence:
    """What follows CREATE SEQUENCE."""
    if_not_exists = reader.if_not_exists()
    name = reader.name()
    return s.CreateSequence(name, sequence_options(reader), if_not_exists)


def sequence_options(reader: Reader, *, altered: bool = False) -> dict[str, Any]:
    """The options in any order, each at most once.

    A bound is a number, or None for NO MINVALUE; `restart` is a number, or None for the start.
    """
    found: dict[str, Any] = {}
    while not (reader.ended or reader.is_next(")")):
        position = reader.position
        name, value = _option(reader, altered)
        if name in found:
            raise InvalidSyntax("conflicting or redundant options", position=position)
        found[name] = value
    return found


def _option(reader: Reader, altered: bool) -> tuple[str, Any]:
    if reader.accept("as"):
        return "type", reader.identifier()
    for name, filler in (("increment", "by"), ("start", "with")):
        if reader.accept(name):
            reader.accept(filler)
            return name, reader.integer()
    for name in ("minvalue", "maxvalue"):
        if reader.accept("no", name):
            return name, None
        if reader.accept(name):
            return name, reader.integer()
    if reader.accept("cache"):
        return "cache", reader.integer()
    if reader.accept("cycle"):
        return "cycle", True
    if reader.accept("no", "cycle"):
        return "cycle", False
    if reader.accept("owned", "by"):
        return "owned_by", reader.name(4)
    if altered and reader.accept("restart"):
        reader.accept("with")
        has_value = reader.token.kind == "number" or reader.is_next("-")
        return "restart", reader.integer() if has_value else None
    raise reader.invalid()


def identity(reader: Reader) -> s.Identity:
    """What follows GENERATED, up to the end of its options."""
    always = reader.accept("always")
    if not always:
        reader.expect("by", "default")
    reader.expect("as", "identity")
    options: dict[str, Any] = {}
    if reader.accept("("):
        if reader.accept("sequence", "name"):
            raise reader.unsupported("SEQUENCE NAME")
        options = sequence_options(reader)
        reader.expect(")")
    return s.Identity(always, options)


def alter_sequence(reader: Reader, name: Name, if_exists: bool) -> s.AlterSequence:
    """What follows ALTER SEQUENCE name, where it is options."""
    found = sequence_options(reader, altered=True)
    if not found:
        raise reader.invalid()
    return s.AlterSequence(name, found, if_exists)
