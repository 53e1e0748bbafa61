"""Domains in the standard's own view of the catalog; and CHECKs, which tables have, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noonmark.adapter.catalog.item import DATABASE, Item
from noonmark.adapter.catalog.type_names import scalar_now
from noonmark.adapter.catalog.user_types import is_domain, type_of
from noonmark.adapter.sequence.default import shown
from noonmark.adapter.system.facts import Facts, Row, relation
from noonmark.adapter.system.information import digits, seconds, type_name, udt
from noonmark.adapter.table.checks import texts_of
from noonmark.rows import types as t
from noonmark.rows.coded.bits import Bit, Varbit
from noonmark.rows.domain import Domain
from noonmark.rows.pg.oid import oid


def _items(facts: Facts) -> Iterator[tuple[Item, Domain]]:
    for item in facts.catalog.items("type"):
        made = type_of(item) if is_domain(item) else None
        if isinstance(made, Domain):
            yield item, made


def _domains(facts: Facts) -> Iterable[Row]:
    for item, made in _items(facts):
        kind = made.below
        length = kind.length if isinstance(kind, t.Varchar | t.Char | Bit | Varbit) else None
        text = made.default and scalar_now(
            facts.catalog, item, shown(facts.catalog, made.default, facts.path), facts.path
        )
        yield (
            DATABASE, item.schema_name, item.name, type_name(kind), length, None, *digits(kind),
            seconds(kind), text, DATABASE, *udt(facts, kind, oid(kind)), "1",
        )  # fmt: skip


def _domain_constraints(facts: Facts) -> Iterable[Row]:
    for item, made in _items(facts):
        for name, _ in made.checks:
            yield (DATABASE, item.schema_name, name, DATABASE, item.schema_name, item.name, "NO",
                   "NO")  # fmt: skip


def _check_constraints(facts: Facts) -> Iterable[Row]:
    catalog = facts.catalog
    found = [
        *((item, name, text) for item, made in _items(facts) for name, text in made.checks),
        *(
            (item, name, text)
            for item in catalog.items("table")
            for name, text, _ in texts_of(item)
        ),
    ]
    for item, name, text in found:
        written = scalar_now(catalog, item, text, facts.path)
        yield DATABASE, item.schema_name, name, f"({written})"


def _column_domain_usage(facts: Facts) -> Iterable[Row]:
    for table in facts.catalog.items("table", "view", "materialized-view"):
        for column in table.schema:
            if column.domain is not None:
                item = facts.catalog.by_number[column.domain.number]
                yield (DATABASE, item.schema_name, item.name, DATABASE, table.schema_name,
                       table.name, column.name)  # fmt: skip


def _domain_udt_usage(facts: Facts) -> Iterable[Row]:
    for item, made in _items(facts):
        yield (DATABASE, *udt(facts, made.below, oid(made.below)), DATABASE, item.schema_name,
               item.name)  # fmt: skip


_T, _I = "text", "integer"

RELATIONS = (
    relation(
        "information_schema.domains", _domains, 14_411,
        domain_catalog="name", domain_schema="name", domain_name="name", data_type=_T,
        character_maximum_length=_I, character_octet_length=_I, numeric_precision=_I,
        numeric_precision_radix=_I, numeric_scale=_I, datetime_precision=_I, domain_default=_T,
        udt_catalog="name", udt_schema="name", udt_name="name", dtd_identifier="name",
    ),
    relation(
        "information_schema.domain_constraints", _domain_constraints, 14_412,
        constraint_catalog="name", constraint_schema="name", constraint_name="name",
        domain_catalog="name",
        domain_schema="name", domain_name="name", is_deferrable=_T, initially_deferred=_T,
    ),
    relation(
        "information_schema.check_constraints", _check_constraints, 14_413,
        constraint_catalog="name", constraint_schema="name", constraint_name="name",
        check_clause=_T,
    ),
    relation(
        "information_schema.column_domain_usage", _column_domain_usage, 14_414,
        domain_catalog="name", domain_schema="name", domain_name="name", table_catalog="name",
        table_schema="name",
        table_name="name", column_name="name",
    ),
    relation(
        "information_schema.domain_udt_usage", _domain_udt_usage, 14_415,
        udt_catalog="name", udt_schema="name", udt_name="name", domain_catalog="name",
        domain_schema="name",
        domain_name="name",
    ),
)  # fmt: skip
