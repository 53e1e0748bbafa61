"""Functions about rights: has_table_privilege and its kin, pg_has_role.

What they say is what a statement of that user would find (`catalog.privilege`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.catalog.privilege import (
    BUILT_IN,
    EVERYBODY,
    PRIVILEGES,
    has,
    is_superuser,
    letters,
    memberships,
)
from noonmark.adapter.catalog.rights import OWN
from noonmark.adapter.system.facts import SCHEMA_OIDS, Facts
from noonmark.adapter.system.objects import ask, parts_of
from noonmark.adapter.system.pg_catalog import schema_oids
from noonmark.adapter.system.settings import path_of
from noonmark.errors import InvalidArgument, UndefinedObject, UndefinedSchema
from noonmark.rows import types as t
from noonmark.sql.functions.function import Any_, Function

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_INT, _TEXT = t.Integer, t.Text
#: What acldefault calls the kinds of objects.
_ACL_KINDS = {"r": "table", "n": "schema", "d": "database"}


class _Rights:
    """The questions, as one session asks them: ``[user,] object, rights``."""

    def __init__(self, session: AdapterSession) -> None:
        self._session = session

    def _may(self, item: Item | None, rights: str, user: str | None = None) -> bool | None:
        if item is None:
            return None
        session = self._session
        who = session.user if user is None else _role_name(Facts.of(session), user)
        return any(has(session.catalog, who, right, item) for right in _asked(rights))

    def table(self, *asked: Any) -> bool | None:
        """Whether a user has one of these rights on a relation."""
        *who, name, rights = asked
        if isinstance(name, int):
            item = Facts.of(self._session).by_oid(name)
        else:
            path = path_of(self._session)
            item = self._session.catalog.resolve(parts_of(name), path=path)
        return self._may(item, rights, *who)

    def defaults(self, what: str, owner: int) -> tuple[str, ...]:
        """The rights on an object that nobody granted anything on."""
        name = Facts.of(self._session).role_name(owner) or BUILT_IN
        has = letters(frozenset(PRIVILEGES.get(_ACL_KINDS.get(what, ""), ())))
        everybody = {"d": "Tc", "f": "X", "l": "U", "T": "U"}.get(what)
        public = () if everybody is None else (f"={everybody}/{name}",)
        return (*public, f"{name}={has or everybody}/{name}")

    def schema(self, *asked: Any) -> bool | None:
        """Whether a user has one of these rights on a schema."""
        *who, name, rights = asked
        if isinstance(name, int):
            by_number = {number: each for each, number in schema_oids(Facts.of(self._session))}
            if name not in by_number:
                return None
            name = by_number[name]
        item = self._session.catalog.schema(name)
        if item is None and name in SCHEMA_OIDS:
            return "CREATE" not in rights.upper()
        if item is None:
            raise UndefinedSchema(f'schema "{name}" does not exist')
        return self._may(item, rights, *who)

    def database(self, *asked: Any) -> bool | None:
        """Whether a user has one of these rights on the database."""
        *who, _, rights = asked
        return self._may(self._session.catalog.database, rights, *who)

    def column(self, *asked: Any) -> bool | None:
        """Whether a user has one of these rights on a column: it has those of its relation."""
        *who, name, _, rights = asked
        return self.table(*who, name, rights)

    def item(self, kind: str) -> Callable[..., bool | None]:
        """Whether a user has one of these rights on a secret or a connection."""

        def meaning(*asked: Any) -> bool | None:
            *who, name, rights = asked
            facts = Facts.of(self._session)
            found = (
                facts.by_oid(name)
                if isinstance(name, int)
                else facts.catalog.find(parts_of(name), path_of(self._session))
            )
            if found is None or found.kind != kind:
                raise UndefinedObject(f'{kind} "{name}" does not exist')
            return self._may(found, rights, *who)

        return meaning

    def role(self, *asked: Any) -> bool:
        """Whether a user is a member of a role (MEMBER, SET), or has its rights (USAGE)."""
        *who, name, how = asked
        facts = Facts.of(self._session)
        either = (*(who or [self._session.user]), name)
        user, wanted = (_role_name(facts, each) for each in either)
        words = [word.strip().upper() for word in how.split(",")]
        for word in words:
            if word.split(" ")[0] not in ("MEMBER", "USAGE", "SET"):
                raise InvalidArgument(f'unrecognized privilege type: "{word}"')
        if is_superuser(facts.catalog, user):
            return True
        # The option to grant a role on is a superuser's alone.
        plain = [word for word in words if " WITH " not in word]
        return any(
            wanted in memberships(facts.catalog, user, inherited=word == "USAGE") for word in plain
        )


def about_rights(session: AdapterSession) -> list[Function]:
    """The functions, for one session."""
    rights, boolean = _Rights(session), t.Boolean()
    free = ("function", "language", "sequence", "type", "server", "tablespace")
    about = {
        "table": rights.table,
        "any_column": rights.table,
        "schema": rights.schema,
        "database": rights.database,
        "secret": rights.item("secret"),
        "connection": rights.item("connection"),
        **dict.fromkeys(free, lambda *_: True),
    }
    return [
        *(
            ask(f"has_{what}_privilege", (*who, first, _TEXT), boolean, meaning)
            for what, meaning in about.items()
            for who in ((), (_TEXT,))
            for first in (_INT, _TEXT)
        ),
        *(
            ask("has_column_privilege", (*who, first, at, _TEXT), boolean, rights.column)
            for who in ((), (_TEXT,))
            for first in (_INT, _TEXT)
            for at in (_INT, _TEXT)
        ),
        ask("pg_has_role", (Any_.ANY, Any_.ANY, _TEXT), boolean, rights.role, fallible=True),
        ask("pg_has_role", (Any_.ANY, _TEXT), boolean, rights.role, fallible=True),
        ask("acldefault", (_TEXT, _INT), t.Array(t.Text()), rights.defaults),
        ask("row_security_active", (Any_.ANY,), boolean, lambda _: False),
    ]


def _asked(rights: str) -> list[str]:
    """The rights that a question names.

    Raises:
        InvalidArgument: one that is none.
    """
    found = []
    for each in rights.split(","):
        word = each.strip().upper()
        bare = word.removesuffix(" WITH GRANT OPTION")
        bare = "TEMPORARY" if bare == "TEMP" else bare
        if bare not in _KNOWN:
            raise InvalidArgument(f'unrecognized privilege type: "{each.strip()}"')
        # Nobody but the owner can grant on.
        found.append(OWN if bare != word else bare)
    return found


_KNOWN = frozenset(
    (
        *("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN"),
        *("USAGE", "CREATE", "CONNECT", "TEMPORARY"),
    )
)


def _role_name(facts: Facts, role: str | int) -> str:
    """A role by its name or number.

    Raises:
        UndefinedObject: there is none.
    """
    if isinstance(role, int):
        found = facts.role_name(role)
        if found is None:
            raise UndefinedObject(f"role with OID {role} does not exist")
        return found
    if role in (EVERYBODY, facts.session.user):
        return role
    return facts.catalog.role(role).name
