"""pg_catalog's view of what needs what: a view by its rule, an index by itself.

In PostgreSQL a view is a table with a rule `_RETURN`, and the rule is what depends on the relations
that the view reads; tools that ask which views go with a table ask so.
"""

from __future__ import annotations

from collections.abc import Iterable

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.sequence.default import by_uid, used
from noonmark.adapter.system.facts import SCHEMA_OIDS, SUPERUSER_OID, Facts, Row, relation
from noonmark.adapter.system.pg_catalog import default_oid
from noonmark.version import __version__

_PG_CLASS, _PG_REWRITE, _PG_NAMESPACE, _PG_EXTENSION = 1259, 2618, 2615, 3079
_PG_ATTRDEF, _PG_TYPE = 2604, 1247
#: What Noonmark brings is an extension that is always there: nobody dumps its relations.
_EXTENSION_OID = 13_004
_EXTENSION_SCHEMAS = ("noonmark", "mz_catalog", "mz_internal")
#: The numbers of rules are those of their views, and above all of them.
_RULE_OID_BASE = 1 << 30
_INT, _TEXT, _BOOL = "integer", "text", "boolean"


def rule_oid(item: Item) -> int:
    """The number of a view's rule."""
    return _RULE_OID_BASE + item.oid


def _pg_rewrite(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("view", "materialized-view"):
        yield rule_oid(item), "_RETURN", item.oid, "1", "O", True, None, None


def _pg_depend(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("view", "materialized-view", "index"):
        needed = [facts.catalog.by_number[number].oid for number in item.needs]
        if item.kind == "index":
            yield from ((_PG_CLASS, item.oid, 0, _PG_CLASS, on, 0, "a") for on in needed)
            continue
        rule = rule_oid(item)
        yield _PG_REWRITE, rule, 0, _PG_CLASS, item.oid, 0, "i"
        yield from ((_PG_REWRITE, rule, 0, _PG_CLASS, on, 0, "n") for on in needed)
    yield from _of_sequences(facts)
    for item in facts.catalog.items("type"):
        for number in item.needs:
            yield _PG_TYPE, item.oid, 0, _PG_TYPE, facts.catalog.by_number[number].oid, 0, "n"
    member = (0, _PG_EXTENSION, _EXTENSION_OID, 0, "e")
    yield from ((_PG_NAMESPACE, SCHEMA_OIDS[name], *member) for name in _EXTENSION_SCHEMAS)
    for item in facts.catalog.items("system"):
        if item.schema_name in _EXTENSION_SCHEMAS:
            yield (_PG_CLASS, item.oid, *member)


def _of_sequences(facts: Facts) -> Iterable[Row]:
    """What owns a sequence, and what takes from it by default."""
    found = by_uid(facts.catalog)
    for item in found.values():
        column = item.definition.get("column")
        if item.part_of and column is not None:
            table = facts.catalog.by_number[item.part_of]
            kind = "i" if item.definition.get("identity") else "a"
            at = table.schema.index(column) + 1
            yield _PG_CLASS, item.oid, 0, _PG_CLASS, table.oid, at, kind
    for table in facts.catalog.items("table"):
        for column, text in table.definition.get("defaults", {}).items():
            own = _PG_ATTRDEF, default_oid(table, column), 0
            yield (*own, _PG_CLASS, table.oid, table.schema.index(column) + 1, "a")
            for uid in used(text):
                if uid in found:
                    yield (*own, _PG_CLASS, found[uid].oid, 0, "n")


def _pg_extension(_: Facts) -> Iterable[Row]:
    pg_catalog = SCHEMA_OIDS["pg_catalog"]
    yield _EXTENSION_OID, "noonmark", SUPERUSER_OID, pg_catalog, False, __version__, None, None


RELATIONS = (
    relation(
        "pg_catalog.pg_rewrite", _pg_rewrite, 2618,
        oid="oid", rulename="name", ev_class="oid", ev_type="char", ev_enabled="char",
        is_instead=_BOOL,
        ev_qual="pg_node_tree", ev_action="pg_node_tree",
    ),
    relation(
        "pg_catalog.pg_extension", _pg_extension, 3079,
        oid="oid", extname="name", extowner="oid", extnamespace="oid", extrelocatable=_BOOL,
        extversion=_TEXT, extconfig="oid[]", extcondition="text[]",
    ),
    relation(
        "pg_catalog.pg_depend", _pg_depend, 2608,
        classid="oid", objid="oid", objsubid=_INT, refclassid="oid", refobjid="oid",
        refobjsubid=_INT, deptype="char",
    ),
)  # fmt: skip
