"""UPDATE and DELETE: which rows of a table change, and into what.

Both are a query over the table: its columns first, then (for UPDATE) the new values. With FROM or
USING a row of the table may match several rows of the others; it is changed once, by the least
match, so that the answer does not depend on an order that nobody gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlglot import exp

from noonmark.adapter.aside import aside
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.statement.dml.actions import Move
from noonmark.adapter.statement.dml.fitting import fitted_rows
from noonmark.adapter.statement.dml.mistake import check_assignments
from noonmark.adapter.statement.dml.plan import Planning, Source
from noonmark.adapter.statement.dml.read import Reading, Write
from noonmark.adapter.statement.dml.returning import Beside, Returning, joined, plan_returning
from noonmark.adapter.statement.dml.target import (
    Row,
    check_given,
    columns_of,
    default_of,
    is_default,
)
from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.order import row_key, total_key
from noonmark.rows.types import SqlType
from noonmark.sql.assign import assigned, loose
from noonmark.sql.coerce import coerce
from noonmark.sql.dialect import position_of
from noonmark.sql.ir.relation import Project, Scan
from noonmark.sql.ir.scalar import Scalar, column
from noonmark.sql.plan.form import cast_tree
from noonmark.sql.statement import statement as st


@dataclass(frozen=True)
class ChangePlan:
    """See the module.

    Attributes:
        source: rows of the table's columns, then the new values, then what RETURNING needs of
            other tables.
        places: the columns that get the new values; none for DELETE.
        joined: whether a row may match several times.
    """

    catalog: Catalog
    item: Item
    parameters: tuple[SqlType, ...]
    source: Source
    places: tuple[int, ...]
    joined: bool
    returning: Returning | None
    deletes: bool


def plan_update(planning: Planning, item: Item, statement: st.Update) -> ChangePlan:
    """The plan of an UPDATE."""
    try:
        return _plan_update(planning, item, statement)
    except NoonmarkError:
        _check_update(planning, item, statement)
        raise


def _check_update(planning: Planning, item: Item, statement: st.Update) -> None:
    """Raise the first mistake of an UPDATE."""
    froms = () if statement.source is None else (statement.source.this,)
    names = tuple(name for name, _ in statement.assignments)
    select = _select(item, statement, froms, ())
    beside = _beside(planning, item, statement, select)
    planning.query(select)
    _returning(planning, item, statement, beside)
    check_assignments(
        planning,
        item,
        columns_of(item, names, statement.table.position),
        [tree for _, tree in statement.assignments],
        select=partial(_select, item, statement, froms),
        typed=partial(new_value, item),
    )


def _plan_update(planning: Planning, item: Item, statement: st.Update) -> ChangePlan:
    names = tuple(name for name, _ in statement.assignments)
    places = columns_of(item, names, statement.table.position)
    planning.one_value(*(tree for _, tree in statement.assignments), place="UPDATE")
    trees = [
        new_value(item, at, tree)
        for at, (_, tree) in zip(places, statement.assignments, strict=True)
    ]
    froms = () if statement.source is None else (statement.source.this,)
    select = _select(item, statement, froms, trees)
    beside = _beside(planning, item, statement, select)
    planned = planning.query(select)
    relation, width = planned.output(), len(item.schema)
    returning, others = _returning(planning, item, statement, beside)
    kept: list[Scalar] = [column(at, relation.schema.columns[at]) for at in range(width)]
    first = width + len(places)
    for given, at in enumerate(places, width):
        own = column(given, relation.schema.columns[given])
        spec = item.schema.columns[at]
        literal = given in planned.unknown and isinstance(own.type, t.Text)
        kept.append(
            coerce(own, spec.type) if literal else assigned(own, spec, trees[given - width])
        )
    kept += [column(first + at, relation.schema.columns[first + at]) for at in others]
    shown = relation.schema.names[: len(kept)]
    source = planning.read(Project(relation, tuple(kept), shown), statement.table.position)
    types = planning.statement.parameter_types()
    several = statement.source is not None
    return ChangePlan(planning.catalog, item, types, source, places, several, returning, False)


def plan_delete(planning: Planning, item: Item, statement: st.Delete) -> ChangePlan:
    """The plan of a DELETE."""
    select = _select(item, statement, statement.using, ())
    beside = _beside(planning, item, statement, select)
    relation, width = planning.query(select).output(), len(item.schema)
    returning, others = _returning(planning, item, statement, beside)
    places = [*range(width), *(width + at for at in others)]
    kept = tuple(column(at, relation.schema.columns[at]) for at in places)
    shown = relation.schema.names[: len(kept)]
    source = planning.read(Project(relation, kept, shown), statement.table.position)
    types = planning.statement.parameter_types()
    several = bool(statement.using)
    return ChangePlan(planning.catalog, item, types, source, (), several, returning, True)


def _beside(
    planning: Planning, item: Item, statement: st.Update | st.Delete, select: exp.Select
) -> Beside | None:
    """What RETURNING sees if there are other tables; their columns are added to the query."""
    reads = statement.using if isinstance(statement, st.Delete) else statement.source
    if not statement.returning or not reads:
        return None
    beside = joined(planning, select, len(item.schema))
    select.set("expressions", [*select.expressions, *beside.items])
    return beside


def _returning(
    planning: Planning, item: Item, statement: st.Update | st.Delete, beside: Beside | None
) -> tuple[Returning | None, tuple[int, ...]]:
    """RETURNING, and which columns of other tables it needs."""
    if beside is None:
        return planning.returning(item, statement.alias, statement.returning), ()
    return plan_returning(planning, statement.returning, beside)


def new_value(item: Item, at: int, tree: exp.Expr, verb: str = "update") -> exp.Expr:
    """What a column is set to; a bare parameter or literal takes the column's type."""
    spec = item.schema.columns[at]
    if is_default(tree):
        return default_of(item, spec)
    if verb == "update":
        check_given(item, spec, "update")
    if isinstance(tree, exp.Parameter | exp.Null) or (
        isinstance(tree, exp.Literal) and tree.is_string
    ):
        kind = t.Numeric() if isinstance(spec.type, t.Numeric) else loose(spec.type)
        typed = cast_tree(tree, kind)
        place = position_of(tree)
        if place is not None:
            typed.meta["start"] = place - 1
        return typed
    return tree


