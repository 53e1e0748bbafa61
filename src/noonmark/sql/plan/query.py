"""Queries: SELECT and WITH; `sets` has VALUES and the set operations.

The stages of a SELECT, each a relation over the one before:

    FROM -> WHERE -> aggregation -> HAVING -> windows -> select list -> DISTINCT -> ORDER BY, LIMIT

ORDER BY may name columns that the select list does not have: they are carried behind the output
columns, hidden, until LIMIT has been taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from noonmark.errors import (
    AmbiguousColumn,
    DatatypeMismatch,
    DuplicateAlias,
    InvalidReference,
    InvalidSyntax,
    Unsupported,
)
from noonmark.rows import types as t
from noonmark.sql.coerce import UNKNOWN, coerce, settle
from noonmark.sql.dialect import position_of
from noonmark.sql.evaluate import constant
from noonmark.sql.functions.errors import NegativeLimit, NegativeOffset
from noonmark.sql.ir.asked import asked
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.relation import (
    Distinct,
    Get,
    Let,
    Project,
    Relation,
    TopK,
    distinct_names,
)
from noonmark.sql.ir.scalar import Scalar, column
from noonmark.sql.plan.frame import Frame, only
from noonmark.sql.plan.group import check_position, group_items, plan_group, sort_key
from noonmark.sql.plan.planned import Planned
from noonmark.sql.plan.row import POSITION, Row, name_of, unsupported
from noonmark.sql.plan.rowset import plan_rowsets
from noonmark.sql.plan.scalar import check_equality, plan, plan_value
from noonmark.sql.plan.shown import shown_name
from noonmark.sql.plan.source import plan_from
from noonmark.sql.plan.ties import with_ties
from noonmark.sql.plan.window import named_windows, plan_windows
from noonmark.sql.scope import Scope

_MODIFIERS = ("with_", "order", "limit", "offset")


def plan_query(tree: exp.Expr, frame: Frame) -> Planned:
    """Any query."""
    from noonmark.sql.plan.sets import plan_set_operation, plan_values  # door: it uses this module

    with_ = tree.args.get("with_")
    if isinstance(with_, exp.With):
        return _plan_with(tree, with_, frame)
    if isinstance(tree, exp.Select):
        return _plan_select(tree, frame)
    if isinstance(tree, exp.Values):
        only(tree, "expressions", "alias", *_MODIFIERS)
        return _limited(plan_values(tree, frame), tree, frame)
    if isinstance(tree, exp.Subquery):
        only(tree, "this", "alias", *_MODIFIERS)
        inner = plan_query(tree.this, frame)
        modified = any(tree.args.get(each) for each in _MODIFIERS)
        return _limited(replace(inner, order=()), tree, frame) if modified else inner
    if isinstance(tree, exp.SetOperation):
        only(tree, "this", "expression", "distinct", *_MODIFIERS)
        return _limited(plan_set_operation(tree, frame), tree, frame)
    if isinstance(tree, exp.DML):
        raise Unsupported(
            "WITH clause containing a data-modifying statement must be at the top level",
            position=position_of(tree),
        )
    raise unsupported(f"{type(tree).__name__} as a query", tree)


# --- WITH


def _plan_with(tree: exp.Expr, with_: exp.With, frame: Frame) -> Planned:
    # door: it uses this module
    from noonmark.sql.plan.recursive import plan_mutual, plan_recursive, uses_itself

    if any("declared" in cte.meta for cte in with_.expressions):
        return plan_mutual(tree, with_, frame)
    bound: list[tuple[str, Relation]] = []
    for cte in with_.expressions:
        only(cte, "this", "alias", "materialized")
        name = name_of(cte.args["alias"].this)
        if any(name == other for other, _ in bound):
            raise DuplicateAlias(
                f'WITH query name "{name}" specified more than once', position=position_of(cte)
            )
        unique = f"{name}#{frame.statement.fresh_scope()}"
        if with_.args.get("recursive") and uses_itself(cte, name):
            value, shown = plan_recursive(cte, name, unique, frame)
        else:
            planned = plan_query(cte.this, frame)
            value, shown = name_columns(cte, name, planned)
        bound.append((name, Let(unique, value, Get(unique, value.schema))))
        frame = frame.binding(name, Get(unique, value.schema), shown)
    body = tree.copy()
    body.set("with_", None)
    planned = plan_query(body, frame)
    relation = planned.relation
    for _, binding in reversed(bound):
        assert isinstance(binding, Let)
        relation = Let(binding.name, binding.value, relation)
    return replace(planned, relation=relation)


def name_columns(cte: exp.CTE, name: str, planned: Planned) -> tuple[Relation, list[str]]:
    """The relation of a name of WITH, and what its columns are called, which may repeat."""
    shown = [name_of(each) for each in cte.args["alias"].args.get("columns") or ()]
    if len(shown) > len(planned.names):
        raise InvalidReference(
            f'WITH query "{name}" has {len(planned.names)} columns available but {len(shown)} '
            "columns specified",
            position=position_of(cte),
        )
    names = [*shown, *planned.names[len(shown) :]]
    relation = planned.output()
    columns = tuple(column(at, each) for at, each in enumerate(relation.schema))
    distinct = tuple(distinct_names(names))
    if distinct == relation.schema.names:
        return relation, names
    return Project(relation, columns, distinct), names


# --- SELECT


@dataclass(frozen=True)
class _Item:
    """One output column before it is planned; a star's columns are planned already."""

    name: str
    tree: exp.Expr


