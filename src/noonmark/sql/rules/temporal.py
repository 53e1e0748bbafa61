"""Temporal filters by themselves: what of a plan follows the time, in the one form that is known.

Law: for every time t, ``bind(separated(p), (), t)`` and ``bind(p, (), t)`` mean the same. In
``separated(p)`` mz_now() stands only in temporal filters (`ir.temporal`), those by which rows come
below those by which they go: a row whose turn is still to come waits once.

Where mz_now() stands elsewhere, the plan is refused: no row would say when its answer changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from noonmark.errors import Unsupported
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import Now, asked
from noonmark.sql.ir.node import Node, children, rebuild, walk, walk_once
from noonmark.sql.ir.scalar import Compare, Or, Scalar, columns_of, conjunction, conjuncts
from noonmark.sql.ir.temporal import FROM, is_now, temporal
from noonmark.sql.rules.rewrite import bottom_up, filtered, onto

_TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_HINT = "Compare mz_now() with an expression of the row, as one of the conditions of WHERE."


def separated(plan: r.Relation) -> r.Relation:
    """The plan with every temporal filter by itself.

    Raises:
        Unsupported: mz_now() stands where it cannot be maintained.
    """
    if Now not in asked(plan):
        return plan
    return _separate(plan)


def _act(node: r.Relation) -> r.Relation:
    match node:
        case r.Filter():
            rest, comparisons = _apart(node.predicate)
            return _above(filtered(node.input, rest), comparisons) if comparisons else node
        case r.Join() if Now in asked(node.on):
            return _join(node)
        case r.Recursive():
            return _recursion(node)
    _refuse(*_own(node), place=_place(node))
    return node


_separate = bottom_up(_act)


def _recursion(node: r.Recursive) -> r.Relation:
    """What follows the time: before a recursion, on what it reads; or after it."""
    for value in node.values:
        for each in walk_once(value):
            if isinstance(each, r.Filter) and temporal(each) is not None and not r.is_read(each):
                raise _unsupported(each.predicate, "inside a recursion", _RECURSION_HINT)
    if Now not in asked(node.body):
        return node

    def act(each: Any) -> Node:
        if isinstance(each, r.Get) and each.name in node.names:
            return replace(node, body=each)
        changed: Node = rebuild(each, act)
        return changed

    body = act(node.body)
    assert isinstance(body, r.Relation)
    return body


_RECURSION_HINT = "Filter what the recursion reads, or what comes of it."


def _join(node: r.Join) -> r.Relation:
    """Of a condition, what follows the time: above an inner join; below others, on one side."""
    rest, comparisons = _apart(node.on)
    joined = replace(node, on=conjunction(rest))
    _refuse(*_own(joined), place=_place(node))
    if node.kind is r.JoinKind.INNER:
        return _above(joined, comparisons)
    width = len(node.left.schema)
    left: list[Scalar] = []
    right: list[Scalar] = []
    for each in comparisons:
        used = columns_of(each)
        if used and min(used) >= width and node.kind in _RIGHT_BELOW:
            right.append(onto(each, node.right.schema, lambda at: at - width))
        elif used and max(used) < width and node.kind in _LEFT_BELOW:
            left.append(each)
        else:
            raise _unsupported(each, f"in {_place(node)}", _HINT)
    return replace(joined, left=_above(node.left, left), right=_above(node.right, right))


# The sides of which a row that is not there is a row without a partner.
_RIGHT_BELOW = (r.JoinKind.LEFT, r.JoinKind.SEMI, r.JoinKind.ANTI)
_LEFT_BELOW = (r.JoinKind.RIGHT, r.JoinKind.SEMI)


def _above(relation: r.Relation, comparisons: Sequence[Scalar]) -> r.Relation:
    """The temporal filters on a relation, those by which rows come first."""
    for each in sorted(comparisons, key=lambda each: not _begins(each)):
        relation = r.Filter(relation, each)
    return relation


def _begins(comparison: Scalar) -> bool:
    return isinstance(comparison, Compare) and comparison.op in FROM


def _apart(predicate: Scalar) -> tuple[list[Scalar], list[Compare]]:
    """The conditions that the row alone decides, and those that follow the time."""
    rest: list[Scalar] = []
    comparisons: list[Compare] = []
    for part in conjuncts(predicate):
        if Now in asked(part):
            comparisons += _comparisons(part)
        else:
            rest.append(part)
    return rest, comparisons


def _comparisons(part: Scalar) -> Iterator[Compare]:
    """One condition in the known form."""
    if not isinstance(part, Compare):
        within = "OR" if isinstance(part, Or) else type(part).__name__
        hint = "Use UNION ALL of a query for each side." if isinstance(part, Or) else _HINT
        raise _unsupported(part, f"inside {within}", hint)
    op, own, other = part.op, part.left, part.right
    if not is_now(own):
        op, own, other = _TURNED[op], other, own
    if not is_now(own) or Now in asked(other):
        raise _unsupported(part, "inside an expression", _HINT)
    if op == "<>":
        raise _unsupported(part, "compared by <>", "Use UNION ALL of a query for < and one for >.")
    for each in (">=", "<=") if op == "=" else (op,):
        yield Compare(each, own, other)


def _own(node: r.Relation) -> Iterator[Node]:
    """The parts of an operator that are not its inputs."""
    return (child for child in children(node) if not isinstance(child, r.Relation))


def _refuse(*nodes: Node, place: str) -> None:
    for node in nodes:
        if Now in asked(node):
            raise _unsupported(node, f"in {place}", _HINT)


def _place(node: r.Relation) -> str:
    match node:
        case r.Project():
            return "what a query that is kept selects"
        case r.Aggregate():
            return "an aggregate or a group's key"
        case r.Join():
            return f"the condition of a {node.kind.value} join"
    return type(node).__name__


def _unsupported(node: Node, where: str, hint: str) -> Unsupported:
    position = next((each.position for each in walk(node) if isinstance(each, Now)), None)
    return Unsupported(f"mz_now() {where} cannot be maintained", hint=hint, position=position)
