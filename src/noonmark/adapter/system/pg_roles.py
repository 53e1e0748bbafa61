"""pg_catalog and information_schema about roles: who there is, what they may, what they do.

What these relations say of rights is what a statement would find (`catalog.privilege`). The text of
a statement under way is for the role that runs it, and for superusers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noonmark.adapter.catalog.item import DATABASE, EVERYBODY, Item
from noonmark.adapter.catalog.privilege import (
    DEFAULTS,
    held,
    is_superuser,
    letters,
    memberships,
    owns,
)
from noonmark.adapter.system.facts import (
    DATABASE_OID,
    SUPERUSER_OID,
    Facts,
    Row,
    relation,
)

#: What PostgreSQL shows instead of the statement of somebody else.
HIDDEN = "<insufficient privilege>"
_OBJECT_TYPES = {"table": "r", "schema": "n", "connection": "c", "secret": "s"}


def _roles(facts: Facts) -> list[tuple[int, str, bool, bool, bool]]:
    """Number, name, superuser, inherit, login of every role; first those that are always there."""
    return [
        (
            facts.role_oid(name),
            name,
            is_superuser(facts.catalog, name)
            if not role.number
            else bool(role.definition.get("superuser")),
            bool(role.definition.get("inherit", True)),
            bool(role.definition.get("login", True)),
        )
        for name, role in facts.catalog.all_roles().items()
    ]


def _pg_roles(facts: Facts) -> Iterable[Row]:
    for number, name, superuser, inherit, login in _roles(facts):
        yield (
            name, superuser, inherit, superuser, superuser, login, False, -1, "********", None,
            False, None, number,
        )  # fmt: skip


def _pg_authid(facts: Facts) -> Iterable[Row]:
    for number, name, superuser, inherit, login in _roles(facts):
        yield (number, name, superuser, inherit, superuser, superuser, login, False, False, -1,
               None, None)  # fmt: skip


def _pg_user(facts: Facts) -> Iterable[Row]:
    for number, name, superuser, _, login in _roles(facts):
        if login:
            yield (name, number, superuser, superuser, False, False, "********", None, None)


def _pg_auth_members(facts: Facts) -> Iterable[Row]:
    for role in facts.catalog.items("role"):
        for group in role.definition.get("member_of", ()):
            inherit = bool(role.definition.get("inherit", True))
            yield (facts.role_oid(group), facts.role_oid(role.name), SUPERUSER_OID, False, inherit,
                   True)  # fmt: skip


def _pg_stat_activity(facts: Facts) -> Iterable[Row]:
    asks = facts.session
    all_of_it = is_superuser(facts.catalog, asks.user)
    for session in asks.database.sessions.values():
        name = session.variables.get("application_name", "")
        peer: str | None = session.peer
        status: str | None = session.status
        text = session.text
        if not all_of_it and asks.user not in (session.session_user, session.login_user):
            peer, status, text = None, None, HIDDEN
        number = facts.role_oid(session.session_user)
        yield (
            DATABASE_OID, DATABASE, session.id, session.session_user, name, peer, status, text,
            None, number, *(None,) * 11, "client backend",
        )  # fmt: skip


def default_acls(facts: Facts) -> Iterable[Row]:
    """pg_default_acl: what ALTER DEFAULT PRIVILEGES said, a row for each maker, schema and kind."""
    for role in facts.catalog.items("role"):
        found: dict[tuple[str, str], list[str]] = {}
        for schema, kind, grantee, rights in role.definition.get(DEFAULTS, ()):
            who = "" if grantee == EVERYBODY else grantee
            entry = f"{who}={letters(frozenset(rights))}/{role.name}"
            found.setdefault((schema, kind), []).append(entry)
        for at, ((schema, kind), entries) in enumerate(found.items()):
            place = facts.schema_oid(schema) if schema else 0
            yield (role.oid * 100 + at, facts.role_oid(role.name), place, _OBJECT_TYPES[kind],
                   tuple(entries))  # fmt: skip


# -- information_schema --------------------------------------------------------------------------


def _granted(facts: Facts) -> Iterator[tuple[Item, str, str, str]]:
    """Item, grantor, grantee and right, of what the current role has to do with."""
    catalog, user = facts.catalog, facts.session.user
    mine = memberships(catalog, user)
    for item in catalog.items():
        if not item.is_relation or item.kind == "system":
            continue
        concerned = owns(catalog, user, item)
        owner = item.owner or DATABASE
        for grantee, rights in held(item):
            if concerned or grantee in mine:
                shown = "PUBLIC" if grantee == EVERYBODY else grantee
                yield from ((item, owner, shown, right) for right in sorted(rights))


def _table_privileges(facts: Facts) -> Iterable[Row]:
    for item, grantor, grantee, right in _granted(facts):
        grantable = "YES" if grantor == grantee else "NO"
        hierarchy = "YES" if right == "SELECT" else "NO"
        yield (grantor, grantee, DATABASE, item.schema_name, item.name, right, grantable, hierarchy)


def _role_table_grants(facts: Facts) -> Iterable[Row]:
    return (row for row in _table_privileges(facts) if row[1] != "PUBLIC")


def enabled_roles(facts: Facts) -> Iterable[Row]:
    """information_schema.enabled_roles: the roles whose rights the current one has."""
    if is_superuser(facts.catalog, facts.session.user):
        return [(name,) for name in facts.catalog.all_roles()]
    return [(name,) for name in sorted(memberships(facts.catalog, facts.session.user))
            if name != EVERYBODY]  # fmt: skip


def applicable_roles(facts: Facts) -> Iterable[Row]:
    """information_schema.applicable_roles: who is a member of what, of the roles that one is."""
    mine = memberships(facts.catalog, facts.session.user, inherited=False)
    for name, role in facts.catalog.roles().items():
        if name in mine or is_superuser(facts.catalog, facts.session.user):
            yield from ((name, group, "NO") for group in role.definition.get("member_of", ()))


_T = "text"
RELATIONS = (
    relation(
        "pg_catalog.pg_roles", _pg_roles, 12_000,
        rolname="name", rolsuper="boolean", rolinherit="boolean", rolcreaterole="boolean",
        rolcreatedb="boolean", rolcanlogin="boolean", rolreplication="boolean",
        rolconnlimit="integer", rolpassword="text", rolvaliduntil="timestamptz",
        rolbypassrls="boolean", rolconfig="text[]", oid="oid",
    ),
    relation(
        "pg_catalog.pg_authid", _pg_authid, 1260,
        oid="oid", rolname="name", rolsuper="boolean", rolinherit="boolean",
        rolcreaterole="boolean", rolcreatedb="boolean", rolcanlogin="boolean",
        rolreplication="boolean", rolbypassrls="boolean", rolconnlimit="integer",
        rolpassword="text", rolvaliduntil="timestamptz",
    ),
    relation(
        "pg_catalog.pg_user", _pg_user, 12_001,
        usename="name", usesysid="oid", usecreatedb="boolean", usesuper="boolean",
        userepl="boolean", usebypassrls="boolean", passwd="text", valuntil="timestamptz",
        useconfig="text[]",
    ),
    relation(
        "pg_catalog.pg_auth_members", _pg_auth_members, 1261,
        roleid="oid", member="oid", grantor="oid", admin_option="boolean",
        inherit_option="boolean", set_option="boolean",
    ),
    relation(
        "pg_catalog.pg_stat_activity", _pg_stat_activity, 12_006,
        datid="oid", datname="name", pid="integer", usename="name", application_name="text",
        client_addr="text", state="text", query="text", leader_pid="integer", usesysid="oid",
        client_hostname="text", client_port="integer", backend_start="timestamptz",
        xact_start="timestamptz", query_start="timestamptz", state_change="timestamptz",
        wait_event_type="text", wait_event="text", backend_xid="xid", backend_xmin="xid",
        query_id="bigint", backend_type="text",
    ),
    relation(
        "pg_catalog.pg_shadow", _pg_user, 13_300,
        usename="name", usesysid="oid", usecreatedb="boolean", usesuper="boolean",
        userepl="boolean", usebypassrls="boolean", passwd="text", valuntil="timestamptz",
        useconfig="text[]",
    ),
)  # fmt: skip
#: Relations with numbers of their own, behind all that have none.
LATER = (
    *(
        relation(
            f"information_schema.{name}", rows, number,
            grantor="name", grantee="name", table_catalog="name", table_schema="name",
            table_name="name", privilege_type=_T, is_grantable=_T, with_hierarchy=_T,
        )
        for name, rows, number in (
            ("table_privileges", _table_privileges, 13_900),
            ("role_table_grants", _role_table_grants, 13_901),
        )
    ),
)  # fmt: skip

__all__ = ["HIDDEN", "LATER", "RELATIONS", "applicable_roles", "default_acls", "enabled_roles"]
