"""INSERT: VALUES, a query or DEFAULT VALUES; ON CONFLICT by the primary key.

VALUES without subqueries reads nothing: such a statement never conflicts with another. ON CONFLICT
reads the rows that have the new rows' keys, and is exact because the key is enforced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from noonmark.adapter.aside import aside
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.statement.dml.actions import Move
from noonmark.adapter.statement.dml.arbiters import Arbiter, Key, arbiters
from noonmark.adapter.statement.dml.fitting import fitted_rows
from noonmark.adapter.statement.dml.literals import literal_rows
from noonmark.adapter.statement.dml.plan import Planning, Source
from noonmark.adapter.statement.dml.read import Reading, Write
from noonmark.adapter.statement.dml.returning import Returning
from noonmark.adapter.statement.dml.target import (
    Row,
    check_given,
    columns_of,
    default_of,
    is_default,
)
from noonmark.adapter.table.keys import ROW_WEIGHT
from noonmark.adapter.worker.pool import Pool
from noonmark.adapter.worker.values import values_of
from noonmark.errors import (
    InvalidSyntax,
    TooManyRows,
    Unsupported,
)
from noonmark.rows import types as t
from noonmark.rows.types import SqlType
from noonmark.sql.assign import assigned
from noonmark.sql.coerce import coerce
from noonmark.sql.dialect import position_of
from noonmark.sql.ir.asked import bind
from noonmark.sql.ir.relation import ONE_ROW, Project, Relation, Union
from noonmark.sql.ir.scalar import Scalar, column
from noonmark.sql.plan.row import Row as PlanRow
from noonmark.sql.plan.row import name_of
from noonmark.sql.plan.scalar import plan, plan_boolean
from noonmark.sql.scope import Entry, Scope
from noonmark.sql.statement import statement as st
from noonmark.sql.statement.literals import LiteralRows


@dataclass(frozen=True)
class Conflict:
    """ON CONFLICT: what becomes of a row whose key is there. The scalars see (old, new).

    `arbiters` are the keys that rows are told apart by.
    """

    arbiters: tuple[Key, ...]
    update: tuple[Scalar, ...] | None  # the whole new row; None for DO NOTHING
    where: Scalar | None


@dataclass(frozen=True)
class InsertPlan:
    """See the module. One of `rows` (scalars that read nothing), `literals` and `source`."""

    catalog: Catalog
    item: Item
    parameters: tuple[SqlType, ...]
    rows: tuple[tuple[Scalar, ...], ...]
    source: Source | None
    returning: Returning | None
    conflict: Conflict | None
    literals: Sequence[Row] = ()


def plan_insert(planning: Planning, item: Item, statement: st.Insert) -> InsertPlan:
    """The plan of an INSERT."""
    planning.overriding = statement.overriding
    places = columns_of(item, statement.columns, statement.table.position)
    rows: tuple[tuple[Scalar, ...], ...] = ()
    source: Source | None = None
    literals: Sequence[Row] | None = None
    if isinstance(statement.query, LiteralRows):
        literals = literal_rows(item, places, statement.query)
    if literals is not None:
        pass
    elif statement.query is None:
        rows = (tuple(_default(planning, item, at) for at in range(len(item.schema))),)
    elif isinstance(statement.query.tree, exp.Values):
        rows, source = _plan_values(planning, item, places, statement.query.tree)
    else:
        source = _plan_query(planning, item, places, statement.query)
    returning = planning.returning(item, statement.alias, statement.returning)
    conflict = _plan_conflict(planning, item, statement)
    types = planning.statement.parameter_types()
    made = (rows, source, returning, conflict, literals or ())
    return InsertPlan(planning.catalog, item, types, *made)


def _default(planning: Planning, item: Item, at: int) -> Scalar:
    spec = item.schema.columns[at]
    row = planning.frame.row("DEFAULT expressions", Scope())
    return assigned(plan(default_of(item, spec), row), spec)


def _plan_values(
    planning: Planning, item: Item, places: tuple[int, ...], tree: exp.Values
) -> tuple[tuple[tuple[Scalar, ...], ...], Source | None]:
    planned: list[tuple[Scalar, ...]] = []
    below: list[Relation] = []
    for values in tree.expressions:
        expressions = values.expressions if isinstance(values, exp.Tuple) else [values]
        _check_width(len(expressions), places, tree)
        place = planning.frame.row("VALUES", Scope(), ONE_ROW)
        given = {
            at: _value(planning, item, at, each, place)
            for at, each in zip(places, expressions, strict=False)
        }
        whole = [
            given[at] if at in given else _default(planning, item, at)
            for at in range(len(item.schema))
        ]
        planned.append(tuple(whole))
        assert place.relation is not None
        below.append(place.relation)
    if all(relation is ONE_ROW for relation in below):
        return tuple(planned), None
    names = item.schema.names
    parts = [Project(rel, row, names) for rel, row in zip(below, planned, strict=True)]
    relation = parts[0] if len(parts) == 1 else Union(tuple(parts))
    return (), planning.read(relation, position_of(tree))


def _value(planning: Planning, item: Item, at: int, tree: exp.Expr, place: PlanRow) -> Scalar:
    spec = item.schema.columns[at]
    if is_default(tree):
        return _default(planning, item, at)
    overriding = planning.overriding
    if overriding == "user" and spec.name in item.definition.get("identity", {}):
        return _default(planning, item, at)
    check_given(item, spec, planning.verb, overriding)
    return assigned(plan(tree, place), spec, tree)


def _check_width(width: int, places: tuple[int, ...], tree: exp.Expr) -> None:
    if width > len(places):
        raise InvalidSyntax(
            "INSERT has more expressions than target columns", position=position_of(tree)
        )


def _plan_query(
    planning: Planning, item: Item, places: tuple[int, ...], query: st.QueryText | LiteralRows
) -> Source:
    planned = planning.query(query.tree)
    relation = planned.output()
    _check_width(len(relation.schema), places, query.tree)
    given: dict[int, Scalar] = {}
    for source, at in zip(range(len(relation.schema)), places, strict=False):
        own = column(source, relation.schema.columns[source])
        spec = item.schema.columns[at]
        if planning.overriding == "user" and spec.name in item.definition.get("identity", {}):
            continue
        check_given(item, spec, "insert", planning.overriding)
        # What was a quoted literal in the select list takes the column's type, as it is written.
        literal = source in planned.unknown and isinstance(own.type, t.Text)
        given[at] = coerce(own, spec.type) if literal else assigned(own, spec, query.tree)
    whole = tuple(
        given[at] if at in given else _default(planning, item, at) for at in range(len(item.schema))
    )
    return planning.read(Project(relation, whole, item.schema.names), query.position)


# --- ON CONFLICT


def _plan_conflict(planning: Planning, item: Item, statement: st.Insert) -> Conflict | None:
    if statement.conflict is None:
        return None
    found = arbiters(planning, item, statement)
    if not found:
        return None  # nothing can be in the way
    if statement.conflict == "nothing":
        return Conflict(found, None, None)
    keys = {name for key in found for name in key.needed(item)}
    width, names = len(item.schema), item.schema.names
    scope = Scope.of(statement.alias or item.name, names)
    scope = scope.beside(Scope.of("excluded", names), width)
    row = planning.frame.row("ON CONFLICT", scope)
    row.columns = item.schema.columns * 2
    # An unqualified name is the table's: excluded is only asked for by its full name.
    row.scope = Scope(
        tuple(e if e.index < width else _hidden(e) for e in scope.entries), scope.tables
    )
    planning.verb, planning.overriding = "update", None
    update: list[Scalar] = [row.column_at(at) for at in range(width)]
    for name, tree in statement.assignments:
        (at,) = columns_of(item, (name,), position_of(tree) or statement.table.position)
        if name in keys and not _is_excluded(tree, name):
            raise Unsupported(
                "ON CONFLICT DO UPDATE that changes the key is not supported",
                position=position_of(tree),
            )
        update[at] = _value(planning, item, at, tree, row)
    condition = statement.conflict_where
    where = None if condition is None else plan_boolean(condition, row, "WHERE")
    return Conflict(found, tuple(update), where)


def _is_excluded(tree: exp.Expr, name: str) -> bool:
    """Whether a value is the key's own: the row that is in the way has an equal one."""
    return (
        isinstance(tree, exp.Column)
        and name_of(tree.this) == name
        and tree.table.lower() == "excluded"
    )


