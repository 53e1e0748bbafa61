"""RETURNING: what a statement gives for each row that it wrote.

Law (sides): a column of the table that is written is the row as the statement leaves it (DELETE: as
it was). A column of another table (UPDATE ... FROM, DELETE ... USING, the source of MERGE) is that
of the match by which the row was written; where there was none (NOT MATCHED BY SOURCE), NULL.

The query that the statement reads gives the columns of other tables that RETURNING names, behind
what is written (`Beside`), so that one read decides about both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from noonmark.adapter.contract import Field
from noonmark.adapter.worker.pool import Pool
from noonmark.adapter.worker.values import values_of
from noonmark.rows.schema import Column
from noonmark.rows.types import Text
from noonmark.sql.dialect import position_of
from noonmark.sql.ir.asked import bind
from noonmark.sql.ir.scalar import ColumnRef, Scalar, columns_of, map_columns
from noonmark.sql.plan.row import POSITION, Row, name_of
from noonmark.sql.plan.scalar import plan_value
from noonmark.sql.plan.shown import shown_name
from noonmark.sql.plan.source import plan_from
from noonmark.sql.scope import Entry, Scope

if TYPE_CHECKING:
    from noonmark.adapter.statement.dml.plan import Planning

_ACTION = "merge_action"


@dataclass(frozen=True)
class Returning:
    """What a statement gives for each row that it wrote."""

    fields: tuple[Field, ...]
    scalars: tuple[Scalar, ...]

    async def rows(
        self, pool: Pool, written: Sequence[tuple[Any, ...]], values: Sequence[Any]
    ) -> list[tuple[Any, ...]]:
        """The answer for these rows."""
        bound = tuple([bind(scalar, values) for scalar in self.scalars])
        return await values_of(pool, [bound] * len(written), written)


@dataclass(frozen=True)
class Beside:
    """The row that RETURNING sees: the columns of the table, then those of other tables.

    Attributes:
        scope: their names, in the order of ``*``.
        columns: all of them; as many as `width` are the table's.
        places: where the others stand in FROM, in their order.
    """

    scope: Scope
    columns: tuple[Column, ...]
    width: int
    places: tuple[int, ...] = ()

    @property
    def items(self) -> list[exp.Expr]:
        """The columns of other tables as items of the query that is read."""
        return [
            exp.Alias(this=by_position(place), alias=exp.to_identifier(f"other_{at}", quoted=True))
            for at, place in enumerate(self.places)
        ]


def by_position(place: int) -> exp.Expr:
    """A column of FROM by its place there."""
    return exp.column(exp.to_identifier(f"{POSITION}{place}", quoted=True))


def joined(planning: Planning, select: exp.Select, width: int) -> Beside:
    """What RETURNING sees beside a table whose columns are the first of FROM."""
    source = plan_from(select, planning.frame)
    columns = source.relation.schema.columns
    places = sorted({e.index for e in source.scope.entries if e.index >= width})
    moved = {place: at for at, place in enumerate([*range(width), *places])}
    entries = tuple(replace(e, index=moved[e.index]) for e in source.scope.entries)
    shown = tuple(columns[place] for place in moved)
    return Beside(replace(source.scope, entries=entries), shown, width, tuple(places))


def with_action(beside: Beside) -> Beside:
    """The same row with the action of a MERGE as one more column, which no name stands for."""
    at = len(beside.columns)
    entry = Entry(None, _ACTION, at, hidden=True, system=True)
    scope = replace(beside.scope, entries=(*beside.scope.entries, entry))
    return replace(beside, scope=scope, columns=(*beside.columns, Column(_ACTION, Text(), False)))


def plan_returning(
    planning: Planning, trees: Sequence[exp.Expr], beside: Beside, *, acts: bool = False
) -> tuple[Returning, tuple[int, ...]]:
    """RETURNING over such a row; `acts` if its last column is the action of a MERGE.

    Returns:
        what is given, over the table's columns and then those others that it names; and which ones
        these are, by their numbers among the others.
    """
    row = planning.frame.row("RETURNING", beside.scope)
    row.columns = beside.columns
    fields: list[Field] = []
    scalars: list[Scalar] = []
    for tree in trees:
        if isinstance(tree, exp.Star) or (
            isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star)
        ):
            table = tree.args.get("table")
            entries = beside.scope.star(table and name_of(table), position_of(tree))
            scalars += [row.column_at(entry.index) for entry in entries]
            fields += [Field(each.name, beside.columns[each.index].type) for each in entries]
            continue
        inner = tree.this if isinstance(tree, exp.Alias) else tree
        name = name_of(tree.args["alias"]) if isinstance(tree, exp.Alias) else shown_name(inner)
        scalar = plan_value(_acting(inner, len(beside.columns) - 1) if acts else inner, row)
        scalars.append(scalar)
        fields.append(Field(name, scalar.type))
    return _narrowed(Returning(tuple(fields), tuple(scalars)), beside, row)


def _narrowed(returning: Returning, beside: Beside, row: Row) -> tuple[Returning, tuple[int, ...]]:
    """The same over the columns of other tables that it uses alone."""
    used = sorted(at for at in _used(returning) if at >= beside.width)
    moved = {at: n for n, at in enumerate([*range(beside.width), *used])}

    def move(ref: ColumnRef) -> ColumnRef:
        return replace(row.column_at(ref.index), index=moved[ref.index])

    scalars = tuple(map_columns(each, move) for each in returning.scalars)
    return replace(returning, scalars=scalars), tuple(at - beside.width for at in used)


def _used(returning: Returning) -> set[int]:
    return set().union(*map(columns_of, returning.scalars))


def _acting(tree: exp.Expr, place: int) -> exp.Expr:
    """An expression with the action of a MERGE where it calls for it."""

    def act(node: exp.Expr) -> exp.Expr:
        called = isinstance(node, exp.Anonymous) and node.name.lower() == _ACTION
        return by_position(place) if called and not node.expressions else node

    return tree.copy().transform(act)
