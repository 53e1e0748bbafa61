"""Functions about rights: has_table_privilege and its kin, pg_has_role.

What they say is what a statement of that user would find (`catalog.privilege`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.catalog.privilege import BUILT_IN, has, is_superuser, memberships
from noonmark.adapter.system.facts import SCHEMA_OIDS, Facts
from noonmark.adapter.system.objects import ask, parts_of
from noonmark.adapter.system.pg_catalog import schema_oids
from noonmark.errors import UndefinedObject
from noonmark.rows import types as t
from noonmark.sql.functions.function import Any_, Function

if TYPE_CHECKING:
    from noonmark.adapter.session import AdapterSession

_INT, _TEXT = t.Integer, t.Text


class _Rights:
    """The questions, as one session asks them: ``[user,] object, rights``."""

    def __init__(self, session: AdapterSession) -> None:
        self._session = session

    def _may(self, item: Item | None, rights: str, user: str | None = None) -> bool | None:
        if item is None:
            return None
        asked = [right.strip().upper() for right in rights.split(",")]
        session = self._session
        return any(has(session.catalog, user or session.user, right, item) for right in asked)

    def table(self, *asked: Any) -> bool | None:
        """Whether a user has one of these rights on a relation."""
        *who, name, rights = asked
        if isinstance(name, int):
            item = Facts.of(self._session).by_oid(name)
        else:
            item = self._session.catalog.find(parts_of(name))
        return self._may(item, rights, *who)

    def schema(self, *asked: Any) -> bool | None:
        """Whether a user has one of these rights on a schema."""
        *who, name, rights = asked
        if isinstance(name, int):
            by_number = {number: each for each, number in schema_oids(Facts.of(self._session))}
            name = by_number.get(name, "")
        item = self._session.catalog.schema(name)
        if item is None and name in SCHEMA_OIDS:
            return "CREATE" not in rights.upper()
        if item is None:
            raise UndefinedObject(f'schema "{name}" does not exist')
        return self._may(item, rights, *who)

    def database(self, *asked: Any) -> bool | None:
        """Whether a user has one of these rights on the database."""
        *who, _, rights = asked
        return self._may(self._session.catalog.database, rights, *who)

    def role(self, *asked: Any) -> bool:
        """Whether a user is a member of a role."""
        *who, name, _ = asked
        facts = Facts.of(self._session)
        either = (*(who or [self._session.user]), name)
        user, wanted = (_role_name(facts, each) for each in either)
        return is_superuser(facts.catalog, user) or wanted in memberships(facts.catalog, user)


def about_rights(session: AdapterSession) -> list[Function]:
    """The functions, for one session."""
    rights, boolean = _Rights(session), t.Boolean()
    free = ("function", "language", "sequence", "type", "server")
    about = {
        "table": rights.table,
        "any_column": rights.table,
        "schema": rights.schema,
        "database": rights.database,
        **dict.fromkeys(free, lambda *_: True),
    }
    return [
        *(
            ask(f"has_{what}_privilege", (*who, first, _TEXT), boolean, meaning)
            for what, meaning in about.items()
            for who in ((), (_TEXT,))
            for first in (_INT, _TEXT)
        ),
        ask("pg_has_role", (Any_.ANY, Any_.ANY, _TEXT), boolean, rights.role),
        ask("pg_has_role", (Any_.ANY, _TEXT), boolean, rights.role),
        ask("row_security_active", (Any_.ANY,), boolean, lambda _: False),
    ]


def _role_name(facts: Facts, role: str | int) -> str:
    """A role by its name or number."""
    if isinstance(role, str):
        return role
    found = facts.by_oid(role)
    return BUILT_IN if found is None else found.name
