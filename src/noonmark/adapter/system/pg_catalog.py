"""pg_catalog: what PostgreSQL's clients ask about relations, columns, schemas, roles and databases.

Only what such clients use is true; columns that speak of what Noonmark does not have (tablespaces,
statistics, row security) have the value that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noonmark.adapter.catalog.item import DATABASE, Item
from noonmark.adapter.catalog.privilege import acl
from noonmark.adapter.sequence.default import shown_defaults
from noonmark.adapter.system import pg_roles
from noonmark.adapter.system.facts import (
    DATABASE_OID,
    SCHEMA_OIDS,
    SUPERUSER_OID,
    Facts,
    Row,
    relation,
)
from noonmark.adapter.system.made_types import made_rows
from noonmark.adapter.system.qualify import query_now
from noonmark.adapter.system.settings import VARIABLES, value_of
from noonmark.adapter.system.types import TYPES, functions_of
from noonmark.adapter.table.constraints import key_name, uniques_of
from noonmark.adapter.table.generated import shown_generated
from noonmark.rows.pg.oid import oid, type_size, typmod
from noonmark.sql.scope import SYSTEM_COLUMN

#: pg_class.relkind by kind of item.
RELKIND = {
    "table": "r",
    "source": "r",
    "subsource": "r",
    "progress": "r",
    "errors": "r",
    "view": "v",
    "materialized-view": "m",
    "index": "i",
    "system": "v",
    "sequence": "S",
}
#: The primary key of a table is an index whose number stands apart from all items.
KEY_OID_BASE = 1_000_000_000
#: Those of CHECKs are above it.
CHECK_OID_BASE = 1_100_000_000
UNIQUE_OID_BASE = 1_400_000_000
FOREIGN_OID_BASE = 1_700_000_000
#: Constraints of one table and kind that have numbers of their own.
UNIQUES_MAX = 100


def listed(facts: Facts) -> Iterator[Item]:
    """The items that pg_class has."""
    return (item for item in facts.catalog.items() if item.kind in RELKIND)


def schema_oids(facts: Facts) -> list[tuple[str, int]]:
    """Every schema and its number."""
    own = {item.name: facts.schema_oid(item.name) for item in facts.catalog.items("schema")}
    return list({**SCHEMA_OIDS, **own}.items())


def _pg_class(facts: Facts) -> Iterable[Row]:
    indexed = {number for index in facts.catalog.items("index") for number in index.needs[:1]}
    for item in listed(facts):
        row = _class_row(facts, item, item.oid, item.name, RELKIND[item.kind])
        uniques = uniques_of(item) if item.kind == "table" else ()
        has_index = row[13] or item.number in indexed or bool(uniques)
        checks = len(item.definition.get("checks", ())) if item.kind == "table" else 0
        yield (*row[:13], has_index, *row[14:18], checks, *row[19:])
        if item.kind == "table" and item.key:
            yield _class_row(facts, item, KEY_OID_BASE + item.oid, key_name(item), "i")
        for at, unique in enumerate(uniques):
            number = UNIQUE_OID_BASE + item.oid * UNIQUES_MAX + at
            made = _class_row(facts, item, number, unique.name, "i")
            yield (*made[:17], len(unique.elements or unique.columns), *made[18:])


def _class_row(facts: Facts, item: Item, number: int, name: str, kind: str) -> Row:
    rules, am = kind in "vm", 403 if kind == "i" else 2
    width = len(item.key if kind == "i" and item.key else item.schema)
    has_index = kind == "r" and bool(item.key)
    return (
        number, name, facts.schema_oid(item.schema_name), number if kind in "rvm" else 0, 0,
        facts.role_oid(item.owner), am if kind in "rmi" else 0, number, 0, 0, -1.0, 0, 0,
        has_index, False, "p", kind, width, 0, rules, False, False, False, False, True, "d",
        False, 0, 0, 1, acl(item), None, None,
    )  # fmt: skip


def _pg_namespace(facts: Facts) -> Iterable[Row]:
    for name, number in schema_oids(facts):
        item = facts.catalog.schema(name)
        if item is None:
            yield number, name, SUPERUSER_OID, None
        else:
            yield number, name, facts.role_oid(item.owner), acl(item)


def _storage(number: int, size: int) -> str:
    """How PostgreSQL would keep values of a type: as they are, in the row, or aside."""
    if size != -1:
        return "p"
    return "m" if number in _IN_ROW else "x"


#: numeric, inet, cidr
_IN_ROW = frozenset((1700, 869, 650))


def _pg_attribute(facts: Facts) -> Iterable[Row]:
    from noonmark.adapter.system.pg_index import (
        columns_of_indexes,
    )  # door: it uses the numbers here

    for oid_, at, name, kind in columns_of_indexes(facts):
        size = type_size(kind)
        yield (
            oid_, name, oid(kind), -1, size, at, 0, -1, typmod(kind), 0 < size <= 8, "i",
            _storage(oid(kind), size), "", False, False, False, "", "", False, True, 0,
            100 if _is_text(oid(kind)) else 0, None, None, None, None,
        )  # fmt: skip
    for item in listed(facts):
        if item.kind == "index":
            continue
        own = item.definition if item.kind == "table" else {}
        defaults, identity = own.get("defaults", {}), own.get("identity", {})
        computed = own.get("generated", {})
        declared = RELKIND[item.kind] in "rS"  # of views, PostgreSQL never says NOT NULL
        for at, column in enumerate(item.schema, 1):
            size, number = type_size(column.type), -6 if column.name == SYSTEM_COLUMN else at
            yield (
                item.oid, column.name, oid(column.declared), -1, size, number, 0, -1,
                -1 if column.domain else typmod(column.type), 0 < size <= 8, "i",
                _storage(oid(column.type), size), "",
                declared and (not column.nullable or column.name in own.get("not_null", ())),
                column.name in defaults or column.name in computed, False,
                identity.get(column.name, [""])[0], "s" if column.name in computed else "",
                False, True, 0,
                100 if _is_text(oid(column.type)) else 0, None, None, None, None,
            )  # fmt: skip


def _is_text(number: int) -> bool:
    return number in (25, 1042, 1043)


#: Types whose values stand with a semicolon between them in an array: they have commas themselves.
_APART = ("box", "_box")


def _pg_type(facts: Facts) -> Iterable[Row]:
    for row in TYPES:
        yield (
            row.oid, row.name, SCHEMA_OIDS["pg_catalog"], SUPERUSER_OID, row.size,
            0 < row.size <= 8, row.kind, row.category, False, True,
            ";" if row.name in _APART else ",", 0, "-", row.element,
            row.array, *functions_of(row), "-", "-", "-",
            "i", "p", False, 0, -1, 0, 100 if row.category == "S" else 0, None, None,
            None,
        )  # fmt: skip
    yield from made_rows(facts)


def default_oid(item: Item, column: str) -> int:
    """The number of a column's default."""
    return item.oid * 1600 + item.schema.index(column) + 1


