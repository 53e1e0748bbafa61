"""Types in PostgreSQL's catalog: those that somebody made (pg_type, pg_enum), and the ranges."""

from __future__ import annotations

from collections.abc import Iterable

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.catalog.privilege import EVERYBODY, acl
from noonmark.adapter.catalog.type_names import scalar_now
from noonmark.adapter.catalog.user_types import is_domain, type_of
from noonmark.adapter.sequence.default import shown
from noonmark.adapter.system.facts import Facts, Row, relation
from noonmark.adapter.system.types import functions_of, row_of
from noonmark.rows import types as t
from noonmark.rows.coded.ranges import PAIRS
from noonmark.rows.domain import Domain
from noonmark.rows.pg.oid import oid, type_size, typmod

#: What makes the number of a label out of those of its type and of the label in it.
_LABEL_BASE, _LABELS_MAX = 2_000_000_000, 10_000
_EVERYBODYS = {EVERYBODY: frozenset({"USAGE"})}


def array_name(item: Item) -> str:
    """What the array of a type is called."""
    return f"_{item.name}"[:63]


def made_rows(facts: Facts) -> Iterable[Row]:
    """The rows of pg_type of each type that somebody made, and of its array."""
    for item in facts.catalog.items("type"):
        schema, owner = facts.schema_oid(item.schema_name), facts.role_oid(item.owner)
        rights = None if item.grants == _EVERYBODYS else acl(item)
        if is_domain(item):
            yield (
                item.oid, item.name, schema, owner, *_domain_row(facts, item), rights,
            )  # fmt: skip
            yield _array_row(item, schema, owner)
            continue
        functions = ("enum_in", "enum_out", "enum_recv", "enum_send")
        yield (
            item.oid, item.name, schema, owner, 4, True, "e", "E", False, True, ",", 0, "-", 0,
            item.oid + 1, *functions, "-", "-", "-", "i", "p", False, 0, -1, 0, 0, None, None,
            rights,
        )  # fmt: skip
        yield _array_row(item, schema, owner)


def _array_row(item: Item, schema: int, owner: int) -> Row:
    functions = ("array_in", "array_out", "array_recv", "array_send")
    return (
        item.oid + 1, array_name(item), schema, owner, -1, False, "b", "A", False, True, ",",
        0, "array_subscript_handler", item.oid, 0, *functions, "-", "-", "array_typanalyze",
        "i", "x", False, 0, -1, 0, 0, None, None, None,
    )  # fmt: skip


def _domain_row(facts: Facts, item: Item) -> Row:
    """What pg_type has of a domain, from its size on."""
    made = type_of(item)
    assert isinstance(made, Domain)
    size, own = type_size(made.base), row_of(oid(made.base))
    # That of an enum, or of an array of one, is no row of PostgreSQL's own.
    is_array = isinstance(made.base, t.Array)
    category = own.category if own is not None else "A" if is_array else "E"
    stem = "array" if is_array else "enum"
    ends = functions_of(own) if own is not None else (f"{stem}_out",) * 2 + (f"{stem}_send",) * 2
    functions = ("domain_in", ends[1], "domain_recv", ends[3])
    text = made.default and scalar_now(
        facts.catalog, item, shown(facts.catalog, made.default, facts.path), facts.path
    )
    return (
        size, 0 < size <= 8, "d", category, False, True, ",", 0, "-", 0, item.oid + 1,
        *functions, "-", "-", "-", "i", "p", made.is_not_null, oid(made.below),
        typmod(made.base) if made.over is None else -1, 0, 100 if category == "S" else 0,
        text, text,
    )  # fmt: skip


def _pg_enum(facts: Facts) -> Iterable[Row]:
    for item in facts.catalog.items("type"):
        if is_domain(item):
            continue
        for label, _place, number, order in item.definition["labels"]:
            own = _LABEL_BASE + item.number * _LABELS_MAX + number
            yield own % (1 << 31), item.oid, order, label


def _pg_range(_: Facts) -> Iterable[Row]:
    for one, several in PAIRS:
        counts = one.counted()
        canonical = f"{one.spelling}_canonical" if counts else "-"
        distance = f"{one.spelling}_subdiff"
        yield one.oid, oid(one.element), several.oid, 0, 0, canonical, distance


RELATIONS = (
    relation(
        "pg_catalog.pg_range", _pg_range, 3541,
        rngtypid="oid not null", rngsubtype="oid", rngmultitypid="oid",
        rngcollation="oid", rngsubopc="oid", rngcanonical="regproc", rngsubdiff="regproc",
    ),
    relation(
        "pg_catalog.pg_enum", _pg_enum, 3501,
        oid="oid not null", enumtypid="oid", enumsortorder="real", enumlabel="name",
    ),
)  # fmt: skip
