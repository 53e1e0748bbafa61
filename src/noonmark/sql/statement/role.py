"""Roles and what they may do: CREATE and ALTER ROLE, GRANT, REVOKE."""

from __future__ import annotations

from noonmark.sql.statement import statement as s
from noonmark.sql.statement.reader import Reader

_PRIVILEGES = (
    *("select", "insert", "update", "delete", "truncate", "references"),
    *("usage", "create", "connect", "temporary", "temp"),
)
_IGNORED = ("inherit", "noinherit", "nocreatedb", "nocreaterole", "noreplication", "nobypassrls")


def create_role(reader: Reader) -> s.Statement:
    """What follows CREATE ROLE; a USER may log in."""
    user = reader.tokens[reader.at - 1].value == "user"
    if_not_exists = reader.if_not_exists()
    name = reader.identifier()
    password, login, superuser = _attributes(reader)
    if user and login is None:
        login = True
    return s.CreateRole(name, password, login, superuser, if_not_exists)


def alter_role(reader: Reader) -> s.Statement:
    """What follows ALTER ROLE."""
    name = reader.identifier()
    if reader.accept("rename"):
        reader.expect("to")
        return s.Rename("role", s.Name((name,)), reader.identifier())
    return s.AlterRole(name, *_attributes(reader))


def _attributes(reader: Reader) -> tuple[str | None, bool | None, bool | None]:
    password, login, superuser = None, None, None
    reader.accept("with")
    while not reader.ended:
        if reader.accept("login"):
            login = True
        elif reader.accept("nologin"):
            login = False
        elif reader.accept("superuser"):
            superuser = True
        elif reader.accept("nosuperuser"):
            superuser = False
        elif reader.accept("password") or reader.accept("encrypted", "password"):
            password = "" if reader.accept("null") else reader.string()
        elif reader.accept_any(*_IGNORED) is None:
            if reader.token.kind != "word":
                raise reader.invalid()
            raise reader.unsupported(f"{reader.token.value.upper()} of a role")
    return password, login, superuser


def grant(reader: Reader) -> s.Statement:
    """What follows GRANT."""
    privileges, kind, objects, members = _subject(reader)
    reader.expect("to")
    roles = _roles(reader)
    if reader.is_next("with"):
        raise reader.unsupported("WITH GRANT OPTION")
    return s.Grant(privileges, kind, objects, roles, members)


def revoke(reader: Reader) -> s.Statement:
    """What follows REVOKE."""
    if reader.is_next("grant", "option"):
        raise reader.unsupported("GRANT OPTION")
    privileges, kind, objects, members = _subject(reader)
    reader.expect("from")
    roles = _roles(reader)
    reader.accept_any("cascade", "restrict")
    return s.Revoke(privileges, kind, objects, roles, members)


def _subject(
    reader: Reader,
) -> tuple[tuple[str, ...], str, tuple[s.Name, ...], tuple[str, ...]]:
    if reader.accept("all"):
        reader.accept("privileges")
        privileges: tuple[str, ...] = ()
    else:
        words = reader.list_of(reader.identifier)
        if not reader.is_next("on"):
            return (), "role", (), words
        for word in words:
            if word not in _PRIVILEGES:
                raise reader.unsupported(f"the privilege {word.upper()}")
        privileges = words
    reader.expect("on")
    if reader.accept("all", "tables", "in", "schema"):
        return privileges, "all tables", reader.list_of(reader.name), ()
    if reader.is_next("all"):
        raise reader.unsupported("GRANT ON ALL", "ALL TABLES IN SCHEMA, or name the objects.")
    kind = reader.accept_any("table", "schema", "database", "secret", "connection") or "table"
    return privileges, kind, reader.list_of(reader.name), ()


def _roles(reader: Reader) -> tuple[str, ...]:
    def one() -> str:
        reader.accept("group")
        return reader.identifier()

    return reader.list_of(one)
