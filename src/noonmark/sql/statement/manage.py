"""Statements about objects that exist: DROP, ALTER, COMMENT ON, VALIDATE CONNECTION."""

from __future__ import annotations

from typing import cast

from noonmark.sql.statement import statement as s
from noonmark.sql.statement.alter_table import alter_table, is_action_next
from noonmark.sql.statement.domain import alter_domain
from noonmark.sql.statement.options import options, with_options
from noonmark.sql.statement.reader import Reader
from noonmark.sql.statement.role import alter_default_privileges, alter_role
from noonmark.sql.statement.sequence import alter_sequence
from noonmark.sql.statement.source import subsource
from noonmark.sql.statement.types import alter_type

_KINDS = (
    "materialized view",
    "sequence",
    "table",
    "source",
    "view",
    "index",
    "connection",
    "secret",
    "sink",
    "role",
    "user",
    "schema",
    "database",
    "type",
    "domain",
)


def _kind(reader: Reader, verb: str) -> s.ObjectKind:
    found = reader.accept_any(*_KINDS)
    if found is None:
        if reader.token.kind != "word":
            raise reader.invalid()
        raise reader.unsupported(f"{verb} {reader.token.value.upper()}")
    found = "role" if found == "user" else found.replace(" ", "-")
    return cast(s.ObjectKind, found)


def drop(reader: Reader) -> s.Statement:
    """What follows DROP."""
    kind = _kind(reader, "DROP")
    if_exists = reader.if_exists()
    names = reader.list_of(reader.name)
    how = reader.accept_any("cascade", "restrict")
    return s.Drop(kind, names, if_exists, how == "cascade")


def alter(reader: Reader) -> s.Statement:
    """What follows ALTER."""
    if reader.accept_any("role", "user") is not None:
        return alter_role(reader)
    if reader.accept("default", "privileges"):
        return alter_default_privileges(reader)
    kind = _kind(reader, "ALTER")
    if_exists = reader.if_exists()
    name = reader.name()
    position = reader.position
    if kind == "table" and reader.is_next("rename") and not reader.is_next("rename", "to"):
        reader.expect("rename")
        reader.accept("column")
        old = reader.identifier()
        reader.expect("to")
        return s.AlterTable(name, (s.RenameColumn(old, reader.identifier()),), if_exists)
    if kind == "type" and (of_type := alter_type(reader, name)) is not None:
        return of_type
    if kind == "domain" and (of_domain := alter_domain(reader, name)) is not None:
        return of_domain
    if reader.accept("rename"):
        reader.expect("to")
        return s.Rename(kind, name, reader.identifier(), if_exists)
    if reader.accept("set", "schema"):
        return s.SetSchema(kind, name, reader.identifier(), if_exists)
    if reader.accept("swap", "with"):
        return s.Swap(kind, name, reader.identifier())
    if reader.accept("owner", "to"):
        return s.AlterOwner(kind, name, reader.identifier(), if_exists)
    if kind == "sequence":
        return alter_sequence(reader, name, if_exists)
    if kind == "secret" and reader.accept("as"):
        return s.AlterSecret(name, reader.scalar_to(), if_exists)
    if kind == "connection" and (reader.is_next("set", "(") or reader.is_next("reset", "(")):
        return _alter_connection(reader, name, if_exists)
    if reader.accept("set") and reader.is_next("("):
        return s.AlterSource(kind, name, options(reader), (), if_exists)
    if reader.accept("reset"):
        return s.AlterSource(kind, name, {}, tuple(options(reader)), if_exists)
    if kind == "source" and (action := reader.accept_any("add", "drop", "refresh")) is not None:
        return _source_tables(reader, name, action, if_exists)
    if kind == "table" and is_action_next(reader):
        return alter_table(reader, name, if_exists)
    words = [each.value for each in reader.tokens[reader.at : reader.at + 2] if each.kind == "word"]
    shown = " ".join([kind.replace("-", " "), "...", *words]).upper()
    raise reader.unsupported(f"ALTER {shown}".rstrip(), position=position)


def _alter_connection(reader: Reader, name: s.Name, if_exists: bool) -> s.Statement:
    sets = reader.accept("set")
    if not sets:
        reader.expect("reset")
    given = options(reader)
    validate = with_options(reader).get("validate", False)
    changed, reset = (given, ()) if sets else ({}, tuple(given))
    return s.AlterConnection(name, changed, reset, if_exists, validate=bool(validate))


def _source_tables(
    reader: Reader, name: s.Name, action: str, if_exists: bool
) -> s.AlterSourceTables:
    """What follows ALTER SOURCE s {ADD | DROP | REFRESH}."""
    if reader.accept_any("table", "tables", "subsource") is None:
        if action != "refresh":
            raise reader.invalid()
        reader.accept("all", "tables")
        return s.AlterSourceTables(name, action, (), if_exists)
    tables = reader.list_of(lambda: subsource(reader))
    how = reader.accept_any("cascade", "restrict") if action == "drop" else None
    return s.AlterSourceTables(name, action, tables, if_exists, how == "cascade")


def comment(reader: Reader) -> s.Statement:
    """What follows COMMENT."""
    reader.expect("on")
    if reader.accept("column"):
        full = reader.name(4)
        if len(full.parts) < 2:
            raise reader.invalid("a column is named with its table")
        name = s.Name(full.parts[:-1], full.position)
        return s.Comment("column", name, _comment_text(reader), full.last)
    kind = _kind(reader, "COMMENT ON")
    name = reader.name()
    return s.Comment(kind, name, _comment_text(reader))


def _comment_text(reader: Reader) -> str | None:
    reader.expect("is")
    return None if reader.accept("null") else reader.string()


def refresh(reader: Reader) -> s.Statement:
    """What follows REFRESH."""
    reader.expect("materialized", "view")
    reader.accept("concurrently")
    name = reader.name()
    if reader.accept("with", "no", "data"):
        raise reader.unsupported("WITH NO DATA", "A materialized view always has its rows.")
    reader.accept("with", "data")
    return s.Refresh(name)


def validate(reader: Reader) -> s.Statement:
    """What follows VALIDATE."""
    reader.expect("connection")
    return s.ValidateConnection(reader.name())