def _check_locks(tree: exp.Select, frame: Frame) -> None:
    """FOR UPDATE and its kin: COMMIT finds out whether what was read is still true without them.

    Only a transaction commits: a query that is kept has none.
    """
    for lock in tree.args.get("locks") or ():
        if frame.statement.session is None:
            raise unsupported("FOR UPDATE in a query that is kept", tree)
        if lock.args.get("wait") is False:
            raise unsupported("SKIP LOCKED", tree, hint="No row is ever locked.")


def _plan_select(tree: exp.Select, frame: Frame) -> Planned:
    _check_locks(tree, frame)
    only(
        tree,
        "locks",
        "expressions",
        "distinct",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "windows",
        "kind",
        *_MODIFIERS,
    )
    from noonmark.sql.plan.subquery import filter_by  # door: it uses this module

    source = plan_from(tree, frame)
    row = frame.row("WHERE", source.scope, source.relation)
    row.order = source.order
    where = tree.args.get("where")
    if where is not None:
        filter_by(where.this, row)
    items = [item for each in tree.expressions for item in _items(each, row)]
    order = tree.args.get("order")
    ordered = [each.this for each in order.expressions] if order is not None else []
    having = tree.args.get("having")
    trees = [item.tree for item in items]
    may_aggregate = [*trees, *ordered, *([having.this] if having is not None else [])]
    find = group_items([item.name for item in items], trees, row)
    after = plan_group(tree, may_aggregate, row, frame, find)
    if after is not None:
        row = after
    if having is not None:
        row.place = "HAVING"
        filter_by(having.this, row)
    plan_windows([*trees, *ordered], named_windows(tree), row)
    row.place = "SELECT"
    plan_rowsets(trees, row)
    return _select_list(tree, items, row, frame)


def _items(tree: exp.Expr, row: Row) -> list[_Item]:
    if isinstance(tree, exp.Star) or (
        isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star)
    ):
        star = tree if isinstance(tree, exp.Star) else tree.this
        only(star)
        table = tree.args.get("table")
        name = None if table is None else name_of(table)
        if name is None and not row.scope.entries:
            raise InvalidSyntax(
                "SELECT * with no tables specified is not valid", position=position_of(tree)
            )
        return [
            # By position: names may repeat.
            _Item(
                entry.name, exp.column(exp.to_identifier(f"{POSITION}{entry.index}", quoted=True))
            )
            for entry in row.scope.star(name, position_of(tree))
        ]
    if isinstance(tree, exp.Dot) and isinstance(tree.expression, exp.Star):
        kind = plan(tree.this, row).type
        if not isinstance(kind, t.Record):
            raise DatatypeMismatch(f"type {kind} is not composite", position=position_of(tree))
        names = [exp.to_identifier(each.name, quoted=True) for each in kind.fields]
        return [_Item(n.name, exp.Dot(this=tree.this.copy(), expression=n)) for n in names]
    if isinstance(tree, exp.Alias):
        return [_Item(name_of(tree.args["alias"]), tree.this)]
    return [_Item(shown_name(tree), tree)]


@dataclass
class _Outputs:
    """The columns of the select list, and hidden ones behind them."""

    scalars: list[Scalar]
    names: list[str]
    row: Row
    may_hide: bool = True

    def place(self, scalar: Scalar, tree: exp.Expr) -> int:
        """Where the scalar stands, hidden if the select list does not have it."""
        if scalar in self.scalars:
            return self.scalars.index(scalar)
        if not self.may_hide:
            raise InvalidReference(
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                position=position_of(tree),
            )
        self.scalars.append(scalar)
        return len(self.scalars) - 1

    def find(self, tree: exp.Expr, clause: str) -> int:
        """The output that a position, a name or an expression in ORDER BY stands for."""
        known = output_position(tree, self.names, clause)
        if known is not None:
            return known
        return self.place(plan_value(tree, self.row), tree)


def output_position(tree: exp.Expr, names: Sequence[str], clause: str) -> int | None:
    """The output column that a position or a bare name stands for."""
    check_position(tree, clause)
    if isinstance(tree, exp.Literal):
        at = int(tree.this)
        if not 1 <= at <= len(names):
            raise InvalidReference(
                f"{clause} position {tree.this} is not in select list", position=position_of(tree)
            )
        return at - 1
    if isinstance(tree, exp.Column) and tree.args.get("table") is None:
        name = name_of(tree.this)
        if list(names).count(name) > 1:
            raise AmbiguousColumn(f'{clause} "{name}" is ambiguous', position=position_of(tree))
        return list(names).index(name) if name in names else None
    return None


