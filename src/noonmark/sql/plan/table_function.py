"""Functions in FROM: those of many rows, those of one value, and several of them side by side.

A function of one value is a relation of one row. ``ROWS FROM (f, g)`` has the rows of both by their
numbers, and NULL where one has fewer; so has ``unnest`` of several arrays.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from noonmark.errors import DatatypeMismatch, InvalidSyntax
from noonmark.rows.types import BigInt, Record
from noonmark.sql.choose import resolve
from noonmark.sql.coerce import coerce
from noonmark.sql.dialect import position_of
from noonmark.sql.functions import TABLE_FUNCTIONS
from noonmark.sql.ir.call import TableCall
from noonmark.sql.ir.relation import ONE_ROW, FlatMap, Join, JoinKind, Project, distinct_names
from noonmark.sql.ir.scalar import Coalesce, Compare, FieldRef, Literal, Scalar, column
from noonmark.sql.plan.frame import Frame, only
from noonmark.sql.plan.item import Alias, Source
from noonmark.sql.plan.of_document import OF_DOCUMENT, POPULATED, plan_of_document, plan_populated
from noonmark.sql.plan.row import Row, name_of, unsupported
from noonmark.sql.plan.rowset import gives_rows, in_lockstep, meant, of_session
from noonmark.sql.plan.scalar import plan
from noonmark.sql.scope import Entry, Scope


def plan_unnest(tree: exp.Unnest, alias: Alias, frame: Frame) -> Source:
    """``unnest(array, ...)`` in FROM."""
    only(tree, "expressions", "alias", "offset")
    offset = tree.args.get("offset")
    if alias.columns and isinstance(offset, exp.Identifier):
        # sqlglot takes the name of the ordinality apart
        alias = replace(alias, columns=[*alias.columns, name_of(offset)])
    calls = [exp.Anonymous(this="unnest", expressions=[each]) for each in tree.expressions]
    if len(calls) > 1:
        return _arrays(calls, bool(offset), alias, frame)
    return plan_call(calls[0], bool(offset), alias, frame)


def plan_rows_from(tree: exp.Table, alias: Alias, frame: Frame) -> Source:
    """``ROWS FROM (f(...), ...)``."""
    only(tree, "rows_from", "alias", "ordinality")
    calls = []
    for each in tree.args["rows_from"]:
        if isinstance(each, exp.Unnest):
            calls.append(exp.Anonymous(this="unnest", expressions=each.expressions))
        elif isinstance(each, exp.Table) and isinstance(each.this, exp.Anonymous):
            only(each, "this", "db")
            calls.append(each.this)
        else:
            raise unsupported("a column definition list in ROWS FROM", each)
    ordinality = bool(tree.args.get("ordinality"))
    if len(calls) == 1:
        return plan_call(calls[0], ordinality, alias, frame)
    return _side_by_side(calls, ordinality, alias, frame)


def _side_by_side(
    calls: list[exp.Anonymous], ordinality: bool, alias: Alias, frame: Frame
) -> Source:
    """The rows of several functions by their numbers; the shorter are filled up with NULL."""
    both = plan_call(calls[0], True, Alias(), frame)
    columns = [(entry.name, entry.index) for entry in both.scope.entries[:-1]]
    relation, number = both.relation, both.scope.entries[-1].index
    for each in calls[1:]:
        other = plan_call(each, True, Alias(), frame)
        width = len(relation.schema)
        theirs = [(entry.name, width + entry.index) for entry in other.scope.entries]
        *more, (_, at) = theirs
        fields = (*relation.schema, *other.relation.schema)
        on = Compare("=", column(number, fields[number]), column(at, fields[at]))
        joined = Join(JoinKind.FULL, relation, other.relation, on=on)
        columns += more
        outputs = [column(place, joined.schema.columns[place]) for _, place in columns]
        numbers = [column(place, joined.schema.columns[place]) for place in (number, at)]
        scalars: tuple[Scalar, ...] = (*outputs, Coalesce(tuple(numbers)))
        names = distinct_names([*(name for name, _ in columns), "ordinality"])
        relation = Project(joined, scalars, tuple(names))
        columns = [(name, place) for place, (name, _) in enumerate(columns)]
        number = len(columns)
    if ordinality:
        columns.append(("ordinality", number))
    table = alias.name or name_of(calls[0].this)
    own = [*alias.columns, *(name for name, _ in columns[len(alias.columns) :])]
    shown = zip(own, columns, strict=False)
    return Source(relation, Scope(tuple(Entry(table, n, at) for n, (_, at) in shown), (table,)))


def _arrays(calls: list[exp.Anonymous], ordinality: bool, alias: Alias, frame: Frame) -> Source:
    """Several arrays by position: as `_side_by_side`, and it may be correlated."""
    row: Row = frame.row("FROM", Scope(), ONE_ROW)
    in_lockstep(calls, row)
    assert row.relation is not None
    scalars = [row.computed[each] for each in calls]
    if ordinality:
        scalars.append(coerce(row.column_at(len(row.relation.schema) - 1), BigInt()))
    own = ["unnest"] * len(calls) + ["ordinality"] * ordinality
    names = [*alias.columns, *own[len(alias.columns) :]]
    relation = Project(row.relation, tuple(scalars), tuple(distinct_names(names)))
    return Source(relation, Scope.of(alias.name or "unnest", names))


def _one_value(tree: exp.Anonymous, ordinality: bool, alias: Alias, frame: Frame) -> Source:
    """A function of one value, as one row."""
    row: Row = frame.row("FROM", Scope(), ONE_ROW)
    value = plan(tree, row)
    if isinstance(value.type, Record) or alias.types:
        raise unsupported(f"function {name_of(tree.this)}, which gives a record, in FROM", tree)
    table = alias.name or name_of(tree.this)
    own = [table, "ordinality"][: 1 + ordinality]
    columns = distinct_names([*alias.columns, *own[len(alias.columns) :]])
    scalars = (value, Literal(BigInt(), 1))[: 1 + ordinality]
    assert row.relation is not None
    relation = Project(row.relation, scalars, tuple(columns))
    return Source(relation, Scope.of(table, columns))


def plan_call(tree: exp.Anonymous, ordinality: bool, alias: Alias, frame: Frame) -> Source:
    """A table function; its arguments see only what is outside: it is lateral."""
    name = name_of(tree.this)
    if name in POPULATED:
        return plan_populated(tree, ordinality, alias, frame)
    if name in OF_DOCUMENT:
        return plan_of_document(tree, ordinality, alias, frame)
    if not gives_rows(name, frame.statement.session):
        return _one_value(tree, ordinality, alias, frame)
    row: Row = frame.row("FROM", Scope(), ONE_ROW)
    if name not in TABLE_FUNCTIONS.by_name:
        return _of_session(tree, ordinality, alias, row)
    arguments = [plan(each, row) for each in tree.expressions]
    entry, coerced = resolve(TABLE_FUNCTIONS, meant(name, arguments), arguments, position_of(tree))
    call = TableCall(entry.id, coerced, ordinality)
    is_record = entry.scalar and isinstance(call.types[0], Record)
    if is_record != bool(alias.types):
        known = "required" if is_record else "only allowed"
        raise InvalidSyntax(
            f'a column definition list is {known} for functions returning "record"',
            position=position_of(tree),
        )
    if is_record and ordinality:
        raise InvalidSyntax(
            "WITH ORDINALITY cannot be used with a column definition list",
            position=position_of(tree),
        )
    if is_record:
        return _defined(call, alias, row, tree)
    table = alias.name or name
    own = _column_names(call, table)
    columns = distinct_names([*alias.columns, *own[len(alias.columns) :]])
    assert row.relation is not None
    flat = FlatMap(row.relation, call, tuple(columns))
    skipped = len(row.relation.schema)
    entries = tuple(Entry(table, each, skipped + at) for at, each in enumerate(columns))
    return Source(flat, Scope(entries, (table,)))


def _of_session(tree: exp.Anonymous, ordinality: bool, alias: Alias, row: Row) -> Source:
    """The rows that the session gives: of one column, or of the fields of a record."""
    array = of_session(tree, row)
    entry = next(e for e in TABLE_FUNCTIONS.by_name["unnest"] if e.takes((array.type,)))
    call, table = TableCall(entry.id, (array,), ordinality), alias.name or name_of(tree.this)
    assert row.relation is not None
    width = len(row.relation.schema)
    flat = FlatMap(row.relation, call, ("row", "ordinality")[: 1 + ordinality])
    whole = column(width, flat.schema.columns[width])
    scalars: list[Scalar] = [whole]
    own = [table]
    if isinstance(whole.type, Record):
        scalars = [FieldRef(whole, at) for at in range(len(whole.type.fields))]
        own = [field.name for field in whole.type.fields]
    if ordinality:
        scalars.append(column(width + 1, flat.schema.columns[width + 1]))
        own.append("ordinality")
    names = distinct_names([*alias.columns, *own[len(alias.columns) :]])
    return Source(Project(flat, tuple(scalars), tuple(names)), Scope.of(table, names))


def _defined(call: TableCall, alias: Alias, row: Row, tree: exp.Expr) -> Source:
    """A function whose rows are records, as the columns that its alias defines."""
    record = call.types[0]
    assert isinstance(record, Record)
    if [field.type for field in record.fields] != alias.types:
        raise DatatypeMismatch(
            "function return row and query-specified return row do not match",
            position=position_of(tree),
        )
    assert row.relation is not None
    width = len(row.relation.schema)
    flat = FlatMap(row.relation, call, ("row",))
    whole = column(width, flat.schema.columns[width])
    scalars: list[Scalar] = [FieldRef(whole, at) for at in range(len(alias.types))]
    relation = Project(flat, tuple(scalars), tuple(distinct_names(alias.columns)))
    return Source(relation, Scope.of(alias.name or "unnest", alias.columns))


def _column_names(call: TableCall, table: str) -> list[str]:
    """A function of one column names it after its table; then comes ordinality."""
    types = tuple(each.type for each in call.arguments)
    own = [column.name for column in call.entry.columns(types, table)]
    return own + ["ordinality"] * call.ordinality
