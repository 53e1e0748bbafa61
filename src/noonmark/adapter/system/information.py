"""information_schema: the standard's own view of the catalog."""

from __future__ import annotations

from collections.abc import Iterable

from noonmark.adapter.catalog.item import DATABASE, Item
from noonmark.adapter.catalog.privilege import BUILT_IN, PRIVILEGES, has, owner_of
from noonmark.adapter.catalog.user_types import made_types
from noonmark.adapter.sequence.default import shown_defaults
from noonmark.adapter.system.facts import Facts, Row, nothing, relation
from noonmark.adapter.system.made_types import array_name
from noonmark.adapter.system.pg_catalog import schema_oids
from noonmark.adapter.system.pg_roles import applicable_roles, enabled_roles
from noonmark.adapter.system.qualify import query_now
from noonmark.adapter.system.sequences import SEQUENCES
from noonmark.adapter.system.types import TYPES
from noonmark.adapter.table.constraints import foreigns_of, key_name, uniques_of
from noonmark.adapter.table.generated import shown_generated
from noonmark.rows import types as t
from noonmark.rows.coded.bits import Bit, Varbit
from noonmark.rows.domain import Domain
from noonmark.rows.pg.oid import oid
from noonmark.rows.schema import Column

_TYPE = {
    "view": "VIEW",
    "materialized-view": "MATERIALIZED VIEW",
    "system": "VIEW",
}
_UDT = {row.oid: row.name for row in TYPES}


def _seen(facts: Facts) -> list[Item]:
    """The relations that the user has some right on."""
    user, catalog = facts.session.user, facts.catalog
    rights = {**PRIVILEGES, "system": ("SELECT",)}
    return [
        item
        for item in catalog.items()
        if item.is_relation
        and item.kind != "sequence"
        and any(has(catalog, user, each, item) for each in rights[item.kind])
    ]


def _tables(facts: Facts) -> Iterable[Row]:
    for item in _seen(facts):
        insertable = "YES" if item.kind == "table" else "NO"
        kind = _TYPE.get(item.kind, "BASE TABLE")
        yield (DATABASE, item.schema_name, item.name, kind, None, None, None, None, None,
               insertable, "NO", None)  # fmt: skip


def _columns(facts: Facts) -> Iterable[Row]:
    for item in _seen(facts):
        defaults = shown_defaults(facts.catalog, item, facts.path)
        updatable = "YES" if item.kind == "table" else "NO"
        strict = item.definition.get("not_null", ()) if item.kind == "table" else ()
        for at, column in enumerate(item.schema, 1):
            kind = column.type if column.domain is None else column.domain.below
            number = oid(kind)
            length = kind.length if isinstance(kind, t.Varchar | t.Char | Bit | Varbit) else None
            precision, radix, scale = digits(kind)
            yield (
                DATABASE, item.schema_name, item.name, column.name, at, defaults.get(column.name),
                "NO" if not _takes_null(column) or column.name in strict else "YES",
                type_name(kind),
                length, None, precision, radix, scale, seconds(kind), None, DATABASE,
                *udt(facts, kind, number), str(at), "NO", *_identity(facts, item, column.name),
                updatable, *_domain(facts, column),
            )  # fmt: skip


def _takes_null(column: Column) -> bool:
    return column.nullable and (column.domain is None or not column.domain.is_not_null)


def _domain(facts: Facts, column: Column) -> Row:
    """The domain that a column is declared as: its catalog, its schema and its name."""
    if column.domain is None:
        return None, None, None
    item = facts.catalog.by_number[column.domain.number]
    return DATABASE, item.schema_name, item.name


def udt(facts: Facts, kind: t.SqlType, number: int) -> tuple[str, str]:
    """The schema and the name of a type."""
    for made in (kind,) if isinstance(kind, Domain) else made_types(kind):
        item = facts.catalog.by_number.get(made.number)
        if item is not None and not isinstance(kind, t.Record):
            name = array_name(item) if isinstance(kind, t.Array) else item.name
            return item.schema_name, name
    return "pg_catalog", _UDT.get(number, str(kind))


