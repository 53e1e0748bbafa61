"""Statements about roles: who they are, what they may do, which of them a session is."""

from __future__ import annotations

from dataclasses import dataclass, field

from noonmark.sql.statement.base import Name, Statement


@dataclass(frozen=True)
class CreateRole(Statement):
    """CREATE ROLE or USER. `password` None: none given; the rest None: not stated."""

    name: str
    password: str | None = field(default=None, repr=False)
    login: bool | None = None
    superuser: bool | None = None
    inherit: bool | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterRole(Statement):
    """ALTER ROLE name WITH ...; `password` "" takes it away."""

    name: str
    password: str | None = field(default=None, repr=False)
    login: bool | None = None
    superuser: bool | None = None
    inherit: bool | None = None


@dataclass(frozen=True)
class Grant(Statement):
    """GRANT privileges ON objects TO roles; `privileges` () means ALL.

    With `member_of`, GRANT role TO role: `objects` are then empty.
    """

    privileges: tuple[str, ...]
    kind: str
    objects: tuple[Name, ...]
    roles: tuple[str, ...]
    member_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Revoke(Statement):
    """REVOKE privileges ON objects FROM roles; as `Grant`."""

    privileges: tuple[str, ...]
    kind: str
    objects: tuple[Name, ...]
    roles: tuple[str, ...]
    member_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlterDefaultPrivileges(Statement):
    """ALTER DEFAULT PRIVILEGES [FOR ROLE ...] [IN SCHEMA ...] GRANT or REVOKE ... ON kind.

    `makers` are the roles of FOR ROLE, none for the current one; `kind` is "tables", "schemas",
    "connections" or "secrets"; `privileges` () means ALL.
    """

    makers: tuple[str, ...]
    schemas: tuple[str, ...]
    adds: bool
    privileges: tuple[str, ...]
    kind: str
    roles: tuple[str, ...]


@dataclass(frozen=True)
class ReassignOwned(Statement):
    """REASSIGN OWNED BY roles TO role."""

    roles: tuple[str, ...]
    owner: str


@dataclass(frozen=True)
class SetRole(Statement):
    """SET ROLE role, or None for SET ROLE NONE and RESET ROLE."""

    role: str | None
    tag: str = "SET"


@dataclass(frozen=True)
class SetSessionAuthorization(Statement):
    """SET SESSION AUTHORIZATION role, or None for DEFAULT and RESET SESSION AUTHORIZATION."""

    role: str | None
    tag: str = "SET"
