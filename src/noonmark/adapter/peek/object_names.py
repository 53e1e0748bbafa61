"""Answers with names of objects: ``regclass`` and its kin are numbers inside of a query.

Law (name): a column of an answer that is told as one of them has the names of the objects whose
numbers it has. Its order stays that of the numbers, as in PostgreSQL.
"""

from __future__ import annotations

from dataclasses import replace

from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.relation import Project, distinct_names
from noonmark.sql.ir.scalar import ColumnRef, Scalar, column
from noonmark.sql.parse import Query
from noonmark.sql.plan.registered import name_of_number
from noonmark.sql.plan.row import Statement


def with_names(query: Query, statement: Statement) -> Query:
    """The query with names for numbers; the numbers stand hidden behind them, for the order."""
    columns: list[Scalar] = [column(at, each) for at, each in enumerate(query.ordered.schema)]
    width = len(query.names)
    shown = [name_of_number(each, statement) for each in columns[:width]]
    if all(isinstance(each, ColumnRef) for each in shown):
        return query
    names = distinct_names([*query.ordered.schema.names[:width], *query.ordered.schema.names])
    ordered = Project(query.ordered, (*shown, *columns), tuple(names))
    output = Project(query.relation, tuple(shown), tuple(names[:width]))
    return replace(
        query,
        relation=output,
        ordered=ordered,
        order=tuple(_behind(key, width) for key in query.order),
    )


def _behind(key: SortKey, width: int) -> SortKey:
    """The key over the numbers, which stand that many columns further."""
    assert isinstance(key.scalar, ColumnRef), "an order is of columns"
    return replace(key, scalar=replace(key.scalar, index=key.scalar.index + width))