def _select(
    item: Item,
    statement: st.Update | st.Delete,
    others: Sequence[exp.Expr],
    new: Sequence[exp.Expr],
) -> exp.Select:
    """The table's columns and the new values, of the rows that match."""
    alias = statement.alias or item.name
    name = exp.to_identifier(alias, quoted=True)
    place = {"start": statement.table.position - 1}
    own = [
        exp.Column(this=exp.to_identifier(each, quoted=True), table=name.copy())
        for each in item.schema.names
    ]
    values = [
        exp.Alias(this=tree.copy(), alias=exp.to_identifier(f"new_{at}", quoted=True))
        for at, tree in enumerate(new)
    ]
    table = exp.Table(
        this=exp.to_identifier(item.name, quoted=True),
        db=exp.to_identifier(item.schema_name, quoted=True),
        alias=exp.TableAlias(this=name.copy()),
    )
    table.this.meta.update(place)
    joins = [exp.Join(this=each.copy()) for each in others]
    select = exp.Select(expressions=[*own, *values], from_=exp.From(this=table), joins=joins)
    if statement.where is not None:
        select.set("where", exp.Where(this=statement.where.copy()))
    return select


# --- running


#: What it takes to move a row, as characters of a text are counted.
_ROW_WEIGHT = 5


@dataclass(frozen=True)
class Changed:
    """What a statement writes, the rows as RETURNING sees them, and what became of each.

    Attributes:
        rows: each as it is now (or was, if it is gone), and what RETURNING needs of other tables.
    """

    writes: list[Write]
    rows: list[Row]
    moves: list[Move]


async def changes(plan: ChangePlan, reading: Reading, values: Sequence[Any]) -> Changed:
    """The changes of one read."""
    item, width = plan.item, len(plan.item.schema)
    found = await reading.multiset(plan.source.peek.bound(values, reading.now))
    if plan.joined:
        found = await _once(plan, reading, found)
    if plan.deletes:
        return await aside(len(found) * _ROW_WEIGHT, _deleted, found, width)
    weight = len(found) * (1 + width) * _ROW_WEIGHT
    wholes = await aside(weight, _wholes, plan, found)
    news = await fitted_rows(reading.session.database.workers, item, wholes, plan.places)
    return await aside(weight, _updated, plan, found, news)


def _deleted(found: dict[Row, int], width: int) -> Changed:
    moves: list[Move] = [(row[:width], None, count) for row, count in found.items()]
    touched = [row for row, count in found.items() for _ in range(count)]
    return Changed([(old, -count) for old, _, count in moves], touched, moves)


def _wholes(plan: ChangePlan, found: dict[Row, int]) -> list[list[Any]]:
    """The rows of the table with their new values."""
    width = len(plan.item.schema)
    made = []
    for row in found:
        whole = list(row[:width])
        for at, value in zip(plan.places, row[width:], strict=False):
            whole[at] = value
        made.append(whole)
    return made


def _updated(plan: ChangePlan, found: dict[Row, int], news: Sequence[Row]) -> Changed:
    width = len(plan.item.schema)
    first = width + len(plan.places)
    writes: list[Write] = []
    touched: list[Row] = []
    moves: list[Move] = []
    for (row, count), new in zip(found.items(), news, strict=True):
        old = row[:width]
        writes += [(old, -count), (new, count)]
        touched += [new + row[first:]] * count
        moves.append((old, new, count))
    return Changed(writes, touched, moves)


async def _once(plan: ChangePlan, reading: Reading, found: dict[Row, int]) -> dict[Row, int]:
    """Every row of the table that matches, as often as the table has it, by its least match."""
    width = len(plan.item.schema)
    types = tuple(each.type for each in plan.source.peek.relation.schema)
    key = row_key(types, total_key)
    least: dict[Row, Row] = {}
    for row in sorted(found, key=key):
        least.setdefault(row[:width], row)
    counts = dict.fromkeys(least, 1)
    if not plan.item.key:
        whole = await reading.multiset(Peek.of(Scan(plan.item.collection, plan.item.schema)))
        counts = {old: whole[old] for old in least}
    return {row: counts[old] for old, row in least.items()}
