"""Table functions in the select list: every row is repeated for each row that the function gives.

A row for which the function gives nothing is gone, as in PostgreSQL. One call in a select list;
what several in lockstep would mean is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from noonmark.sql.coerce import resolve
from noonmark.sql.dialect import position_of
from noonmark.sql.functions import TABLE_FUNCTIONS
from noonmark.sql.ir.call import TableCall
from noonmark.sql.ir.relation import FlatMap
from noonmark.sql.plan.row import Row, name_of, unsupported
from noonmark.sql.plan.scalar import plan


def _rowsets_in(tree: exp.Expr) -> Iterator[exp.Anonymous]:
    if isinstance(tree, exp.Query):
        return
    if isinstance(tree, exp.Anonymous) and name_of(tree.this) in TABLE_FUNCTIONS.by_name:
        yield tree
        return
    for child in tree.iter_expressions():
        yield from _rowsets_in(child)


def plan_rowsets(trees: Sequence[exp.Expr], row: Row) -> None:
    """Compute the table function of the trees, if they have one; the row then knows its column."""
    found = list(dict.fromkeys(call for tree in trees for call in _rowsets_in(tree)))
    if not found:
        return
    if len(found) > 1:
        raise unsupported("more than one set-returning function in SELECT", found[1])
    (tree,) = found
    arguments = [plan(each, row) for each in tree.expressions]
    name = name_of(tree.this)
    entry, coerced = resolve(TABLE_FUNCTIONS, name, arguments, position_of(tree))
    call = TableCall(entry.id, coerced)
    if len(call.types) != 1:
        raise unsupported(f"{name} in SELECT", tree, hint="Call it in FROM.")
    assert row.relation is not None
    row.relation = FlatMap(row.relation, call, (name,))
    row.computed[tree] = row.column_at(len(row.relation.schema) - 1)
