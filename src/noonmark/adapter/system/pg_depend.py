"""pg_catalog's view of what needs what: a view by its rule, an index by itself.

In PostgreSQL a view is a table with a rule `_RETURN`, and the rule is what depends on the relations
that the view reads; tools that ask which views go with a table ask so.
"""

from __future__ import annotations

from collections.abc import Iterable

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.system.facts import Facts, Row, relation

_PG_CLASS, _PG_REWRITE = 1259, 2618
#: The numbers of rules are those of their views, and above all of them.
_RULE_OID_BASE = 1 << 30
_INT, _TEXT, _BOOL = "integer", "text", "boolean"


def rule_oid(item: Item) -> int:
    """The number of a view's rule."""
    return _RULE_OID_BASE + item.oid


def _pg_rewrite(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("view", "materialized-view"):
        yield rule_oid(item), "_RETURN", item.oid, "1", "O", True


def _pg_depend(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("view", "materialized-view", "index"):
        needed = [facts.catalog.by_number[number].oid for number in item.needs]
        if item.kind == "index":
            yield from ((_PG_CLASS, item.oid, 0, _PG_CLASS, on, 0, "a") for on in needed)
            continue
        rule = rule_oid(item)
        yield _PG_REWRITE, rule, 0, _PG_CLASS, item.oid, 0, "i"
        yield from ((_PG_REWRITE, rule, 0, _PG_CLASS, on, 0, "n") for on in needed)


RELATIONS = (
    relation(
        "pg_catalog.pg_rewrite", _pg_rewrite, 2618,
        oid=_INT, rulename=_TEXT, ev_class=_INT, ev_type=_TEXT, ev_enabled=_TEXT, is_instead=_BOOL,
    ),
    relation(
        "pg_catalog.pg_depend", _pg_depend, 2608,
        classid=_INT, objid=_INT, objsubid=_INT, refclassid=_INT, refobjid=_INT,
        refobjsubid=_INT, deptype=_TEXT,
    ),
)  # fmt: skip
