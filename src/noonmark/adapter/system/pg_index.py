"""pg_catalog's view of keys: a primary key is a unique index and a constraint of its table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.system.facts import Facts, Row, relation
from noonmark.adapter.system.pg_catalog import CHECK_OID_BASE, KEY_OID_BASE
from noonmark.adapter.table.checks import Check, checks_of, texts_of
from noonmark.rows.types import quote_name
from noonmark.sql.ir.scalar import columns_of

#: Checks of one table that have numbers of their own.
_CHECKS_MAX = 100


@dataclass(frozen=True)
class Index:
    """An index as clients see it: of a primary key, or made by CREATE INDEX."""

    oid: int
    name: str
    on: Item
    columns: tuple[str, ...]
    primary: bool

    @property
    def places(self) -> tuple[int, ...]:
        """The columns' positions from 1; 0 for what is no column."""
        names = self.on.schema
        return tuple(names.index(c) + 1 if c in names else 0 for c in self.columns)


def indexes(facts: Facts) -> Iterator[Index]:
    """Every index."""
    for item in facts.catalog.items("table"):
        if item.key:
            yield Index(KEY_OID_BASE + item.oid, f"{item.name}_pkey", item, item.key, True)
    for item in facts.catalog.items("index"):
        on = facts.catalog.by_number.get(item.needs[0]) if item.needs else None
        if on is not None:
            columns = tuple(item.definition.get("expressions", ())) or item.key
            yield Index(item.oid, item.name, on, tuple(map(str, columns)), False)


def _pg_index(facts: Facts) -> Iterable[Row]:
    for index in indexes(facts):
        count = len(index.columns)
        yield (
            index.oid, index.on.oid, count, count, index.primary, False, index.primary, False,
            True, False, True, False, True, True, False, index.places, (0,) * count, (0,) * count,
            (0,) * count, None, None,
        )  # fmt: skip


def _pg_constraint(facts: Facts) -> Iterable[Row]:
    for index in indexes(facts):
        if index.primary:
            yield (
                index.oid, index.name, facts.schema_oid(index.on.schema_name), "p", False, False,
                True, index.on.oid, 0, index.oid, 0, 0, " ", " ", " ", True, 0, True,
                index.places, None, None, None, None, None, None, None,
            )  # fmt: skip
    for number, item, check in _checks(facts):
        places = tuple(at + 1 for at in sorted(columns_of(check.condition)))
        yield (
            number, check.name, facts.schema_oid(item.schema_name), "c", False, False,
            True, item.oid, 0, 0, 0, 0, " ", " ", " ", True, 0, False,
            places, None, None, None, None, None, None, None,
        )  # fmt: skip


def _checks(facts: Facts) -> Iterator[tuple[int, Item, Check]]:
    """Every CHECK, with a number of its own."""
    for item in facts.catalog.items("table"):
        for at, check in enumerate(checks_of(item)):
            yield CHECK_OID_BASE + item.oid * _CHECKS_MAX + at, item, check


def _pg_indexes(facts: Facts) -> Iterable[Row]:
    for index in indexes(facts):
        text = _definition(index)
        yield (index.on.schema_name, index.on.name, index.name, None, text)


def _definition(index: Index) -> str:
    unique = "UNIQUE " if index.primary else ""
    table = f"{quote_name(index.on.schema_name)}.{quote_name(index.on.name)}"
    columns = ", ".join(_shown(index))
    return f"CREATE {unique}INDEX {quote_name(index.name)} ON {table} USING btree ({columns})"


def _shown(index: Index) -> list[str]:
    return [quote_name(c) if c in index.on.schema else c for c in index.columns]


def index_definition(facts: Facts, number: int, at: int = 0) -> str | None:
    """CREATE INDEX of an index's number, or only its column `at` (from 1)."""
    index = next((each for each in indexes(facts) if each.oid == number), None)
    if index is None:
        return None
    if at == 0:
        return _definition(index)
    return _shown(index)[at - 1] if at <= len(index.columns) else ""


def constraint_definition(facts: Facts, number: int) -> str | None:
    """What follows CONSTRAINT name."""
    index = next((each for each in indexes(facts) if each.oid == number and each.primary), None)
    if index is not None:
        return f"PRIMARY KEY ({', '.join(_shown(index))})"
    for own, item, check in _checks(facts):
        if own == number:
            return next(f"CHECK ({text})" for name, text, _ in texts_of(item) if name == check.name)
    return None


RELATIONS = (
    relation(
        "pg_catalog.pg_index", _pg_index, 2610,
        indexrelid="integer not null", indrelid="integer", indnatts="smallint",
        indnkeyatts="smallint", indisunique="boolean", indnullsnotdistinct="boolean",
        indisprimary="boolean", indisexclusion="boolean", indimmediate="boolean",
        indisclustered="boolean", indisvalid="boolean", indcheckxmin="boolean",
        indisready="boolean", indislive="boolean", indisreplident="boolean",
        indkey="int2vector", indcollation="oidvector", indclass="oidvector",
        indoption="int2vector", indexprs="text", indpred="text",
    ),
    relation(
        "pg_catalog.pg_constraint", _pg_constraint, 2606,
        oid="integer not null", conname="text", connamespace="integer", contype="text",
        condeferrable="boolean", condeferred="boolean", convalidated="boolean",
        conrelid="integer", contypid="integer", conindid="integer", conparentid="integer",
        confrelid="integer", confupdtype="text", confdeltype="text", confmatchtype="text",
        conislocal="boolean", coninhcount="integer", connoinherit="boolean",
        conkey="smallint[]", confkey="smallint[]", conpfeqop="integer[]", conppeqop="integer[]",
        conffeqop="integer[]", confdelsetcols="smallint[]", conexclop="integer[]", conbin="text",
    ),
    relation(
        "pg_catalog.pg_indexes", _pg_indexes, 12_007,
        schemaname="text", tablename="text", indexname="text", tablespace="text",
        indexdef="text",
    ),
)  # fmt: skip
