"""FETCH FIRST n ROWS WITH TIES: the first rows, and those that are equal to the last in the order.

Law: a row stays iff fewer than offset + n rows come strictly before it in the order, and it is not
one of the first `offset` rows.
"""

from __future__ import annotations

from noonmark.rows import types as t
from noonmark.sql.choose import resolve
from noonmark.sql.functions import WINDOWS
from noonmark.sql.ir.call import Frame, SortKey, WindowCall
from noonmark.sql.ir.relation import Filter, Project, Relation, Window, distinct_names
from noonmark.sql.ir.scalar import Compare, Literal, column, conjunction


def with_ties(relation: Relation, order: tuple[SortKey, ...], limit: int, offset: int) -> Relation:
    """The rows of a relation that such a FETCH gives."""
    calls = tuple(
        WindowCall(resolve(WINDOWS, name, [])[0].id, (), Frame()) for name in ("rank", "row_number")
    )
    own = relation.schema.names
    names = tuple(distinct_names([*own, "rank", "row_number"])[len(own) :])
    numbered = Window(relation, (), order, calls, names)
    columns = [column(at, each) for at, each in enumerate(numbered.schema.columns)]
    rank, number = columns[len(own) :]
    kept = conjunction(
        [
            Compare("<=", rank, Literal(t.BigInt(), offset + limit)),
            Compare(">", number, Literal(t.BigInt(), offset)),
        ]
    )
    return Project(Filter(numbered, kept), tuple(columns[: len(own)]), tuple(own))
