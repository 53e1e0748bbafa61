"""pg_catalog's view of keys: a primary key is a unique index and a constraint of its table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.type_names import scalar_now
from noonmark.adapter.system.facts import Facts, Row, relation
from noonmark.adapter.system.pg_catalog import (
    CHECK_OID_BASE,
    FOREIGN_OID_BASE,
    KEY_OID_BASE,
    UNIQUE_OID_BASE,
    UNIQUES_MAX,
)
from noonmark.adapter.table.checks import Check, checks_of, texts_of
from noonmark.adapter.table.constraints import (
    Foreign,
    Unique,
    foreigns_of,
    key_name,
    uniques_of,
)
from noonmark.adapter.table.keyed import keyed
from noonmark.rows.types import SqlType, quote_name
from noonmark.sql.dialect import parse_scalar
from noonmark.sql.ir.relation import distinct_names
from noonmark.sql.ir.scalar import columns_of
from noonmark.sql.lexer import tokens_of
from noonmark.sql.plan.shown import shown_name

#: Constraints of one table and kind that have numbers of their own.
_CHECKS_MAX = UNIQUES_MAX


@dataclass(frozen=True)
class Index:
    """An index as clients see it: of a primary key, or made by CREATE INDEX."""

    oid: int
    name: str
    on: Item
    columns: tuple[str, ...]
    primary: bool
    unique: Unique | None = None
    #: Of one that keeps the values of expressions, or some rows: the texts of its elements.
    elements: tuple[str, ...] = ()
    where: str | None = None

    @property
    def is_unique(self) -> bool:
        """Whether no two rows are equal there."""
        return self.primary or self.unique is not None

    @property
    def is_not_distinct(self) -> bool:
        """Whether NULL is equal to NULL."""
        return self.unique is not None and not self.unique.nulls_distinct

    @property
    def is_constraint(self) -> bool:
        """Whether it is of a constraint."""
        return self.primary or (self.unique is not None and self.unique.is_constraint)

    @property
    def places(self) -> tuple[int, ...]:
        """The columns' positions from 1; 0 for what is no column."""
        names = {quote_name(c) if self.elements else c: c for c in self.on.schema.names}
        schema = self.on.schema
        return tuple(schema.index(names[c]) + 1 if c in names else 0 for c in self.columns)

    @property
    def expressions(self) -> str | None:
        """Its elements that are no columns."""
        pairs = zip(self.columns, self.places, strict=True)
        return ", ".join(_bare(text) for text, at in pairs if not at) or None


def _bare(text: str) -> str:
    """A literal has no brackets."""
    tree = parse_scalar(text)
    return (
        text[1:-1] if isinstance(tree, exp.Paren) and isinstance(tree.this, exp.Literal) else text
    )


def indexes(facts: Facts) -> Iterator[Index]:
    """Every index."""
    for item in facts.catalog.items("table"):
        if item.key:
            yield Index(KEY_OID_BASE + item.oid, key_name(item), item, item.key, True)
        for at, unique in enumerate(uniques_of(item)):
            number = UNIQUE_OID_BASE + item.oid * _CHECKS_MAX + at
            columns = unique.columns if unique.is_plain else unique.elements
            yield Index(number, unique.name, item, columns, False, unique, unique.elements,
                        unique.where)  # fmt: skip
    for item in facts.catalog.items("index"):
        on = facts.catalog.by_number.get(item.needs[0]) if item.needs else None
        if on is not None:
            has = item.definition
            elements = tuple(text for _, text in has.get("elements", ()))
            yield Index(item.oid, item.name, on, elements or item.key, False, None, elements,
                        has.get("where"))  # fmt: skip


def columns_of_indexes(facts: Facts) -> Iterator[tuple[int, int, str, SqlType]]:
    """The columns of every index: its number, their places from 1, names and types."""
    for index in indexes(facts):
        own = facts.by_oid(index.oid)
        computed = index.unique and index.elements and keyed(index.on, index.unique).scalars
        taken: list[str] = []
        for at, (text, place) in enumerate(zip(index.columns, index.places, strict=True), 1):
            if place:
                column = index.on.schema.columns[place - 1]
                name, kind = column.name, column.type
            else:
                shown = shown_name(parse_scalar(text))
                name = "expr" if shown == "?column?" else shown
                if computed:
                    kind = computed[at - 1].type
                else:
                    assert own is not None, "an index that is not unique is an item"
                    kind = own.schema[text].type
            taken = distinct_names([*taken, name])
            yield index.oid, at, taken[-1].replace(f"{name}_", name), kind


def _pg_index(facts: Facts) -> Iterable[Row]:
    for index in indexes(facts):
        count = len(index.columns)
        yield (
            index.oid, index.on.oid, count, count, index.is_unique, index.is_not_distinct,
            index.primary, False, True, False, True, False, True, True, False, index.places,
            (0,) * count, (0,) * count, (0,) * count, index.expressions,
            index.where and _condition(index.where),
        )  # fmt: skip


