"""Functions about rights: has_table_privilege and its kin, pg_has_role.

What they say is what a statement of that user would find (`catalog.privilege`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.catalog.privilege import (
    BUILT_IN,
    EVERYBODY,
    LETTERS,
    PRIVILEGES,
    has,
    is_superuser,
    letters,
    memberships,
)
from noonmark.adapter.catalog.rights import OWN
from noonmark.adapter.system.described import record
from noonmark.adapter.system.facts import SCHEMA_OIDS, Facts
from noonmark.adapter.system.objects import ask, parts_of
from noonmark.adapter.system.pg_catalog import schema_oids
from noonmark.adapter.system.settings import path_of
from noonmark.errors import InvalidArgument, InvalidText, UndefinedObject, UndefinedSchema
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

    def parameter(self, *asked: Any) -> bool:
        """Whether a user may set a parameter whose values are a superuser's to choose."""
        *who, _, rights = asked
        for each in rights.split(","):
            if each.strip().upper().removesuffix(" WITH GRANT OPTION") not in _OF_PARAMETERS:
                raise InvalidArgument(f'unrecognized privilege type: "{each.strip()}"')
        facts = Facts.of(self._session)
        return is_superuser(facts.catalog, _role_name(facts, who[0] if who else facts.session.user))

    def wrapper(self, *asked: Any) -> bool | None:
        """Whether a user has rights on a foreign-data wrapper: there are none."""
        *who, name, rights = asked
        for each in rights.split(","):
            if each.strip().upper().removesuffix(" WITH GRANT OPTION") != "USAGE":
                raise InvalidArgument(f'unrecognized privilege type: "{each.strip()}"')
        facts = Facts.of(self._session)
        user = _role_name(facts, who[0] if who else facts.session.user)
        if isinstance(name, str):
            raise UndefinedObject(f'foreign-data wrapper "{name}" does not exist')
        return True if is_superuser(facts.catalog, user) else None

    def entry(self, grantee: int, grantor: int, rights: str, grantable: bool) -> str:
        """One entry of a list of rights."""
        facts = Facts.of(self._session)
        names = [
            "" if not role else facts.role_name(role) or str(role) for role in (grantee, grantor)
        ]
        words = [_right(each) for each in rights.split(",")]
        found = letters(frozenset(words))
        shown = "".join(f"{letter}*" for letter in found) if grantable else found
        return f"{names[0]}={shown}/{names[1]}"

    def exploded(self, entries: tuple[str | None, ...]) -> Any:
        """A row for every right of every entry."""
        facts, found = Facts.of(self._session), []
        for entry in entries:
            match = _ENTRY.fullmatch(entry or "")
            if match is None:
                raise InvalidText(f'invalid input syntax for type aclitem: "{entry}"')
            grantee, shown, grantor = match.groups()
            to, by = (0 if not name else _role_number(facts, name) for name in (grantee, grantor))
            found += [
                (by, to, right, bool(mark))
                for right, letter in LETTERS.items()
                for own, mark in re.findall(r"(\w)(\*?)", shown)
                if own == letter
            ]
        return tuple(found)

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
        "parameter": rights.parameter,
        "foreign_data_wrapper": rights.wrapper,
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
        ask("acldefault", (_TEXT, _INT), t.Array(t.Text("aclitem")), rights.defaults),
        ask(
            "makeaclitem",
            (_INT, _INT, _TEXT, t.Boolean),
            t.Text("aclitem"),
            rights.entry,
            fallible=True,
        ),
        ask("rows of aclexplode", (t.Array,), _EXPLODED, rights.exploded, fallible=True),
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


def _right(text: str) -> str:
    """A right by its name, in any case.

    Raises:
        InvalidArgument: there is no such right.
    """
    word = text.strip().upper()
    word = "TEMPORARY" if word == "TEMP" else word
    if word not in LETTERS:
        raise InvalidArgument(f'unrecognized privilege type: "{text.strip()}"')
    return word


def _role_number(facts: Facts, name: str) -> int:
    """A role's number.

    Raises:
        UndefinedObject: there is no such role.
    """
    bare = name.strip('"').replace('""', '"')
    if bare not in facts.catalog.all_roles() and bare != BUILT_IN:
        raise UndefinedObject(f'role "{bare}" does not exist')
    return facts.role_oid(bare)


_OF_PARAMETERS = frozenset(("SET", "ALTER SYSTEM"))
_ENTRY = re.compile(r'((?:"(?:[^"]|"")*"|[^"=])*)=((?:\w\*?)*)/((?:"(?:[^"]|"")*"|[^"/])+)')
_EXPLODED = record(
    grantor=t.Integer("oid"),
    grantee=t.Integer("oid"),
    privilege_type=t.Text(),
    is_grantable=t.Boolean(),
)
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