def _identity(facts: Facts, item: Item, column: str) -> Row:
    """is_identity, identity_generation, is_generated, generation_expression."""
    computed = shown_generated(facts.catalog, item, facts.path).get(column)
    if computed is not None:
        return "NO", None, "ALWAYS", computed
    found = item.definition.get("identity", {}).get(column) if item.kind == "table" else None
    if found is None:
        return "NO", None, "NEVER", None
    return "YES", "ALWAYS" if found[0] == "a" else "BY DEFAULT", "NEVER", None


def type_name(kind: t.SqlType) -> str:
    """What data_type says."""
    if isinstance(kind, t.Array):
        return "ARRAY"
    if isinstance(kind, t.Enum | Domain):
        return "USER-DEFINED"
    sized = t.Varchar | t.Char | t.Numeric | t.Coded
    return type(kind).spelling if isinstance(kind, sized) else str(kind)


def digits(kind: t.SqlType) -> tuple[int | None, int | None, int | None]:
    """numeric_precision, numeric_precision_radix, numeric_scale."""
    match kind:
        case t.SmallInt():
            return 16, 2, 0
        case t.Integer():
            return 32, 2, 0
        case t.BigInt():
            return 64, 2, 0
        case t.Real():
            return 24, 2, None
        case t.Double():
            return 53, 2, None
        case t.Numeric():
            return kind.precision, 10, kind.scale
    return None, None, None


def seconds(kind: t.SqlType) -> int | None:
    """datetime_precision."""
    if isinstance(kind, t.Date):
        return 0
    return 6 if isinstance(kind, t.Time | t.Timestamp | t.TimestampTz | t.Interval) else None


def _schemata(facts: Facts) -> Iterable[Row]:
    for name, _ in schema_oids(facts):
        schema = facts.catalog.schema(name)
        owner = BUILT_IN if schema is None else owner_of(facts.catalog, schema)
        yield (DATABASE, name, owner, None, None, None, None)


