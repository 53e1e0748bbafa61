"""CREATE TYPE and ALTER TYPE."""

from __future__ import annotations

from noonmark.sql.statement import named_types as s
from noonmark.sql.statement.base import Name, Statement
from noonmark.sql.statement.reader import Reader


def create_type(reader: Reader) -> Statement:
    """What follows CREATE TYPE."""
    name = reader.name()
    position = reader.position
    if reader.accept("as", "enum"):
        reader.expect("(")
        labels = () if reader.is_next(")") else reader.list_of(reader.string)
        reader.expect(")")
        return s.CreateEnum(name, labels)
    if reader.accept("as", "range"):
        raise reader.unsupported("CREATE TYPE ... AS RANGE", position=position)
    if reader.accept("as"):
        raise reader.unsupported("a composite type", position=position)
    raise reader.unsupported("a base type", "CREATE TYPE ... AS ENUM makes an enum.", position)


def alter_type(reader: Reader, name: Name) -> Statement | None:
    """What follows ALTER TYPE name, where it is about its labels."""
    if reader.accept("add", "value"):
        if_not_exists = reader.if_not_exists()
        label = reader.string()
        where = reader.accept_any("before", "after")
        other = None if where is None else reader.string()
        return s.AddLabel(name, label, where == "before", other, if_not_exists)
    if reader.accept("rename", "value"):
        old = reader.string()
        reader.expect("to")
        return s.RenameLabel(name, old, reader.string())
    return None
