"""Roles and what they may do: CREATE and ALTER ROLE, GRANT, REVOKE, default privileges."""

from __future__ import annotations

from noonmark.sql.statement import statement as s
from noonmark.sql.statement.reader import Reader

_PRIVILEGES = (
    *("select", "insert", "update", "delete", "truncate", "references"),
    *("usage", "create", "connect", "temporary", "temp"),
)
_IGNORED = ("nocreatedb", "nocreaterole", "noreplication", "nobypassrls")


def create_role(reader: Reader) -> s.Statement:
    """What follows CREATE ROLE; a USER may log in."""
    user = reader.tokens[reader.at - 1].value == "user"
    if_not_exists = reader.if_not_exists()
    name = reader.identifier()
    password, login, superuser, inherit = _attributes(reader)
    if user and login is None:
        login = True
    return s.CreateRole(name, password, login, superuser, inherit, if_not_exists)


def alter_role(reader: Reader) -> s.Statement:
    """What follows ALTER ROLE."""
    name = reader.identifier()
    if reader.accept("rename"):
        reader.expect("to")
        return s.Rename("role", s.Name((name,)), reader.identifier())
    return s.AlterRole(name, *_attributes(reader))


def _attributes(
    reader: Reader,
) -> tuple[str | None, bool | None, bool | None, bool | None]:
    password, login, superuser, inherit = None, None, None, None
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
        elif reader.accept("inherit"):
            inherit = True
        elif reader.accept("noinherit"):
            inherit = False
        elif reader.accept("password") or reader.accept("encrypted", "password"):
            password = "" if reader.accept("null") else reader.string()
        elif reader.accept_any(*_IGNORED) is None:
            if reader.token.kind != "word":
                raise reader.invalid()
            raise reader.unsupported(f"{reader.token.value.upper()} of a role")
    return password, login, superuser, inherit


def grant(reader: Reader) -> s.Statement:
    """What follows GRANT."""
    privileges, kind, objects, members = _subject(reader)
    reader.expect("to")
    roles = _roles(reader)
    if reader.is_next("with"):
        what = " ".join(token.value for token in reader.tokens[reader.at : -1])
        raise reader.unsupported(what.upper())
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
        privileges = _checked(reader, words)
    reader.expect("on")
    for what in ("tables", "sequences"):
        if reader.accept("all", what, "in", "schema"):
            return privileges, f"all {what}", reader.list_of(reader.name), ()
    if reader.is_next("all"):
        raise reader.unsupported("GRANT ON ALL", "ALL TABLES IN SCHEMA, or name the objects.")
    kinds = ("table", "sequence", "type", "domain", "schema", "database", "secret",
             "connection")  # fmt: skip
    kind = reader.accept_any(*kinds) or "table"
    return privileges, kind, reader.list_of(reader.name), ()


def _checked(reader: Reader, words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if word not in _PRIVILEGES:
            raise reader.unsupported(f"the privilege {word.upper()}")
    return words


def alter_default_privileges(reader: Reader) -> s.Statement:
    """What follows ALTER DEFAULT PRIVILEGES."""
    makers: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    if reader.accept("for", "role") or reader.accept("for", "user"):
        makers = _roles(reader)
    if reader.accept("in", "schema"):
        schemas = reader.list_of(reader.identifier)
    adds = reader.accept("grant")
    if not adds:
        reader.expect("revoke")
    privileges: tuple[str, ...] = ()
    if reader.accept("all"):
        reader.accept("privileges")
    else:
        privileges = _checked(reader, reader.list_of(reader.identifier))
    reader.expect("on")
    kind = reader.accept_any("tables", "sequences", "types", "schemas", "connections", "secrets")
    if kind is None:
        raise reader.unsupported(
            "ALTER DEFAULT PRIVILEGES of these objects", "TABLES, SCHEMAS, CONNECTIONS, SECRETS."
        )
    reader.expect("to" if adds else "from")
    roles = _roles(reader)
    if reader.is_next("with"):
        raise reader.unsupported("WITH GRANT OPTION")
    reader.accept_any("cascade", "restrict")
    return s.AlterDefaultPrivileges(makers, schemas, adds, privileges, kind, roles)


def reassign(reader: Reader) -> s.Statement:
    """What follows REASSIGN."""
    reader.expect("owned", "by")
    roles = _roles(reader)
    reader.expect("to")
    return s.ReassignOwned(roles, reader.identifier())


def _roles(reader: Reader) -> tuple[str, ...]:
    def one() -> str:
        reader.accept("group")
        return reader.identifier()

    return reader.list_of(one)
