"""FROM: tables, subqueries, table functions and their joins.

Items between commas are joined last, as in the standard: ``a, b JOIN c`` is a, and b joined to c. A
lateral item, and every table function, sees the items to its left.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sqlglot import exp

from noonmark.errors import (
    InvalidReference,
    InvalidSyntax,
    UndefinedColumn,
    UndefinedTable,
)
from noonmark.sql.coerce import coerce, common_type
from noonmark.sql.dialect import USING_ALIAS, position_of
from noonmark.sql.ir.relation import (
    ONE_ROW,
    Apply,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    beside,
    distinct_names,
)
from noonmark.sql.ir.scalar import TRUE, Coalesce, Scalar, column, conjunction
from noonmark.sql.plan.form import type_named
from noonmark.sql.plan.frame import Frame, only
from noonmark.sql.plan.item import Alias, Source
from noonmark.sql.plan.outer_join import Side, join_by_queries, matching
from noonmark.sql.plan.row import Statement, name_of, unsupported
from noonmark.sql.plan.scalar import compare, plan_boolean
from noonmark.sql.plan.table_function import plan_call, plan_rows_from, plan_unnest
from noonmark.sql.scope import Entry, Scope, scope_of

_KINDS = {
    ("", ""): JoinKind.INNER,
    ("", "INNER"): JoinKind.INNER,
    ("", "CROSS"): JoinKind.INNER,
    **{("LEFT", kind): JoinKind.LEFT for kind in ("", "OUTER")},
    **{("RIGHT", kind): JoinKind.RIGHT for kind in ("", "OUTER")},
    **{("FULL", kind): JoinKind.FULL for kind in ("", "OUTER")},
}


def plan_from(tree: exp.Select, frame: Frame) -> Source:
    """The FROM of a SELECT; one row without columns if it has none."""
    first = tree.args.get("from_")
    if first is None:
        return Source(ONE_ROW, Scope())
    result: Source | None = None
    item = plan_item(first.this, frame)
    for join in tree.args.get("joins") or ():
        if _is_comma(join):
            before = item if result is None else _cross(result, item, join)
            if _is_lateral(join.this):
                result, item = None, _lateral(before, join, frame)
            else:
                result, item = before, plan_item(join.this, frame)
        else:
            item = plan_join(item, join, frame)
    for lateral in tree.args.get("laterals") or ():
        raise unsupported("LATERAL VIEW", lateral)
    return item if result is None else _cross(result, item, tree)


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(name) for name in ("kind", "side", "method", "on", "using"))


def _cross(left: Source, right: Source, tree: exp.Expr) -> Source:
    relation = Join(JoinKind.INNER, left.relation, right.relation)
    return Source(relation, _scopes(left, right, tree))


def _scopes(left: Source, right: Source, tree: exp.Expr, kind: JoinKind = JoinKind.INNER) -> Scope:
    both = left.scope.beside(right.scope, len(left.relation.schema), position_of(tree))
    extended = set(both.extended)
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        extended.update(right.scope.tables)
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        extended.update(left.scope.tables)
    return replace(both, extended=frozenset(extended))


def _is_lateral(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.Lateral | exp.Unnest):
        return True
    if not isinstance(tree, exp.Table):
        return False
    return isinstance(tree.this, exp.Anonymous) or bool(tree.args.get("rows_from"))


def plan_join(left: Source, join: exp.Join, frame: Frame) -> Source:
    """One JOIN and what stands left of it."""
    only(join, "this", "kind", "side", "method", "on", "using")
    kind = _KINDS.get((str(join.side or "").upper(), str(join.kind or "").upper()))
    method = str(join.args.get("method") or "").upper()
    if kind is None or method not in ("", "NATURAL"):
        raise unsupported(f"{method} {join.side} {join.kind} JOIN".replace("  ", " "), join)
    outer = kind in (JoinKind.RIGHT, JoinKind.FULL)
    if _is_lateral(join.this) and not outer:
        return _lateral(left, join, frame, kind)
    right = _beside(left, join, frame) if outer else plan_item(join.this, frame)
    using = [name_of(each) for each in join.args.get("using") or ()]
    if method == "NATURAL":
        theirs = {e.name for e in right.scope.star(None, None)}
        using = [e.name for e in left.scope.star(None, None) if e.name in theirs]
    if using:
        return _using(kind, left, right, using, join)
    scope = _scopes(left, right, join, kind)
    on = join.args.get("on")
    if on is None:
        return Source(Join(kind, left.relation, right.relation), scope)
    row = frame.row("JOIN conditions", scope)
    if kind is JoinKind.INNER and on.find(exp.Query):
        # A subquery needs a relation to be attached to; an inner join is a filtered cross join.
        from noonmark.sql.plan.subquery import filter_by  # door: it uses this module

        crossed = Join(kind, left.relation, right.relation)
        return Source(filter_by(on, frame.row("JOIN conditions", scope, crossed)), scope)
    if on.find(exp.Query):
        sides = Side(left.relation, left.scope), Side(right.relation, right.scope)
        return Source(join_by_queries(kind, sides, on, frame), scope)
    row.columns = tuple(beside(left.relation.schema, right.relation.schema))
    predicate = plan_boolean(on, row, "JOIN/ON")
    return Source(Join(kind, left.relation, right.relation, on=predicate), scope)


def _beside(left: Source, join: exp.Join, frame: Frame) -> Source:
    """An item of a join that keeps its rows: it must not depend on the rows to its left."""
    try:
        return plan_item(join.this, frame)
    except (UndefinedTable, UndefinedColumn):
        if not _is_lateral(join.this):
            raise
        _lateral(left, join, frame)  # what it names may be nowhere at all
        raise InvalidReference(
            "invalid reference to FROM-clause entry",
            detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
            position=position_of(join),
        ) from None


def _using(kind: JoinKind, left: Source, right: Source, names: list[str], join: exp.Join) -> Source:
    """The join on columns of equal names, which are one column each afterwards."""
    position, width = position_of(join), len(left.relation.schema)
    pairs: list[tuple[Entry, Entry]] = []
    for name in names:
        found = [side.scope.find(name, None, position) for side in (left, right)]
        for entry, side in zip(found, ("left", "right"), strict=True):
            if entry is None:
                raise UndefinedColumn(
                    f'column "{name}" specified in USING clause does not exist in {side} table',
                    position=position,
                )
        assert found[0] is not None
        assert found[1] is not None
        pairs.append((found[0], replace(found[1], index=found[1].index + width)))
    columns = beside(left.relation.schema, right.relation.schema)
    equal = [
        compare("=", column(a.index, columns[a.index]), column(b.index, columns[b.index]), join)
        for a, b in pairs
    ]
    relation: Relation = Join(kind, left.relation, right.relation, on=conjunction(equal))
    merged = _merged(kind, relation, _scopes(left, right, join, kind), pairs)
    listed = join.args.get("using") or ()
    alias = listed[0].meta.get(USING_ALIAS) if listed else None
    return merged if alias is None else _under(alias, names, merged)


def _under(alias: str, names: list[str], merged: Source) -> Source:
    """The merged columns, also under the alias of a USING."""
    scope = merged.scope
    own = [replace(e, table=alias, hidden=True) for e in scope.entries[: len(names)]]
    scope = replace(scope, entries=(*scope.entries, *own), tables=(*scope.tables, alias))
    return Source(merged.relation, scope)


def _merged(
    kind: JoinKind, relation: Relation, scope: Scope, pairs: list[tuple[Entry, Entry]]
) -> Source:
    """The merged columns: of an inner or left join the left ones, of a right join the right."""
    hidden = {entry.index for pair in pairs for entry in pair}
    rest = tuple(
        replace(entry, hidden=entry.hidden or entry.index in hidden) for entry in scope.entries
    )
    schema = relation.schema.columns
    merged: list[Entry] = []
    added: list[Scalar] = []
    for a, b in pairs:
        one, other = column(a.index, schema[a.index]), column(b.index, schema[b.index])
        if kind is not JoinKind.FULL and one.type == other.type:
            merged.append(Entry(None, a.name, (b if kind is JoinKind.RIGHT else a).index))
            continue
        target = common_type([one.type, other.type], "JOIN/USING")
        merged.append(Entry(None, a.name, len(schema) + len(added)))
        added.append(Coalesce((coerce(one, target), coerce(other, target))))
    if added:
        kept = [column(at, each) for at, each in enumerate(schema)]
        names = distinct_names([*relation.schema.names, *(e.name for e in merged)])
        relation = Project(relation, (*kept, *added), tuple(names[: len(schema) + len(added)]))
    return Source(relation, replace(scope, entries=(*merged, *rest)))


def _lateral(left: Source, join: exp.Join, frame: Frame, kind: JoinKind = JoinKind.INNER) -> Source:
    """An item that is asked for every row of what stands left of it."""
    row = frame.row("FROM", left.scope, left.relation)
    scope_number = frame.statement.fresh_scope()
    inner = Frame(frame.statement, frame.names, row, scope_number)
    right = plan_item(join.this, inner)
    scope = _scopes(left, right, join, kind)
    on_row = frame.row("JOIN conditions", scope)
    on_row.columns = tuple(beside(left.relation.schema, right.relation.schema))
    tree, item = join.args.get("on"), right.relation
    if tree is not None and tree.find(exp.Query):
        see = partial(frame.row, "JOIN conditions", scope)
        item = matching([tree], left.relation.schema, scope_number, item, see)
        tree = None
    on = TRUE if tree is None else plan_boolean(tree, on_row, "JOIN/ON")
    # What was attached while the item was planned belongs to the row: it has no place in FROM.
    assert row.relation is left.relation
    return Source(Apply(kind, left.relation, item, scope_number, on), scope)


def plan_item(tree: exp.Expr, frame: Frame) -> Source:
    """One item of FROM."""
    alias = _alias(tree, frame.statement)
    if isinstance(tree, exp.Lateral):
        only(tree, "this", "alias", "ordinality")
        inner = tree.this
        if isinstance(inner, exp.Anonymous):
            ordinality = bool(tree.args.get("ordinality"))
            return plan_call(inner, ordinality, alias, frame)
        if isinstance(inner, exp.Unnest):
            return plan_unnest(inner, alias, frame)
        return _renamed(plan_item(inner, frame), alias, tree)
    if isinstance(tree, exp.Subquery) and _is_join(tree):
        return _renamed(_joined(plan_item(tree.this, frame), tree, frame), alias, tree)
    if tree.args.get("joins"):
        return _joined(plan_item(_alone(tree), frame), tree, frame)
    if isinstance(tree, exp.Table) and isinstance(tree.this, exp.Anonymous):
        only(tree, "this", "db", "alias", "ordinality")
        ordinality = bool(tree.args.get("ordinality"))
        return plan_call(tree.this, ordinality, alias, frame)
    if isinstance(tree, exp.Table) and isinstance(tree.this, exp.Values):
        only(tree, "this", "alias")
        return _derived(tree.this, alias, frame)
    if isinstance(tree, exp.Table) and tree.args.get("rows_from"):
        return plan_rows_from(tree, alias, frame)
    if isinstance(tree, exp.Unnest):
        return plan_unnest(tree, alias, frame)
    if isinstance(tree, exp.Table):
        return _renamed(_table(tree, frame), alias, tree)
    if isinstance(tree, exp.Query | exp.Values):
        return _derived(tree, alias, frame)
    raise unsupported(f"{type(tree).__name__} in FROM", tree)


def _is_join(tree: exp.Subquery) -> bool:
    """Whether parentheses are those of a join, and not of a query."""
    inner = tree.this
    return isinstance(inner, exp.Table | exp.Unnest | exp.Lateral) or (
        isinstance(inner, exp.Subquery | exp.Values) and bool(inner.args.get("joins"))
    )


def _alone(tree: exp.Expr) -> exp.Expr:
    """An item of FROM without the joins that stand beside it inside parentheses."""
    alone = tree.copy()
    alone.set("joins", None)
    return alone


def _derived(tree: exp.Query | exp.Values, alias: Alias, frame: Frame) -> Source:
    """A query in FROM."""
    from noonmark.sql.plan.query import plan_query  # door: it uses this module

    planned = plan_query(tree, frame)
    scope = Scope.of(alias.name or "", planned.names)
    scope = scope if alias.name else Scope(scope.entries, ())
    source = Source(planned.output(), scope)
    if planned.order:
        # Behind its columns stand those that only its order uses: no name is theirs.
        source = Source(planned.relation, scope, planned.order)
    return _renamed(source, alias, tree)


def _alias(tree: exp.Expr, statement: Statement) -> Alias:
    alias = tree.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return Alias()
    name = None if alias.this is None else name_of(alias.this)
    columns = alias.args.get("columns") or ()
    kinds = [each.args.get("kind") if isinstance(each, exp.ColumnDef) else None for each in columns]
    types = [type_named(each, statement) for each in kinds if each is not None]
    names = [name_of(each.this if isinstance(each, exp.ColumnDef) else each) for each in columns]
    inner = tree.this if isinstance(tree, exp.Lateral) else tree
    called = isinstance(inner, exp.Unnest) or isinstance(inner.this, exp.Anonymous | exp.Unnest)
    if types and not called and not inner.args.get("rows_from"):
        raise InvalidSyntax(
            "a column definition list is only allowed for functions", position=position_of(tree)
        )
    return Alias(name, names, types)


def _table(tree: exp.Table, frame: Frame) -> Source:
    # There is one database: any name is its. No table has children: ONLY changes nothing.
    only(tree, "this", "db", "catalog", "alias", "only")
    name = name_of(tree.this)
    if tree.args.get("db") is not None:
        name = f"{name_of(tree.args['db'])}.{name}"
    elif name in frame.names:
        named = frame.names[name]
        return Source(named.relation, Scope.of(name, named.columns))
    schema = frame.statement.schemas.get(name)
    if schema is None:
        raise UndefinedTable(f'relation "{name}" does not exist', position=position_of(tree))
    table = name_of(tree.this)
    return Source(Scan(name, schema), scope_of(table, schema, frame.statement.key_of(name)))


def _joined(source: Source, tree: exp.Expr, frame: Frame) -> Source:
    """An item with the joins that stand beside it inside parentheses."""
    for join in tree.args.get("joins") or ():
        source = plan_join(source, join, frame)
    return source


def _renamed(source: Source, alias: Alias, tree: exp.Expr) -> Source:
    """The source under its alias, its first columns under the names that the alias gives."""
    name, names = alias.name, alias.columns
    if name is None:
        return source
    entries = source.scope.star(None, None)
    if len(names) > len(entries):
        raise InvalidReference(
            f'table "{name}" has {len(entries)} columns available but {len(names)} specified',
            position=position_of(tree),
        )
    shown = [*names, *(entry.name for entry in entries[len(names) :])]
    renamed = [
        Entry(name, each, entry.index, key=entry.key and entry.table is not None)
        for each, entry in zip(shown, entries, strict=True)
    ]
    system = [replace(entry, table=name) for entry in source.scope.entries if entry.system]
    return Source(source.relation, Scope((*renamed, *system), (name,)), source.order)