def _pg_constraint(facts: Facts) -> Iterable[Row]:
    for index in indexes(facts):
        if index.is_constraint:
            kind = "p" if index.primary else "u"
            yield (
                index.oid, index.name, facts.schema_oid(index.on.schema_name), kind, False, False,
                True, index.on.oid, 0, index.oid, 0, 0, " ", " ", " ", True, 0, True,
                index.places, None, None, None, None, None, None, None,
            )  # fmt: skip
    yield from _foreign_rows(facts)
    yield from _domain_rows(facts)
    for number, item, check in _checks(facts):
        places = tuple(at + 1 for at in sorted(columns_of(check.condition)))
        yield (
            number, check.name, facts.schema_oid(item.schema_name), "c", False, False,
            True, item.oid, 0, 0, 0, 0, " ", " ", " ", True, 0, False,
            places, None, None, None, None, None, None, None,
        )  # fmt: skip


def _foreigns(facts: Facts) -> Iterator[tuple[int, Item, Foreign]]:
    """Every foreign key, with a number of its own."""
    for item in facts.catalog.items("table"):
        for at, foreign in enumerate(foreigns_of(item)):
            yield FOREIGN_OID_BASE + item.oid * _CHECKS_MAX + at, item, foreign


def _foreign_rows(facts: Facts) -> Iterable[Row]:
    found = list(indexes(facts))
    for number, item, foreign in _foreigns(facts):
        parent = facts.catalog.by_number[foreign.parent]
        own, other = (
            tuple(table.schema.index(name) + 1 for name in names)
            for table, names in ((item, foreign.columns), (parent, foreign.others))
        )
        key = next(
            (each.oid for each in found
             if each.on.number == parent.number and set(each.columns) == set(foreign.others)),
            0,
        )  # fmt: skip
        yield (
            number, foreign.name, facts.schema_oid(item.schema_name), "f", foreign.deferrable,
            foreign.deferred, True, item.oid, 0, key, 0, parent.oid,
            _ACTIONS[foreign.on_update], _ACTIONS[foreign.on_delete], "s", True, 0, True,
            own, other, None, None, None, None, None, None,
        )  # fmt: skip


def _checks(facts: Facts) -> Iterator[tuple[int, Item, Check]]:
    """Every CHECK, with a number of its own."""
    for item in facts.catalog.items("table"):
        for at, check in enumerate(checks_of(item)):
            yield CHECK_OID_BASE + item.oid * _CHECKS_MAX + at, item, check


def _domain_checks(facts: Facts) -> Iterator[tuple[int, Item, int]]:
    """Every CHECK of a domain by its place there, with a number of its own."""
    for item in facts.catalog.items("type"):
        for at in range(len(item.definition.get("checks", ()))):
            yield CHECK_OID_BASE + item.oid * _CHECKS_MAX + at, item, at


def _domain_rows(facts: Facts) -> Iterable[Row]:
    for number, item, at in _domain_checks(facts):
        name, _, valid = item.definition["checks"][at]
        yield (
            number, name, facts.schema_oid(item.schema_name), "c", False, False, valid, 0,
            item.oid, 0, 0, 0, " ", " ", " ", True, 0, False, None, None, None, None, None, None,
            None, None,
        )  # fmt: skip


def _pg_indexes(facts: Facts) -> Iterable[Row]:
    for index in indexes(facts):
        text = _definition(index)
        yield (index.on.schema_name, index.on.name, index.name, None, text)


def _definition(index: Index) -> str:
    unique = "UNIQUE " if index.is_unique else ""
    table = f"{quote_name(index.on.schema_name)}.{quote_name(index.on.name)}"
    columns = ", ".join(_shown(index))
    return (
        f"CREATE {unique}INDEX {quote_name(index.name)} ON {table} USING btree ({columns})"
        + (" NULLS NOT DISTINCT" if index.is_not_distinct else "")
        + (f" WHERE {_condition(index.where)}" if index.where else "")
    )


#: Words of conditions, which PostgreSQL writes large.
_WORDS = frozenset(("and", "or", "not", "is", "null", "in", "like", "between", "distinct", "from"))


def _condition(text: str) -> str:
    """The condition of an index as PostgreSQL writes it."""
    tree, made, at = parse_scalar(text), "", 0
    tokens, depth = tokens_of(text), 0
    plain = not tree.find(exp.Or, exp.Between, exp.Case)
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.value, 0) if token.kind == "sign" else 0
        if token.kind == "word" and token.value in _WORDS:
            joins = token.value == "and" and depth == 0 and plain
            made += (
                text[at : token.start].rstrip() + ") AND ("
                if joins
                else (text[at : token.start] + token.value.upper())
            )
            at = token.end
            while joins and text[at : at + 1].isspace():
                at += 1
    made += text[at:]
    if isinstance(tree, exp.Column | exp.Paren):
        return made
    return f"(({made}))" if isinstance(tree, exp.And) and plain else f"({made})"