def _hidden(entry: Entry) -> Entry:
    return replace(entry, hidden=True)


# --- running


async def new_rows(plan: InsertPlan, pool: Pool, values: Sequence[Any]) -> list[Row]:
    """The rows of VALUES."""
    if plan.literals:
        given = plan.literals
        return await fitted_rows(pool, plan.item, given)
    bound = await aside(
        len(plan.rows) * 100, lambda: [[bind(each, values) for each in row] for row in plan.rows]
    )
    found = await values_of(pool, bound, [()] * len(bound))
    return await fitted_rows(pool, plan.item, found)


async def read_rows(plan: InsertPlan, reading: Reading, values: Sequence[Any]) -> list[Row]:
    """The rows to be inserted, read if they must be."""
    if plan.source is None:
        return await new_rows(plan, reading.session.database.workers, values)
    found = await reading.multiset(plan.source.peek.bound(values, reading.now))
    rows = await aside(len(found), lambda: [row for row, n in found.items() for _ in range(n)])
    return await fitted_rows(reading.session.database.workers, plan.item, rows)


async def settle_conflicts(
    plan: InsertPlan, reading: Reading, rows: Sequence[Row], values: Sequence[Any]
) -> tuple[list[Write], list[Row], list[Move]]:
    """What is written instead of the rows, the rows inserted or updated, and those updated."""
    conflict, item = plan.conflict, plan.item
    assert conflict is not None
    own = [Arbiter(item, key) for key in conflict.arbiters]
    weight = len(rows) * ROW_WEIGHT
    for arbiter in own:
        await arbiter.present(reading, rows)
    told = await aside(weight, _told_apart, own, rows, updates=conflict.update is not None)
    pairs = [(old, row) for old, row in told.steps if old is not None]
    news = iter(await _updated(plan, reading.session.database.workers, pairs, values))
    if told.twice:
        raise TooManyRows(
            "ON CONFLICT DO UPDATE command cannot affect row a second time",
            hint="No rows proposed for insertion within one command may share a key.",
        )
    writes: list[Write] = []
    touched: list[Row] = []
    moves: list[Move] = []
    for old, row in told.steps:
        new = row if old is None else next(news)
        if new is None:
            continue
        touched.append(new)
        writes.append((new, 1))
        if old is not None:
            writes.append((old, -1))
            moves.append((old, new, 1))
    return writes, touched, moves


