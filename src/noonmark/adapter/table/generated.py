"""GENERATED ALWAYS AS (expression) STORED: columns that follow the others of their row.

Law: in every row of a table a generated column is its expression's value over that row. It is
computed when a row is written (`statement.dml.fitting`), before NOT NULL, keys and CHECKs are
looked at, and nobody gives it. So an expression is over the columns alone that somebody gives: no
subquery, no other generated column, nothing that depends on the session, on chance or on the clock.

A table's definition has, under ``generated``, by column: the text, and what the table was called
when it was written. It is planned once for each version of the table's columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.catalog.type_names import TypeNames, scalar_now
from noonmark.adapter.table.checks import Types, types_of
from noonmark.errors import DatatypeMismatch, UsageError
from noonmark.rows.schema import Schema
from noonmark.sql.assign import is_assignable, loose
from noonmark.sql.coerce import UNKNOWN, coerce
from noonmark.sql.dialect import parse_scalar
from noonmark.sql.functions.function import Function, Table
from noonmark.sql.ir.asked import asked
from noonmark.sql.ir.scalar import Scalar, columns_of
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Statement
from noonmark.sql.plan.scalar import plan
from noonmark.sql.scope import scope_of
from noonmark.sql.statement import statement as st

_KEPT_MAX = 512

#: Of each: its column, its text, and what the table was called when it was written.
Texts = tuple[tuple[str, str, str], ...]


class InvalidDefinition(UsageError, id="invalid_object_definition", sqlstate="42P17"):
    """An expression that cannot define a generated column."""


def texts_of(item: Item) -> Mapping[str, str]:
    """The expressions of a table's generated columns, as they are written."""
    found = item.definition.get("generated", {}) if item.kind == "table" else {}
    return {name: text for name, (text, _) in found.items()}


def shown_generated(catalog: Catalog, item: Item, path: Sequence[str]) -> Mapping[str, str]:
    """The same as users see them: types need no schema where that is in the path."""
    return {name: scalar_now(catalog, item, text, path) for name, text in texts_of(item).items()}


def generated_of(item: Item) -> Mapping[int, Scalar]:
    """What the generated columns are computed by, by place."""
    found = item.definition.get("generated")
    if not found:
        return {}
    texts = tuple((name, text, table) for name, (text, table) in found.items())
    return _planned(item.schema, texts, types_of(item))


def users_of(item: Item, column: str) -> list[str]:
    """The generated columns that are computed from a column."""
    place, names = item.schema.index(column), item.schema.names
    return [names[at] for at, each in generated_of(item).items() if place in columns_of(each)]


def with_generated(
    access: Access,
    item: Item,
    specs: Iterable[st.ColumnSpec],
    functions: Table[Function] | None,
) -> Item:
    """The table with the generated columns among these.

    Raises:
        InvalidDefinition, SqlError: an expression that cannot be one.
    """
    written = {each.name: each.generated for each in specs if each.generated is not None}
    if not written:
        return item
    before = item.definition.get("generated", {})
    added = {name: [each.text, item.name] for name, each in written.items()}
    made = replace(item, definition={**item.definition, "generated": {**before, **added}})
    statement = Statement({}, session=functions, types=TypeNames(access, item.types))
    for name, each in written.items():
        _check(made, name, each.tree, statement)
    return made


def _check(item: Item, name: str, tree: Any, statement: Statement) -> None:
    scalar = _scalar(item.name, item.schema, tree, statement)
    if asked(scalar):
        raise InvalidDefinition("generation expression is not immutable")
    for at in sorted(columns_of(scalar)):
        if item.schema.names[at] in item.definition["generated"]:
            raise InvalidDefinition(
                f'cannot use generated column "{item.schema.names[at]}" in column generation '
                "expression",
                detail="A generated column cannot reference another generated column.",
            )
    fitting(scalar, item.schema, name)


def _scalar(table: str, schema: Schema, tree: Any, statement: Statement) -> Scalar:
    row = Frame(statement).row("column generation expressions", scope_of(table, schema))
    row.columns = schema.columns
    return plan(tree, row)


def fitting(scalar: Scalar, schema: Schema, name: str) -> Scalar:
    """The scalar as its column takes it.

    Raises:
        DatatypeMismatch: there is no cast that needs not be written.
    """
    kind = schema[name].type
    if scalar.type != UNKNOWN and not is_assignable(scalar.type, kind):
        raise DatatypeMismatch(
            f'column "{name}" is of type {kind} but default expression is of type {scalar.type}',
            hint="You will need to rewrite or cast the expression.",
        )
    return coerce(scalar, loose(kind))


@lru_cache(_KEPT_MAX)
def _planned(schema: Schema, texts: Texts, types: Types) -> Mapping[int, Scalar]:
    names = TypeNames(None, {written: kind for written, kind, _ in types})
    return {
        schema.index(name): fitting(
            _scalar(table, schema, parse_scalar(text), Statement({}, types=names)), schema, name
        )
        for name, text, table in texts
    }
