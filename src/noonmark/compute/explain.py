"""Why a view costs what it costs: its plan, and per operator the rule and what it keeps.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from noonmark.compute import aggregates, keyed
from noonmark.compute.arrangement import Keeper, Need, own_needs
from noonmark.compute.expression import is_native
from noonmark.compute.view import View
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import Node, children
from noonmark.sql.ir.scalar import Scalar, may_fail


def explain_view(view: View) -> str:
    """The plan as an indented tree, with the delta rule of each operator and what it keeps."""
    lines = _lines(view.definition.plan, view.keepers, 0)
    return "\n".join([f"view {view.name}", *lines])


def _lines(node: r.Relation, keepers: Mapping[Need, Keeper], depth: int) -> Iterator[str]:
    yield f"{'  ' * (depth + 1)}{_title(node)}: {rule_of(node)}{_notes(node)}"
    for need in own_needs(node):
        yield f"{'  ' * (depth + 3)}asks {_kept(keepers[need])}"
    for below in r.relations_below(node):
        yield from _lines(below, keepers, depth + 1)


def _title(node: r.Relation) -> str:
    match node:
        case r.Scan():
            return f"Scan {node.collection}"
        case r.Join():
            return f"Join {node.kind.value}"
    return type(node).__name__


def rule_of(node: r.Relation) -> str:
    """Which delta rule serves an operator, in words."""
    match node:
        case r.Scan():
            return "its changes"
        case r.Constant():
            return "never changes"
        case r.Filter() | r.Project() | r.FlatMap() | r.Union():
            return "linear, applied to the changes"
        case r.Join(kind=r.JoinKind.INNER):
            return "dL x R_old + L_old x dR + dL x dR, by key"
        case r.Aggregate() if aggregates.is_linear(node):
            return "accumulators by group"
    if keyed.is_known(node):
        if keyed.parts_of(node)[0].key:
            return "recomputed for the keys that changed"
        return "RECOMPUTED AS A WHOLE at every time of change: it has no key"
    return "not supported"


def _notes(node: r.Relation) -> str:
    scalars = [each for child in children(node) for each in _scalars(child)]
    notes = []
    if any(not is_native(scalar) for scalar in scalars):
        notes.append("some scalars in Python")
    if any(may_fail(scalar) for scalar in scalars):
        notes.append("may have errors")
    return f" ({', '.join(notes)})" if notes else ""


def _scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif not isinstance(node, r.Relation):
        for child in children(node):
            yield from _scalars(child)


def _kept(keeper: Keeper) -> str:
    key = ", ".join(keeper.key) or "nothing"
    kind = "arrangement" if keeper.own else "collection"
    return f"{kind} {keeper.name} by {key}"