def _select_list(tree: exp.Select, items: list[_Item], row: Row, frame: Frame) -> Planned:
    raw = [plan(item.tree, row) for item in items]
    unknown = frozenset(at for at, each in enumerate(raw) if each.type == UNKNOWN)
    names = [item.name for item in items]
    distinct = tree.args.get("distinct")
    if distinct is not None and not items:
        raise InvalidSyntax("SELECT DISTINCT needs a column", position=position_of(tree))
    on = distinct.args.get("on") if distinct is not None else None
    outputs = _Outputs(
        [settle(each) for each in raw], names, row, distinct is None or on is not None
    )
    order = tree.args.get("order")
    ordered = order.expressions if order is not None else []
    keys = [(each, outputs.find(each.this, "ORDER BY")) for each in ordered]
    partition = []
    if on is not None:
        parts = on.expressions if isinstance(on, exp.Tuple) else [on]
        partition = [outputs.find(each, "SELECT DISTINCT ON") for each in parts]
    assert row.relation is not None
    hidden = [f"order_{at}" for at in range(len(names), len(outputs.scalars))]
    distinct_ = distinct_names([*names, *hidden])
    relation: Relation = Project(row.relation, tuple(outputs.scalars), tuple(distinct_))
    columns = [column(at, each) for at, each in enumerate(relation.schema)]
    sort = tuple(sort_key(each, columns[at]) for each, at in keys)
    if on is not None:
        _check_distinct_on(partition, keys, tree)
        check_equality((columns[at].type for at in partition), tree)
        relation = TopK(relation, tuple(columns[at] for at in partition), sort, 1)
    elif distinct is not None:
        check_equality((each.type for each in columns), tree)
        relation = Distinct(relation)
    limited = _top(relation, sort, tree, frame)
    return Planned(limited, tuple(names), sort, unknown)


def _check_distinct_on(
    partition: list[int], keys: list[tuple[exp.Ordered, int]], tree: exp.Select
) -> None:
    leading = {at for _, at in keys[: len(set(partition))]}
    if keys and not leading <= set(partition):
        raise InvalidReference(
            "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            position=position_of(tree),
        )


# --- LIMIT


def _limited(planned: Planned, tree: exp.Expr, frame: Frame) -> Planned:
    """A query of another kind with its ORDER BY and LIMIT, which see its output columns alone."""
    order = tree.args.get("order")
    relation = planned.output()
    keys = []
    for each in order.expressions if order is not None else ():
        at = output_position(each.this, planned.names, "ORDER BY")
        if at is None:
            raise unsupported(
                "ORDER BY of an expression here",
                each,
                hint="Only result column names and positions can be used, "
                "or move the query into a FROM clause.",
            )
        keys.append(sort_key(each, column(at, relation.schema.columns[at])))
    sort = tuple(keys) or planned.order
    if not keys and not (tree.args.get("limit") or tree.args.get("offset")):
        return planned
    return Planned(_top(relation, tuple(keys), tree, frame), planned.names, sort, planned.unknown)


def _top(relation: Relation, order: tuple[SortKey, ...], tree: exp.Expr, frame: Frame) -> Relation:
    limit_tree, offset_tree = tree.args.get("limit"), tree.args.get("offset")
    if limit_tree is None and offset_tree is None:
        return relation
    limit = _count_of(limit_tree, frame, "LIMIT")
    offset = _count_of(offset_tree, frame, "OFFSET") or 0
    if limit is not None and _has_ties(limit_tree):
        if not order:
            message = "WITH TIES cannot be specified without ORDER BY clause"
            raise InvalidSyntax(message, position=position_of(tree))
        return with_ties(relation, order, limit, offset) if limit else TopK(relation, (), order, 0)
    return relation if limit is None and not offset else TopK(relation, (), order, limit, offset)


def _has_ties(tree: exp.Expr | None) -> bool:
    options = tree.args.get("limit_options") if isinstance(tree, exp.Fetch) else None
    return options is not None and bool(options.args.get("with_ties"))


def _count_of(tree: exp.Expr | None, frame: Frame, clause: str) -> int | None:
    if tree is None:
        return None
    if isinstance(tree, exp.Fetch):
        options = tree.args.get("limit_options")
        if options is not None and options.args.get("percent"):
            raise unsupported("FETCH PERCENT", tree)
        value = tree.args.get("count") or exp.Literal.number(1)
    else:
        only(tree, "expression")
        value = tree.expression
    if isinstance(value, exp.Var) and value.name.upper() == "ALL":
        return None
    scalar = plan(value, Frame(frame.statement).row(clause, Scope()))
    scalar = coerce(scalar, t.BigInt(), position_of(tree))
    if asked(scalar):
        frame.statement.late = True
        return None
    count = constant(scalar, clause, position_of(tree))
    if count is not None and count < 0:
        error = NegativeLimit if clause == "LIMIT" else NegativeOffset
        raise error(f"{clause} must not be negative", position=position_of(tree))
    return None if count is None else int(count)