def _views(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("view"):
        text = query_now(facts.catalog, item)
        yield (DATABASE, item.schema_name, item.name, text, "NONE", "NO", "NO")


def _keys(item: Item) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    """The name, kind and columns of each key of a table."""
    if item.key:
        yield key_name(item), "PRIMARY KEY", item.key
    for unique in uniques_of(item):
        if unique.is_constraint:
            yield unique.name, "UNIQUE", unique.columns
    for foreign in foreigns_of(item):
        yield foreign.name, "FOREIGN KEY", foreign.columns


def _key_column_usage(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("table"):
        for key, kind, columns in _keys(item):
            for at, name in enumerate(columns, 1):
                other = at if kind == "FOREIGN KEY" else None
                yield (DATABASE, item.schema_name, key, DATABASE, item.schema_name, item.name,
                       name, at, other)  # fmt: skip


def _referential_constraints(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("table"):
        for foreign in foreigns_of(item):
            parent = facts.catalog.by_number[foreign.parent]
            name = next(
                (
                    name
                    for name, kind, columns in _keys(parent)
                    if kind != "FOREIGN KEY" and set(columns) == set(foreign.others)
                ),
                None,
            )
            yield (DATABASE, item.schema_name, foreign.name, DATABASE, parent.schema_name, name,
                   "NONE", foreign.on_update.upper(), foreign.on_delete.upper())  # fmt: skip


def _constraint_column_usage(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("table"):
        for key, kind, columns in _keys(item):
            table, names = item, columns
            if kind == "FOREIGN KEY":
                foreign = next(each for each in foreigns_of(item) if each.name == key)
                table, names = facts.catalog.by_number[foreign.parent], foreign.others
            for name in names:
                yield (DATABASE, table.schema_name, table.name, name, DATABASE,
                       item.schema_name, key)  # fmt: skip


def _table_constraints(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("table"):
        late = {each.name: each for each in foreigns_of(item)}
        for name, kind, _columns in _keys(item):
            when = late.get(name)
            deferred = (
                ("NO", "NO")
                if when is None
                else ("YES" if when.deferrable else "NO", "YES" if when.deferred else "NO")
            )
            yield (DATABASE, item.schema_name, name, DATABASE, item.schema_name, item.name, kind,
                   *deferred, "YES")  # fmt: skip


def _catalog_name(_: Facts) -> Iterable[Row]:
    return [(DATABASE,)]


_T, _I = "text", "integer"

RELATIONS = (
    relation(
        "information_schema.tables", _tables,
        table_catalog="name", table_schema="name", table_name="name", table_type=_T,
        self_referencing_column_name="name", reference_generation=_T,
        user_defined_type_catalog="name",
        user_defined_type_schema="name", user_defined_type_name="name", is_insertable_into=_T,
        is_typed=_T, commit_action=_T,
    ),
    relation(
        "information_schema.columns", _columns,
        table_catalog="name", table_schema="name", table_name="name", column_name="name",
        ordinal_position=_I,
        column_default=_T, is_nullable=_T, data_type=_T, character_maximum_length=_I,
        character_octet_length=_I, numeric_precision=_I, numeric_precision_radix=_I,
        numeric_scale=_I, datetime_precision=_I, interval_type=_T, udt_catalog="name",
        udt_schema="name",
        udt_name="name", dtd_identifier="name", is_self_referencing=_T, is_identity=_T,
        identity_generation=_T, is_generated=_T, generation_expression=_T, is_updatable=_T,
        # Behind the others: views remember how many columns there were.
        domain_catalog="name", domain_schema="name", domain_name="name",
    ),
    relation(
        "information_schema.schemata", _schemata,
        catalog_name="name", schema_name="name", schema_owner="name",
        default_character_set_catalog="name",
        default_character_set_schema="name", default_character_set_name="name", sql_path=_T,
    ),
    relation(
        "information_schema.views", _views,
        table_catalog="name", table_schema="name", table_name="name", view_definition=_T,
        check_option=_T,
        is_updatable=_T, is_insertable_into=_T,
    ),
    relation(
        "information_schema.key_column_usage", _key_column_usage,
        constraint_catalog="name", constraint_schema="name", constraint_name="name",
        table_catalog="name",
        table_schema="name", table_name="name", column_name="name", ordinal_position=_I,
        position_in_unique_constraint=_I,
    ),
    relation(
        "information_schema.table_constraints", _table_constraints,
        constraint_catalog="name", constraint_schema="name", constraint_name="name",
        table_catalog="name",
        table_schema="name", table_name="name", constraint_type=_T, is_deferrable=_T,
        initially_deferred=_T, enforced=_T,
    ),
    relation(
        "information_schema.referential_constraints", _referential_constraints,
        constraint_catalog="name", constraint_schema="name", constraint_name="name",
        unique_constraint_catalog="name", unique_constraint_schema="name",
        unique_constraint_name="name",
        match_option=_T, update_rule=_T, delete_rule=_T,
    ),
    relation(
        "information_schema.constraint_column_usage", _constraint_column_usage,
        table_catalog="name", table_schema="name", table_name="name", column_name="name",
        constraint_catalog="name",
        constraint_schema="name", constraint_name="name",
    ),
    relation(
        "information_schema.routines", nothing,
        specific_catalog="name", specific_schema="name", specific_name="name",
        routine_catalog="name",
        routine_schema="name", routine_name="name", routine_type=_T, data_type=_T,
    ),
    SEQUENCES,
    relation("information_schema.enabled_roles", enabled_roles, role_name="name"),
    relation("information_schema.applicable_roles", applicable_roles, grantee="name",
    role_name="name",
             is_grantable=_T),
    relation("information_schema.information_schema_catalog_name", _catalog_name,
    catalog_name="name"),
)  # fmt: skip