def _shown(index: Index, *, pretty: bool = False) -> list[str]:
    if not index.elements:
        return [quote_name(c) if c in index.on.schema else c for c in index.columns]
    return [text if pretty else _element(text) for text in index.elements]


def _element(text: str) -> str:
    """An element of an index as PostgreSQL writes it: what is no call and no name has brackets."""
    tree = parse_scalar(text)
    if not isinstance(tree, exp.Paren):
        return text
    return f"({text})" if isinstance(tree.this, exp.Binary | exp.Unary | exp.Not) else text


def index_definition(facts: Facts, number: int, at: int = 0) -> str | None:
    """CREATE INDEX of an index's number, or only its column `at` (from 1)."""
    index = next((each for each in indexes(facts) if each.oid == number), None)
    if index is None:
        return None
    if at == 0:
        return _definition(index)
    return _shown(index, pretty=True)[at - 1] if at <= len(index.columns) else ""


def constraint_definition(facts: Facts, number: int) -> str | None:
    """What follows CONSTRAINT name."""
    found = (each for each in indexes(facts) if each.oid == number and each.is_constraint)
    index = next(found, None)
    if index is not None:
        nulls = " NULLS NOT DISTINCT" if index.is_not_distinct else ""
        kind = "PRIMARY KEY" if index.primary else f"UNIQUE{nulls}"
        return f"{kind} ({', '.join(_shown(index))})"
    for own, _item, foreign in _foreigns(facts):
        if own == number:
            return reference(facts.catalog, foreign, facts.path)
    for own, item, check in _checks(facts):
        if own == number:
            text = next(text for name, text, _ in texts_of(item) if name == check.name)
            return f"CHECK ({scalar_now(facts.catalog, item, text, facts.path)})"
    for own, item, at in _domain_checks(facts):
        if own == number:
            return domain_check(facts.catalog, item, at, facts.path)
    return None


def domain_check(catalog: Catalog, item: Item, at: int, path: Sequence[str] = ()) -> str:
    """A CHECK of a domain as it is written."""
    _, text, valid = item.definition["checks"][at]
    return f"CHECK ({scalar_now(catalog, item, text, path)})" + ("" if valid else " NOT VALID")


def reference(catalog: Catalog, foreign: Foreign, path: Sequence[str] = ()) -> str:
    """A foreign key as it is written; its table needs no schema where that is in the path."""
    parent = catalog.by_number[foreign.parent]
    table = quote_name(parent.name)
    if parent.schema_name not in path:
        table = f"{quote_name(parent.schema_name)}.{table}"
    own, other = (", ".join(map(quote_name, names)) for names in (foreign.columns, foreign.others))
    when = " DEFERRABLE INITIALLY DEFERRED" if foreign.deferred else ""
    when = when or (" DEFERRABLE" if foreign.deferrable else "")
    for action, verb in ((foreign.on_delete, "DELETE"), (foreign.on_update, "UPDATE")):
        when = when if action == "no action" else f" ON {verb} {action.upper()}{when}"
    return f"FOREIGN KEY ({own}) REFERENCES {table}({other}){when}"


#: What `pg_constraint` calls the actions of foreign keys.
_ACTIONS = {"no action": "a", "restrict": "r", "cascade": "c", "set null": "n", "set default": "d"}


RELATIONS = (
    relation(
        "pg_catalog.pg_index", _pg_index, 2610,
        indexrelid="oid not null", indrelid="oid", indnatts="smallint",
        indnkeyatts="smallint", indisunique="boolean", indnullsnotdistinct="boolean",
        indisprimary="boolean", indisexclusion="boolean", indimmediate="boolean",
        indisclustered="boolean", indisvalid="boolean", indcheckxmin="boolean",
        indisready="boolean", indislive="boolean", indisreplident="boolean",
        indkey="int2vector", indcollation="oidvector", indclass="oidvector",
        indoption="int2vector", indexprs="pg_node_tree", indpred="pg_node_tree",
    ),
    relation(
        "pg_catalog.pg_constraint", _pg_constraint, 2606,
        oid="oid not null", conname="name", connamespace="oid", contype="char",
        condeferrable="boolean", condeferred="boolean", convalidated="boolean",
        conrelid="oid", contypid="oid", conindid="oid", conparentid="oid",
        confrelid="oid", confupdtype="char", confdeltype="char", confmatchtype="char",
        conislocal="boolean", coninhcount="integer", connoinherit="boolean",
        conkey="smallint[]", confkey="smallint[]", conpfeqop="oid[]", conppeqop="oid[]",
        conffeqop="oid[]", confdelsetcols="smallint[]", conexclop="oid[]", conbin="pg_node_tree",
    ),
    relation(
        "pg_catalog.pg_indexes", _pg_indexes, 12_007,
        schemaname="name", tablename="name", indexname="name", tablespace="name",
        indexdef="text",
    ),
)  # fmt: skip
