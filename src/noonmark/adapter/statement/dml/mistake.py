"""Which of several mistakes of a statement is told: the first in PostgreSQL's order.

Law (order): of several mistakes of an UPDATE or a MERGE the one that is told is the first of: what
they range over and their conditions; then, of each list of assignments, all of its expressions, and
then, column by column, whether the column takes the value.

A statement is planned as one query, which comes upon its mistakes in another order. So a statement
that fails is planned once more, piece by piece: the first piece that fails says what is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from noonmark.adapter.catalog import Item
from noonmark.adapter.statement.dml.plan import Planning
from noonmark.adapter.statement.dml.target import is_default
from noonmark.rows.schema import Column
from noonmark.sql.assign import assigned
from noonmark.sql.ir.scalar import column

#: The query that the statement reads, with these values.
Select = Callable[[Sequence[exp.Expr]], exp.Select]
#: A literal as what its column takes.
Typed = Callable[[int, exp.Expr], exp.Expr]


def check_assignments(
    planning: Planning,
    item: Item,
    places: Sequence[int],
    trees: Sequence[exp.Expr],
    *,
    select: Select,
    typed: Typed,
) -> None:
    """Plan one list of assignments as PostgreSQL does; raises what is wrong first."""
    width = len(item.schema)
    given = [
        (place, tree) for place, tree in zip(places, trees, strict=False) if not is_default(tree)
    ]
    plain = [tree for _, tree in given if not _is_literal(tree)]
    columns: list[Column] = []
    if plain:
        columns = list(planning.query(select(plain)).output().schema.columns[width:])
    planned = iter(enumerate(columns, width))
    for place, tree in given:
        if _is_literal(tree):
            planning.query(select([typed(place, tree)]))
        else:
            at, own = next(planned)
            assigned(column(at, own), item.schema.columns[place], tree)


def _is_literal(tree: exp.Expr) -> bool:
    """Whether an expression takes the type of its column."""
    if isinstance(tree, exp.Parameter | exp.Null):
        return True
    return isinstance(tree, exp.Literal) and tree.is_string