def _pg_attrdef(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("table"):
        shown = shown_defaults(facts.catalog, item, facts.path)
        computed = shown_generated(facts.catalog, item, facts.path)
        for name, text in {**shown, **computed}.items():
            at = item.schema.index(name) + 1
            yield (default_oid(item, name), item.oid, at, text)


def _pg_description(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items():
        for column, text in item.comments.items():
            at = item.schema.index(column) + 1 if column in item.schema else 0
            yield (item.oid, _TYPE if item.kind == "type" else _CLASS, at, text)


_CLASS, _TYPE = 1259, 1247


def _pg_database(facts: Facts) -> Iterable[Row]:
    return [
        (
            DATABASE_OID, DATABASE, SUPERUSER_OID, 6, "c", "C", "C", None, None, False, True, -1,
            0, 0, 1, 1663, acl(facts.catalog.database),
        )
    ]  # fmt: skip


def _pg_am(_: Facts) -> Iterable[Row]:
    return [(2, "heap", "heap_tableam_handler", "t"), (403, "btree", "bthandler", "i")]


def _pg_tables(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("table", "source", "subsource", "progress", "errors"):
        yield (item.schema_name, item.name, item.owner, None, bool(item.key), False, False, False)


def _pg_views(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("view"):
        yield (item.schema_name, item.name, item.owner, query_now(facts.catalog, item))


def _pg_matviews(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("materialized-view"):
        text = query_now(facts.catalog, item)
        yield (item.schema_name, item.name, item.owner, None, False, True, text)


def _pg_collation(_: Facts) -> Iterable[Row]:
    names = ((100, "default", "d"), (950, "C", "c"), (951, "POSIX", "c"))
    for number, name, provider in names:
        yield (number, name, 11, SUPERUSER_OID, provider, True, -1, "C", "C", None, None)


def _pg_tablespace(_: Facts) -> Iterable[Row]:
    return [(1663, "pg_default", SUPERUSER_OID, None, None)]


def _pg_settings(facts: Facts) -> Iterable[Row]:
    for variable in VARIABLES.values():
        value = value_of(facts.session.shown_variables, variable.name)
        context = "internal" if variable.check is None else "user"
        yield (variable.name, value, None, "Session", variable.about, None, context, "string",
               "session", None, None, None, variable.default, variable.default, False, None,
               None)  # fmt: skip


RELATIONS = (
    relation(
        "pg_catalog.pg_class", _pg_class, 1259,
        oid="oid not null", relname="name not null", relnamespace="oid not null",
        reltype="oid", reloftype="oid", relowner="oid", relam="oid",
        relfilenode="oid", reltablespace="oid", relpages="integer", reltuples="real",
        relallvisible="integer", reltoastrelid="oid", relhasindex="boolean",
        relisshared="boolean", relpersistence="char", relkind="char", relnatts="smallint",
        relchecks="smallint", relhasrules="boolean", relhastriggers="boolean",
        relhassubclass="boolean", relrowsecurity="boolean", relforcerowsecurity="boolean",
        relispopulated="boolean", relreplident="char", relispartition="boolean",
        relrewrite="oid", relfrozenxid="xid", relminmxid="xid", relacl="aclitem[]",
        reloptions="text[]", relpartbound="pg_node_tree",
    ),
    relation(
        "pg_catalog.pg_namespace", _pg_namespace, 2615,
        oid="oid not null", nspname="name not null", nspowner="oid", nspacl="aclitem[]",
    ),
    relation(
        "pg_catalog.pg_attribute", _pg_attribute, 1249,
        attrelid="oid not null", attname="name not null", atttypid="oid",
        attstattarget="integer", attlen="smallint", attnum="smallint not null",
        attndims="integer", attcacheoff="integer", atttypmod="integer", attbyval="boolean",
        attalign="char", attstorage="char", attcompression="char", attnotnull="boolean",
        atthasdef="boolean", atthasmissing="boolean", attidentity="char", attgenerated="char",
        attisdropped="boolean", attislocal="boolean", attinhcount="integer",
        attcollation="oid", attacl="aclitem[]", attoptions="text[]", attfdwoptions="text[]",
        attmissingval="anyarray",
    ),
    relation(
        "pg_catalog.pg_type", _pg_type, 1247,
        oid="oid not null", typname="name not null", typnamespace="oid",
        typowner="oid", typlen="smallint", typbyval="boolean", typtype="char",
        typcategory="char", typispreferred="boolean", typisdefined="boolean", typdelim="char",
        typrelid="oid", typsubscript="regproc", typelem="oid", typarray="oid",
        typinput="regproc", typoutput="regproc", typreceive="regproc", typsend="regproc",
        typmodin="regproc", typmodout="regproc", typanalyze="regproc", typalign="char",
        typstorage="char",
        typnotnull="boolean", typbasetype="oid", typtypmod="integer", typndims="integer",
        typcollation="oid", typdefaultbin="pg_node_tree", typdefault="text", typacl="aclitem[]",
    ),
    relation(
        "pg_catalog.pg_attrdef", _pg_attrdef, 2604,
        oid="oid not null", adrelid="oid", adnum="smallint", adbin="pg_node_tree",
    ),
    relation(
        "pg_catalog.pg_description", _pg_description, 2609,
        objoid="oid", classoid="oid", objsubid="integer", description="text",
    ),
    relation(
        "pg_catalog.pg_database", _pg_database, 1262,
        oid="oid not null", datname="name", datdba="oid", encoding="integer",
        datlocprovider="char", datcollate="text", datctype="text", daticulocale="text",
        datcollversion="text", datistemplate="boolean", datallowconn="boolean",
        datconnlimit="integer", datlastsysoid="integer", datfrozenxid="xid",
        datminmxid="xid", dattablespace="oid", datacl="aclitem[]",
    ),
    relation(
        "pg_catalog.pg_am", _pg_am, 2601,
        oid="oid", amname="name", amhandler="regproc", amtype="char",
    ),
    relation(
        "pg_catalog.pg_tables", _pg_tables, 12_002,
        schemaname="name", tablename="name", tableowner="name", tablespace="name",
        hasindexes="boolean", hasrules="boolean", hastriggers="boolean", rowsecurity="boolean",
    ),
    relation(
        "pg_catalog.pg_views", _pg_views, 12_003,
        schemaname="name", viewname="name", viewowner="name", definition="text",
    ),
    relation(
        "pg_catalog.pg_matviews", _pg_matviews, 12_004,
        schemaname="name", matviewname="name", matviewowner="name", tablespace="name",
        hasindexes="boolean", ispopulated="boolean", definition="text",
    ),
    relation(
        "pg_catalog.pg_collation", _pg_collation, 3456,
        oid="oid", collname="name", collnamespace="oid", collowner="oid",
        collprovider="char", collisdeterministic="boolean", collencoding="integer",
        collcollate="text", collctype="text", colliculocale="text", collversion="text",
    ),
    relation(
        "pg_catalog.pg_tablespace", _pg_tablespace, 1213,
        oid="oid", spcname="name", spcowner="oid", spcacl="aclitem[]", spcoptions="text[]",
    ),
    relation(
        "pg_catalog.pg_settings", _pg_settings, 12_005,
        name="text", setting="text", unit="text", category="text", short_desc="text",
        extra_desc="text", context="text", vartype="text", source="text", min_val="text",
        max_val="text", enumvals="text[]", boot_val="text", reset_val="text",
        pending_restart="boolean", sourcefile="text", sourceline="integer",
    ),
    *pg_roles.RELATIONS,
)  # fmt: skip
