"""MERGE: rows of a source change the rows of a table that match them, or become new ones.

Law (first): of the WHENs that are for a row (a pair of source and target, a row of the source
alone, a row of the target alone), the first whose condition is true says what happens to it.
Law (once): no row of the table is changed twice by one statement; where it would be, nothing is.

It is one query: the source joined to the table, which gives the table's columns, whether there is a
row of it, which WHEN it is, and the values that this one gives. What a WHEN that is not taken would
compute is not computed. Defaults are asked for afterwards, for the rows that need them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlglot import exp

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.statement.dml.actions import Move
from noonmark.adapter.statement.dml.change import Changed, new_value
from noonmark.adapter.statement.dml.default import default_value
from noonmark.adapter.statement.dml.fitting import fitted_rows
from noonmark.adapter.statement.dml.mistake import check_assignments
from noonmark.adapter.statement.dml.plan import Planning, Source
from noonmark.adapter.statement.dml.read import Reading, Write
from noonmark.adapter.statement.dml.returning import (
    Beside,
    Returning,
    plan_returning,
    with_action,
)
from noonmark.adapter.statement.dml.target import (
    Row,
    check_given,
    columns_of,
    is_default,
)
from noonmark.errors import (
    DuplicateAlias,
    InvalidSyntax,
    NoonmarkError,
    TooManyRows,
    UndefinedTable,
)
from noonmark.rows.schema import Column
from noonmark.rows.types import SqlType
from noonmark.sql.assign import assigned
from noonmark.sql.dialect import position_of
from noonmark.sql.ir.relation import Project, Scan
from noonmark.sql.ir.scalar import Scalar, column
from noonmark.sql.scope import Entry, Scope, scope_of
from noonmark.sql.statement.merge import Merge, Verb, When

#: What the query calls the marks of rows that are there.
_TARGET, _SOURCE = "row of the target", "row of the source"


@dataclass(frozen=True)
class Action:
    """A WHEN: the columns that it gives values to, where those stand, and those of defaults."""

    verb: Verb
    places: tuple[int, ...] = ()
    first: int = 0
    defaults: tuple[int, ...] = ()


@dataclass(frozen=True)
class MergePlan:
    """See the module.

    Attributes:
        source: rows of the table's columns, the WHEN's number, its values, and what RETURNING needs
            of the source, from `first` on.
        acts: whether RETURNING needs what was done.
    """

    catalog: Catalog
    item: Item
    parameters: tuple[SqlType, ...]
    source: Source
    actions: tuple[Action, ...]
    returning: Returning | None
    first: int
    acts: bool


def plan_merge(planning: Planning, item: Item, statement: Merge) -> MergePlan:
    """The plan of a MERGE."""
    own = statement.alias or item.name
    if own == statement.source_alias:
        raise DuplicateAlias(
            f'name "{own}" specified more than once',
            detail="The name is used both as MERGE target table and data source.",
        )
    try:
        return _plan_merge(planning, item, statement)
    except NoonmarkError:
        _check_merge(planning, item, statement)
        raise


def _check_merge(planning: Planning, item: Item, statement: Merge) -> None:
    """Raise the first mistake of a MERGE."""
    names = planning.query(_select_all(statement.source)).names
    planning.query(_select(item, statement, []))
    for when in statement.whens:
        planning.query(_select(item, statement, [_condition(statement, item, when, names)]))
        if when.verb in ("delete", "nothing"):
            continue
        places, values = _assigned(item, when)
        check_assignments(
            planning,
            item,
            places,
            [_seen(statement, item, when, names, tree) for tree in values],
            select=partial(_select, item, statement),
            typed=partial(new_value, item, verb=when.verb),
        )


def _plan_merge(planning: Planning, item: Item, statement: Merge) -> MergePlan:
    names = planning.query(_select_all(statement.source)).names
    width = len(item.schema)
    conditions = [_condition(statement, item, when, names) for when in statement.whens]
    which = exp.Case(
        ifs=[exp.If(this=each.copy(), true=exp.Literal.number(at))
             for at, each in enumerate(conditions)],
        default=exp.Literal.number(-1),
    )  # fmt: skip
    actions: list[Action] = []
    trees: list[exp.Expr] = []
    places: list[int] = []
    for at, when in enumerate(statement.whens):
        if when.condition is not None:
            planning.one_value(when.condition, place="MERGE WHEN conditions")
        planning.one_value(*when.values, place=when.verb.upper())
        action, given = _action(item, when, width + 1 + len(trees))
        actions.append(action)
        places += action.places
        trees += [_only_when(conditions, at, _seen(statement, item, when, names, each))
                  for each in given]  # fmt: skip
    first = width + 1 + len(trees)
    given_names = names if statement.returning else ()
    select = _select(item, statement, [which, *trees])
    select.set("expressions", [*select.expressions, *_beside(item, statement, given_names).items])
    relation = planning.query(select).output()
    kept: list[Scalar] = [column(each, relation.schema.columns[each]) for each in range(width + 1)]
    for given_at, (place, tree) in enumerate(zip(places, trees, strict=True), width + 1):
        value = column(given_at, relation.schema.columns[given_at])
        kept.append(assigned(value, item.schema.columns[place], tree))
    returning, others = None, tuple[int, ...]()
    if statement.returning:
        seen = _beside(item, statement, names, relation.schema.columns[first:])
        returning, others = plan_returning(
            planning, statement.returning, with_action(seen), acts=True
        )
    acts = len(names) in others
    places_of = [first + at for at in others if at < len(names)]
    kept += [column(at, relation.schema.columns[at]) for at in places_of]
    shown = Project(relation, tuple(kept), relation.schema.names[: len(kept)])
    source = planning.read(shown, statement.table.position)
    types = planning.statement.parameter_types()
    made = tuple(actions)
    return MergePlan(planning.catalog, item, types, source, made, returning, first, acts)


def _beside(
    item: Item, statement: Merge, names: Sequence[str], columns: Sequence[Column] = ()
) -> Beside:
    """What RETURNING sees: the table, and the source, whose columns are the first of FROM."""
    own, other, width = statement.alias or item.name, statement.source_alias, len(item.schema)
    entries = [Entry(other, name, at) for at, name in enumerate(names, width)]
    target = scope_of(own, item.schema).entries
    alone = any(when.kind == "not matched by source" for when in statement.whens)
    scope = Scope((*entries, *target), (other, own), frozenset([other] if alone else []))
    return Beside(scope, (*item.schema.columns, *columns), width, tuple(range(len(names))))


def _action(item: Item, when: When, first: int) -> tuple[Action, list[exp.Expr]]:
    """What a WHEN does, and the expressions of the values that it gives."""
    if when.verb in ("delete", "nothing"):
        return Action(when.verb), []
    places, values = _assigned(item, when)
    identities = item.definition.get("identity", {})
    given: dict[int, exp.Expr] = {}
    for place, tree in zip(places, values, strict=True):
        spec = item.schema.columns[place]
        if is_default(tree) or (when.overriding == "user" and spec.name in identities):
            continue
        if when.verb == "insert":
            check_given(item, spec, "insert", when.overriding)
        given[place] = new_value(item, place, tree, when.verb)
    wanted = range(len(item.schema)) if when.verb == "insert" else places
    defaults = tuple(place for place in wanted if place not in given)
    return Action(when.verb, tuple(given), first, defaults), list(given.values())


def _assigned(item: Item, when: When) -> tuple[tuple[int, ...], tuple[exp.Expr, ...]]:
    """The columns that a WHEN assigns to, and the expressions of their values."""
    columns, values = when.columns, when.values
    if when.verb == "insert" and not columns:
        columns = item.schema.names[: len(values)]
        if len(values) > len(columns):
            raise InvalidSyntax(
                "INSERT has more expressions than target columns",
                position=position_of(values[len(columns)]),
            )
    return (columns_of(item, columns, when.position) if columns else ()), values


def _condition(statement: Merge, item: Item, when: When, names: Sequence[str]) -> exp.Expr:
    """Whether a WHEN is for a row of the join."""
    target, source = (_is_there(mark, alias) for mark, alias in (
        (_TARGET, statement.alias or item.name), (_SOURCE, statement.source_alias)
    ))  # fmt: skip
    kinds: dict[str, exp.Expr] = {
        "matched": exp.And(this=target, expression=source),
        "not matched": exp.Not(this=target),
        "not matched by source": exp.Not(this=source),
    }
    kind = kinds[when.kind]
    if when.condition is None:
        return kind
    own = _seen(statement, item, when, names, when.condition)
    return exp.And(this=exp.Paren(this=kind), expression=exp.Paren(this=own))


def _seen(
    statement: Merge, item: Item, when: When, names: Sequence[str], tree: exp.Expr
) -> exp.Expr:
    """An expression of a WHEN, which sees one side alone where there is no other.

    Raises:
        UndefinedTable: it names the other side.
    """
    if when.kind == "matched":
        return tree.copy()
    own = statement.alias or item.name
    hidden, shown = own, statement.source_alias
    columns = set(names)
    if when.kind == "not matched by source":
        hidden, shown, columns = shown, hidden, set(item.schema.names)
    made = tree.copy()
    for each in list(made.find_all(exp.Column)):
        if each.find_ancestor(exp.Query) is not None:
            continue
        if each.table == hidden:
            raise UndefinedTable(
                f'invalid reference to FROM-clause entry for table "{hidden}"',
                detail=f'There is an entry for table "{hidden}", but it cannot be referenced '
                "from this part of the query.",
                position=position_of(each),
            )
        if not each.table and each.name in columns:
            each.set("table", exp.to_identifier(shown, quoted=True))
    return made


def _only_when(conditions: Sequence[exp.Expr], at: int, value: exp.Expr) -> exp.Expr:
    """A value where a WHEN is taken, NULL elsewhere."""
    ifs = [exp.If(this=each.copy(), true=exp.Null()) for each in conditions[:at]]
    found = exp.Case(ifs=[*ifs, exp.If(this=conditions[at].copy(), true=value)])
    place = position_of(value)
    if place is not None:
        found.meta["start"] = place - 1
    return found


# --- the query


def _select(item: Item, statement: Merge, values: Sequence[exp.Expr]) -> exp.Select:
    own = statement.alias or item.name
    table = exp.Table(
        this=exp.to_identifier(item.name, quoted=True),
        db=exp.to_identifier(item.schema_name, quoted=True),
    )
    table.this.meta["start"] = statement.table.position - 1
    target = _marked(table, _TARGET, own)
    source = _marked(statement.source.copy(), _SOURCE, statement.source_alias)
    kinds = {when.kind for when in statement.whens if when.verb != "nothing"}
    side = "LEFT" if "not matched" in kinds else ""
    if "not matched by source" in kinds:
        side = "FULL" if side else "RIGHT"
    join = exp.Join(this=target, on=statement.condition.copy(), **({"side": side} if side else {}))
    shown = [
        exp.Column(this=exp.to_identifier(each, quoted=True), table=_name(own))
        for each in item.schema.names
    ]
    named = [
        exp.Alias(this=tree, alias=exp.to_identifier(f"value {at}", quoted=True))
        for at, tree in enumerate(values)
    ]
    return exp.Select(expressions=[*shown, *named], from_=exp.From(this=source), joins=[join])


def _marked(one: exp.Expr, mark: str, alias: str) -> exp.Subquery:
    """Rows with a column more, which is true."""
    there = exp.Alias(this=exp.true(), alias=exp.to_identifier(mark, quoted=True))
    select = exp.Select(expressions=[exp.Star(), there], from_=exp.From(this=one))
    return exp.Subquery(this=select, alias=exp.TableAlias(this=_name(alias)))


def _select_all(source: exp.Expr) -> exp.Select:
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=source.copy()))


def _is_there(mark: str, alias: str) -> exp.Expr:
    own = exp.Column(this=exp.to_identifier(mark, quoted=True), table=_name(alias))
    return exp.Paren(this=exp.Not(this=exp.Is(this=own, expression=exp.Null())))


def _name(text: str) -> exp.Identifier:
    return exp.to_identifier(text, quoted=True)


# --- running


async def merged(plan: MergePlan, reading: Reading, values: Sequence[Any]) -> Changed:
    """What a MERGE does to what was read."""
    width = len(plan.item.schema)
    found = await reading.multiset(plan.source.peek.bound(values, reading.now))
    taken = [
        (row, count, plan.actions[row[width]])
        for row, count in found.items()
        if row[width] >= 0 and plan.actions[row[width]].verb != "nothing"
    ]
    wholes = [
        _new_row(plan, reading, action, row)
        for row, count, action in taken
        for _ in range(count if action.verb == "insert" else action.verb == "update")
    ]
    news = iter(await fitted_rows(reading.session.database.workers, plan.item, wholes))
    writes: list[Write] = []
    rows: list[Row] = []
    moves: list[Move] = []
    times: Counter[Row] = Counter()
    for row, count, action in taken:
        beside = row[plan.first :] + ((action.verb.upper(),) if plan.acts else ())
        if action.verb == "insert":
            made = [next(news) for _ in range(count)]
            writes += [(each, 1) for each in made]
            rows += [each + beside for each in made]
            continue
        old = row[:width]
        times[old] += count
        new = None
        if action.verb == "update":
            new = next(news)
            writes.append((new, count))
        writes.append((old, -count))
        moves.append((old, new, count))
        rows += [(old if new is None else new) + beside] * count
    await _check_once(plan, reading, times)
    return Changed(writes, rows, moves)


def _new_row(plan: MergePlan, reading: Reading, action: Action, row: Row) -> list[Any]:
    width = len(plan.item.schema)
    whole: list[Any] = [None] * width if action.verb == "insert" else list(row[:width])
    for at, place in enumerate(action.places, action.first):
        whole[place] = row[at]
    for place in action.defaults:
        whole[place] = default_value(reading.session, plan.item, place)
    return whole


async def _check_once(plan: MergePlan, reading: Reading, times: Counter[Row]) -> None:
    """No row of the table may be changed more often than it is there."""
    often = {row: count for row, count in times.items() if count > 1}
    if not often:
        return
    item, there = plan.item, Counter[Row]()
    if not item.key:
        there.update(await reading.multiset(Peek.of(Scan(item.collection, item.schema))))
    if any(count > there.get(row, 1) for row, count in often.items()):
        raise TooManyRows(
            "MERGE command cannot affect row a second time",
            hint="Ensure that not more than one source row matches any one target row.",
        )
