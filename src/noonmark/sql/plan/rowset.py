"""Table functions in the select list: every row is repeated for each row that the function gives.

A row for which the function gives nothing is gone, as in PostgreSQL. Several calls go in lockstep,
the shorter ones filled up with NULL; that is built for arrays, by position, and refused for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from noonmark.errors import Unsupported
from noonmark.rows import types as t
from noonmark.sql.choose import resolve
from noonmark.sql.dialect import position_of
from noonmark.sql.functions import TABLE_FUNCTIONS
from noonmark.sql.functions.function import Function, Table
from noonmark.sql.functions.rowset import VECTOR_SUBSCRIPTS
from noonmark.sql.ir.call import TableCall
from noonmark.sql.ir.relation import FlatMap
from noonmark.sql.ir.scalar import Case, Coalesce, Compare, Literal, MakeRecord, Scalar, When
from noonmark.sql.plan.row import Row, name_of, unsupported
from noonmark.sql.plan.scalar import call, plan

#: Before the name of a function of the session that gives rows: it gives an array of them.
_ROWS_OF = "rows of "


def gives_rows(name: str, session: Table[Function] | None) -> bool:
    """Whether a function gives rows, be it one that the session answers."""
    own = session is not None and f"{_ROWS_OF}{name}" in session.by_name
    return own or name in TABLE_FUNCTIONS.by_name


def of_session(tree: exp.Anonymous, row: Row) -> Scalar:
    """The rows that the session gives for a call, as an array."""
    from noonmark.sql.plan.function import ask  # door: it plans arguments by this package

    name = name_of(tree.this)
    return ask(f"{_ROWS_OF}{name}", [plan(each, row) for each in tree.expressions], tree, row)


def _rowsets_in(
    tree: exp.Expr, session: Table[Function] | None, within: str = ""
) -> Iterator[exp.Anonymous]:
    """The calls in a tree that give rows; `within` is what around it takes one value alone."""
    if isinstance(tree, exp.Query):
        return
    if isinstance(tree, exp.Anonymous) and gives_rows(name_of(tree.this), session):
        if within:
            raise not_allowed(
                within, tree, hint="Move the set-returning function into a LATERAL FROM item."
            )
        yield tree
        return
    if isinstance(tree, exp.Case):
        within = "CASE"
    elif isinstance(tree, exp.Anonymous) and name_of(tree.this) == "coalesce":
        within = "COALESCE"
    for child in tree.iter_expressions():
        yield from _rowsets_in(child, session, within)


def not_allowed(place: str, tree: exp.Expr, hint: str | None = None) -> Unsupported:
    """The error of a function that gives rows where one value is asked for."""
    message = f"set-returning functions are not allowed in {place}"
    return Unsupported(message, position=position_of(tree), hint=hint)


def refuse_rowsets(trees: Iterable[exp.Expr], place: str, session: Table[Function] | None) -> None:
    """Raise for a table function in expressions each of which is one value of a row.

    A row of a table that is changed would be changed once for each row that the function gives.
    """
    for tree in trees:
        for found in _rowsets_in(tree, session):
            raise not_allowed(place, found)


def plan_rowsets(trees: Sequence[exp.Expr], row: Row) -> None:
    """Compute the table function of the trees, if they have one; the row then knows its column."""
    session = row.statement.session
    found = list(dict.fromkeys(call for tree in trees for call in _rowsets_in(tree, session)))
    if not found:
        return
    if len(found) > 1:
        in_lockstep(found, row)
        return
    (tree,) = found
    name = name_of(tree.this)
    if name not in TABLE_FUNCTIONS.by_name:
        arguments = [of_session(tree, row)]
        name = "unnest"
    else:
        arguments = [plan(each, row) for each in tree.expressions]
    entry, coerced = resolve(TABLE_FUNCTIONS, meant(name, arguments), arguments, position_of(tree))
    table = TableCall(entry.id, coerced)
    assert row.relation is not None
    width = len(row.relation.schema)
    types = tuple(each.type for each in coerced)
    names = [column.name for column in entry.columns(types, name)]
    row.relation = FlatMap(row.relation, table, tuple(names))
    columns = tuple(row.column_at(width + at) for at in range(len(names)))
    whole = len(columns) == 1
    row.computed[tree] = columns[0] if whole else MakeRecord(entry.result_type(types), columns)


def meant(name: str, arguments: Sequence[Scalar]) -> str:
    """The name of the function that a call means: subscripts of a vector begin at 0."""
    vector = name == "generate_subscripts" and arguments and not _from_one(arguments[0])
    return VECTOR_SUBSCRIPTS if vector else name


def _from_one(array: Scalar) -> bool:
    return not isinstance(array.type, t.Vector)


def in_lockstep(trees: Sequence[exp.Anonymous], row: Row) -> None:
    """``unnest(a), unnest(b)``: the positions of the longest array, and what each has there."""
    arrays: list[Scalar] = []
    for tree in trees:
        name = name_of(tree.this)
        by_position = name == "unnest" or (name == "generate_subscripts" and _is_first(tree))
        if not by_position:
            raise unsupported(f"{name} beside another set-returning function in SELECT", tree)
        arrays.append(plan(tree.expressions[0], row))
    zero, one = Literal(t.Integer(), 0), Literal(t.Integer(), 1)
    counts = [
        Coalesce((call("cardinality", [array], tree, operator=False), zero))
        for array, tree in zip(arrays, trees, strict=True)
    ]
    longest: Scalar = counts[0]
    for count in counts[1:]:
        longest = Case((When(Compare(">", count, longest), count),), longest)
    entry, coerced = resolve(TABLE_FUNCTIONS, "generate_series", [one, longest])
    assert row.relation is not None
    row.relation = FlatMap(row.relation, TableCall(entry.id, coerced), ("position",))
    at = row.column_at(len(row.relation.schema) - 1)
    for tree, array, count in zip(trees, arrays, counts, strict=True):
        if name_of(tree.this) == "unnest":
            row.computed[tree] = call("subscript", [array, at], tree, operator=False)
        else:
            first = Literal(t.Integer(), 1 if _from_one(array) else 0)
            place = call("-", [call("+", [at, first], tree, operator=True), one], tree, True)
            inside = When(Compare("<=", at, count), place)
            row.computed[tree] = Case((inside,), Literal(t.Integer(), None))


def _is_first(tree: exp.Anonymous) -> bool:
    """Whether subscripts are those of the first dimension: there is no other."""
    arguments = tree.expressions
    return len(arguments) == 2 and isinstance(arguments[1], exp.Literal | exp.Parameter | exp.Cast)
