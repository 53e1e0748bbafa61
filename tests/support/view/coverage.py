"""Which operators of SQL a query has: what a run of generated views covered is counted by it.

`OPERATORS` is every operator that a view may have, by name; `operators_of` is those of one query.
A correlated subquery is told from another by its columns: those of no relation inside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sqlglot
from sqlglot import exp

_JOINS = ("LEFT", "RIGHT", "FULL")
_COMPARED = {exp.Exists: "EXISTS", exp.In: "IN", exp.Any: "ANY", exp.All: "ALL"}


def _has(*kinds: type[exp.Expr]) -> Callable[[exp.Expr], bool]:
    return lambda tree: tree.find(*kinds) is not None


def _calls(*names: str) -> Callable[[exp.Expr], bool]:
    def found(tree: exp.Expr) -> bool:
        return any(f.sql("postgres").lower().startswith(names) for f in tree.find_all(exp.Func))

    return found


def _distinct_on(tree: exp.Expr) -> bool:
    return any(each.args.get("on") for each in tree.find_all(exp.Distinct))


def _set_operation(kind: type[exp.SetOperation], *, distinct: bool) -> Callable[[exp.Expr], bool]:
    return lambda tree: any(bool(e.args.get("distinct")) == distinct for e in tree.find_all(kind))


def _frame(kind: str) -> Callable[[exp.Expr], bool]:
    def found(tree: exp.Expr) -> bool:
        kinds = (each.args.get("kind") or "" for each in tree.find_all(exp.WindowSpec))
        return kind in (each.upper() for each in kinds)

    return found


def _recursive(tree: exp.Expr) -> bool:
    return any(each.args.get("recursive") for each in tree.find_all(exp.With))


_PLAIN: dict[str, Callable[[exp.Expr], bool]] = {
    "WHERE": _has(exp.Where),
    "CASE": _has(exp.Case),
    "cast": _has(exp.Cast),
    "LIKE": _has(exp.Like),
    "ILIKE": _has(exp.ILike),
    "regex": _has(exp.RegexpLike),
    "GROUP BY": _has(exp.Group),
    "HAVING": _has(exp.Having),
    "GROUPING SETS": _has(exp.GroupingSets),
    "ROLLUP": _has(exp.Rollup),
    "CUBE": _has(exp.Cube),
    "FILTER": _has(exp.Filter),
    "count": _has(exp.Count),
    "sum": _has(exp.Sum),
    "avg": _has(exp.Avg),
    "min": _has(exp.Min),
    "max": _has(exp.Max),
    "bool_and, bool_or": _calls("bool_", "every"),
    "string_agg": _has(exp.GroupConcat),
    "array_agg": _has(exp.ArrayAgg),
    "stddev, variance": _calls("stddev", "var"),
    "DISTINCT aggregate": lambda tree: any(
        isinstance(each.parent, exp.AggFunc) for each in tree.find_all(exp.Distinct)
    ),
    "DISTINCT": lambda tree: any(
        isinstance(each.parent, exp.Select) and not each.args.get("on")
        for each in tree.find_all(exp.Distinct)
    ),
    "DISTINCT ON": _distinct_on,
    "UNION": _set_operation(exp.Union, distinct=True),
    "UNION ALL": _set_operation(exp.Union, distinct=False),
    "INTERSECT": _set_operation(exp.Intersect, distinct=True),
    "INTERSECT ALL": _set_operation(exp.Intersect, distinct=False),
    "EXCEPT": _set_operation(exp.Except, distinct=True),
    "EXCEPT ALL": _set_operation(exp.Except, distinct=False),
    "window": _has(exp.Window),
    "window of ROWS": _frame("ROWS"),
    "window of RANGE": _frame("RANGE"),
    "window of GROUPS": _frame("GROUPS"),
    "ORDER BY and LIMIT": _has(exp.Limit),
    "OFFSET": _has(exp.Offset),
    "WITH": _has(exp.With),
    "WITH RECURSIVE": _recursive,
    "VALUES": _has(exp.Values),
    "generate_series": _calls("generate_series"),
    "unnest": _calls("unnest"),
    "WITH ORDINALITY": lambda tree: "with ordinality" in tree.sql("postgres").lower(),
    "array": _calls("cardinality", "array_to_string"),
    "jsonb": _calls("jsonb_"),
    "jsonb operators": _has(exp.JSONExtractScalar, exp.JSONBContains, exp.JSONArrayContains),
    "division that may fail": lambda tree: "6 / " in tree.sql("postgres"),
}

#: An arrangement of several views; a query alone does not say.
SHARED = "shared arrangement"
OPERATORS = (
    SHARED,
    *_PLAIN,
    "JOIN",
    *(f"{side} JOIN" for side in _JOINS),
    "CROSS JOIN",
    "JOIN USING",
    "JOIN without equality",
    "LATERAL",
    *(
        f"{how} {kind}"
        for kind in ("EXISTS", "NOT EXISTS", "IN", "NOT IN", "ANY", "ALL", "scalar subquery")
        for how in ("correlated", "uncorrelated")
        if (how, kind) != ("uncorrelated", "NOT EXISTS")
    ),
)


def operators_of(sql: str) -> set[str]:
    """The names of the operators that a query has."""
    tree = sqlglot.parse_one(sql, read="postgres")
    found = {name for name, has in _PLAIN.items() if has(tree)}
    found.update(_joins(tree), _subqueries(tree))
    return found & set(OPERATORS)


def _joins(tree: exp.Expr) -> Iterator[str]:
    for join in tree.find_all(exp.Join):
        side, on = join.args.get("side", ""), join.args.get("on")
        yield f"{side or join.args.get('kind') or ''} JOIN".strip()
        if join.args.get("using"):
            yield "JOIN USING"
        if on is not None and on.find(exp.EQ, exp.NullSafeEQ) is None:
            yield "JOIN without equality"
        if isinstance(join.this, exp.Lateral):
            yield "LATERAL"


def _subqueries(tree: exp.Expr) -> Iterator[str]:
    for select in tree.find_all(exp.Select):
        kind = _kind(select)
        if kind is not None:
            yield f"{'correlated' if _is_correlated(select) else 'uncorrelated'} {kind}"


def _kind(select: exp.Select) -> str | None:
    """What a subquery is for; None when it stands in FROM, in WITH, or outside of everything."""
    at: exp.Expr | None = select.parent
    while isinstance(at, exp.Subquery | exp.Paren):
        if isinstance(at.parent, exp.From | exp.Join | exp.Lateral):
            return None
        at = at.parent
    if at is None or isinstance(at, exp.CTE | exp.SetOperation | exp.Lateral | exp.From):
        return None
    name = _COMPARED.get(type(at), "scalar subquery")
    is_not = name in ("EXISTS", "IN") and isinstance(at.parent, exp.Not)
    return f"NOT {name}" if is_not else name


def _is_correlated(select: exp.Select) -> bool:
    inside = {each.alias_or_name for each in select.find_all(exp.Table, exp.Subquery, exp.Values)}
    inside |= {each.alias for each in select.find_all(exp.Lateral, exp.Unnest)}
    return any(each.table and each.table not in inside for each in select.find_all(exp.Column))