@dataclass
class _Told:
    """Each row with the one that is there, and whether one came twice."""

    steps: list[tuple[Row | None, Row]]
    twice: bool = False


def _told_apart(arbiters: Sequence[Arbiter], rows: Sequence[Row], *, updates: bool) -> _Told:
    """Tell new rows from others, up to one that would change what the statement itself wrote.

    What becomes of one row changes nothing for the others: an update keeps its key.
    """
    told = _Told([])
    for row in rows:
        taken = next((each for each in arbiters if each.of(row) is not None), None)
        if taken is None:
            told.steps.append((None, row))
            for each in arbiters:
                each.put(row)
        elif updates:
            if taken.is_own(row):
                told.twice = True
                break
            told.steps.append((taken.of(row), row))
            taken.put(row)
    return told


async def _updated(
    plan: InsertPlan, pool: Pool, pairs: Sequence[tuple[Row, Row]], values: Sequence[Any]
) -> list[Row | None]:
    """What becomes of rows that are there; None where the condition is not true."""
    conflict = plan.conflict
    if not pairs or conflict is None or conflict.update is None:
        return []
    both = [old + row for old, row in pairs]
    if conflict.where is not None:
        test = (bind(conflict.where, values),)
        holds = [answer is True for (answer,) in await values_of(pool, [test] * len(both), both)]
    else:
        holds = [True] * len(both)
    chosen = [each for each, is_so in zip(both, holds, strict=True) if is_so]
    bound = tuple([bind(scalar, values) for scalar in conflict.update])
    found = await values_of(pool, [bound] * len(chosen), chosen)
    news = iter(await fitted_rows(pool, plan.item, found))
    return [next(news) if is_so else None for is_so in holds]
