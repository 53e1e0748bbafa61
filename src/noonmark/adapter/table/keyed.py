"""Unique indexes of expressions, and of the rows alone that a condition is true of.

Law (key): a row is in such an index iff the condition is TRUE of it; its key is the values of the
index's elements over the row, columns among them. An element is asked of the rows in the index
alone, as in PostgreSQL. Elements and conditions are over one row: no subquery, no aggregate,
nothing that depends on the session or on the clock. So the key of a row never changes.

They are kept as texts, planned once for each version of the table's columns, and asked by workers
where they are more than a little work (`worker.values`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from noonmark.adapter.catalog import Item
from noonmark.adapter.catalog.type_names import TypeNames
from noonmark.adapter.table.checks import Types, types_of
from noonmark.adapter.table.constraints import Unique
from noonmark.adapter.table.generated import InvalidDefinition
from noonmark.adapter.worker.pool import Pool
from noonmark.adapter.worker.values import values_of
from noonmark.rows.order import row_key
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Schema
from noonmark.sql.coerce import settle
from noonmark.sql.dialect import parse_scalar
from noonmark.sql.ir.asked import asked
from noonmark.sql.ir.scalar import Scalar, columns_of
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Statement
from noonmark.sql.plan.scalar import plan, plan_boolean
from noonmark.sql.scope import scope_of

Row = tuple[Any, ...]
_KEPT_MAX = 512
_SHOWN_MAX = 200
#: Rows that are asked at once.
_PIECE_ROWS = 20_000


@dataclass(frozen=True)
class Keyed:
    """An index of expressions, planned.

    Attributes:
        names: its elements as they are shown.
        scalars: the same over a row of the table.
        condition: of which rows it is; None for all.
    """

    names: tuple[str, ...]
    scalars: tuple[Scalar, ...]
    condition: Scalar | None

    @property
    def places(self) -> frozenset[int]:
        """The columns that decide on the key of a row."""
        asked_ = self.scalars if self.condition is None else (*self.scalars, self.condition)
        return frozenset[int]().union(*map(columns_of, asked_))

    def form(self, key: Row) -> Row:
        """What keys have in common iff they are equal; NULL is equal to NULL here."""
        form: Row = row_key(tuple(each.type for each in self.scalars))(key)
        return form

    def shown(self, key: Row) -> str:
        """``(lower(a), b)=(x, 1)``, as PostgreSQL writes it."""
        texts = ["null" if each is None else format_value(each, scalar.type)
                 for each, scalar in zip(key, self.scalars, strict=True)]  # fmt: skip
        return f"({', '.join(self.names)})=({', '.join(texts)[:_SHOWN_MAX]})"

    async def keys(self, pool: Pool, rows: Sequence[Row]) -> list[Row | None]:
        """The key of each row; None for one that is not in the index."""
        made: list[Row | None] = []
        for start in range(0, len(rows), _PIECE_ROWS):
            made += await self._keys(pool, rows[start : start + _PIECE_ROWS])
        return made

    async def _keys(self, pool: Pool, rows: Sequence[Row]) -> list[Row | None]:
        inside = list(range(len(rows)))
        if self.condition is not None:
            test = (self.condition,)
            answers = await values_of(pool, [test] * len(rows), rows)
            inside = [at for at, (answer,) in enumerate(answers) if answer is True]
        given = [rows[at] for at in inside]
        found = await values_of(pool, [self.scalars] * len(given), given)
        made: list[Row | None] = [None] * len(rows)
        for at, key in zip(inside, found, strict=True):
            made[at] = tuple(key)
        return made


def keyed(item: Item, unique: Unique) -> Keyed:
    """A unique index of a table, planned."""
    return _planned(item.schema, unique, types_of(item))


@lru_cache(_KEPT_MAX)
def _planned(schema: Schema, unique: Unique, types: Types) -> Keyed:
    names = TypeNames(None, {written: kind for written, kind, _ in types})
    return planned(schema, unique, Statement({}, types=names))


def planned(schema: Schema, unique: Unique, statement: Statement) -> Keyed:
    """The same for texts that are not kept yet.

    Raises:
        InvalidDefinition, SqlError: they cannot be those of an index.
    """
    trees = [parse_scalar(text) for text in unique.elements]
    scalars = tuple(element(unique.table, schema, tree, statement) for tree in trees)
    where = None if unique.where is None else parse_scalar(unique.where)
    condition = None if where is None else predicate(unique.table, schema, where, statement)
    return Keyed(unique.elements, scalars, condition)


def element(table: str, schema: Schema, tree: Any, statement: Statement) -> Scalar:
    """An element of an index, over a row of its table."""
    row = Frame(statement).row("index expressions", scope_of(table, schema))
    row.columns = schema.columns
    scalar = settle(plan(tree, row))
    if asked(scalar):
        raise InvalidDefinition("functions in index expression must be marked IMMUTABLE")
    return scalar


def predicate(table: str, schema: Schema, tree: Any, statement: Statement) -> Scalar:
    """The condition of an index, over a row of its table."""
    row = Frame(statement).row("index predicates", scope_of(table, schema))
    row.columns = schema.columns
    scalar = plan_boolean(tree, row, "WHERE")
    if asked(scalar):
        raise InvalidDefinition("functions in index predicate must be marked IMMUTABLE")
    return scalar
