"""CHECK: what every row of a table fulfils.

Law: no row is written of which a condition of its table is false; NULL is not false. A condition is
over the row alone: no subquery, no aggregate, nothing that depends on the session or on the clock.
It is kept as its text, and planned once for each version of the table's columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from noonmark.adapter.catalog import Item
from noonmark.adapter.catalog.type_names import NO_TYPES, TypeNames
from noonmark.adapter.catalog.user_types import state_of
from noonmark.errors import DuplicateObject, UsageError
from noonmark.rows.schema import Schema
from noonmark.rows.types import SqlType
from noonmark.sql.dialect import parse_scalar
from noonmark.sql.ir.scalar import Scalar, columns_of
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Statement
from noonmark.sql.plan.scalar import plan_boolean
from noonmark.sql.scope import scope_of
from noonmark.sql.statement import statement as st

_KEPT_MAX = 512

#: Of each: its name, its text, and what the table was called when it was written.
Texts = tuple[tuple[str, str, str], ...]
#: The types of users that they name, and what may change of each: a text may be cast to it.
Types = tuple[tuple[str, SqlType, tuple[object, ...]], ...]


class CheckViolation(UsageError, id="check_violation", sqlstate="23514"):
    """A row that a CHECK of its table is false of."""


@dataclass(frozen=True)
class Check:
    """A condition, planned."""

    name: str
    condition: Scalar


def checks_of(item: Item) -> tuple[Check, ...]:
    """What the rows of a table fulfil."""
    if "checks" not in item.definition:
        return ()
    return _planned(item.schema, texts_of(item), types_of(item))


def types_of(item: Item) -> Types:
    """The types of users that the expressions of a table name."""
    return tuple((each, kind, state_of(kind)) for each, kind in sorted(item.types.items()))


def texts_of(item: Item) -> Texts:
    """The same as it is kept."""
    return tuple((name, text, table) for name, text, table in item.definition.get("checks", ()))


@lru_cache(_KEPT_MAX)
def _planned(schema: Schema, texts: Texts, types: Types) -> tuple[Check, ...]:
    names = TypeNames(None, {written: kind for written, kind, _ in types})
    return tuple(
        Check(name, _condition(table, schema, parse_scalar(text), names))
        for name, text, table in texts
    )


def _condition(table: str, schema: Schema, tree: Any, types: TypeNames) -> Scalar:
    statement = Statement({}, types=types)
    row = Frame(statement).row("check constraints", scope_of(table, schema))
    row.columns = schema.columns
    return plan_boolean(tree, row, "CHECK")


def named(
    table: str,
    schema: Schema,
    written: Sequence[st.CheckText],
    others: Iterable[str] = (),
    types: TypeNames = NO_TYPES,
) -> list[list[str]]:
    """The conditions as the catalog keeps them, each with the name that PostgreSQL would give it.

    Raises:
        DuplicateObject: two of one name.
        SqlError: one that means nothing over these columns.
    """
    taken: set[str] = {each.name for each in written if each.name is not None}
    if len(taken) < sum(each.name is not None for each in written):
        raise DuplicateObject(f'two constraints of relation "{table}" have one name')
    taken |= set(others)
    found: list[list[str]] = []
    for each in written:
        condition = _condition(table, schema, each.condition.tree, types)
        name = each.name
        if name is None:
            columns = [schema.columns[at].name for at in sorted(columns_of(condition))]
            about = each.column or (columns[0] if len(columns) == 1 else None)
            name = _free("_".join(filter(None, (table, about, "check"))), taken)
            taken.add(name)
        found.append([name, each.condition.text, table])
    return found


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}{number}"
    return name
