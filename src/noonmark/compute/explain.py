"""Why a view costs what it costs: its plan, and per operator the rule and what it keeps.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Iterator

from noonmark.compute import keyed
from noonmark.compute.accumulator import is_linear
from noonmark.compute.arrangement import Keeper, Need, own_needs
from noonmark.compute.askable import asked_whole, inputs_of, operators, usable
from noonmark.compute.definition import Definition
from noonmark.compute.expression import is_native
from noonmark.compute.group import Group, Keys, Step, group_at, is_one_row, path
from noonmark.compute.switch import switch_of
from noonmark.compute.view import View
from noonmark.compute.walk.first import reads_first
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import Node, children
from noonmark.sql.ir.scalar import Scalar, may_fail
from noonmark.sql.ir.show import text
from noonmark.sql.ir.temporal import temporal


def explain_view(view: View) -> str:
    """The plan as an indented tree, with the delta rule of each operator and what it keeps."""
    state = view.client.state
    keys = {name: state.collection(name).key for name in view.definition.inputs}
    kept = dict(view.keepers)
    lines = _Lines(keys, kept).of(view.definition.plan, 0)
    return "\n".join([f"view {view.name}", *lines])


def changes_cost_all(definition: Definition, keys: Keys) -> bool:
    """Whether some change of the view reads all of a relation: what STRICT refuses."""
    return any(
        _costs_all(node, keys)
        for node in operators(definition.plan)
        if not isinstance(node, r.Scan) and not reads_first(node)
    )


def _costs_all(node: r.Relation, keys: Keys) -> bool:
    group = group_at(node)
    if group is None:
        return any(True for _ in asked_whole(node, keys))
    return any(ALL in line for line in _paths(group, keys))


#: What is said of a step that reads everything; MAINTENANCE = STRICT refuses it.
ALL = "nothing: ALL OF IT"


def _step(group: Group, step: Step, first: int | None) -> str:
    """The leaf that a step reaches, and by what; `first` is where the path begins, just before."""
    leaf = group.leaves[step.leaf]
    by = ", ".join(text(part) for part in step.key)
    if not step.key and is_one_row(leaf):
        by = "nothing: it is one row"
    elif not step.key:
        switch = None if first is None else switch_of(group, first, step)
        by = (
            ALL if switch is None else f"the order of {text(switch.order[0].scalar)}: what switches"
        )
    return f"{_name(leaf)} by {by}"


class _Lines:
    def __init__(self, keys: Keys, kept: dict[Need, Keeper]) -> None:
        self.keys = keys
        self.kept = kept

    def of(self, node: r.Relation, depth: int) -> Iterator[str]:
        """The operator, what it asks for, and what stands below."""
        yield f"{'  ' * (depth + 1)}{_title(node)}: {rule_of(node)}{_notes(node)}"
        indent = "  " * (depth + 3)
        if (group := group_at(node)) is not None:
            yield from (f"{indent}{line}" for line in _paths(group, self.keys))
        for need in own_needs(node, self.keys):
            yield f"{indent}keeps {_kept(self.kept[need])}"
        for below in inputs_of(node):
            yield from self.of(below, depth + 1)


def _paths(group: Group, keys: Keys) -> Iterator[str]:
    """For each input, how a change of it walks to the others."""
    for first, leaf in enumerate(group.leaves):
        steps = [
            _step(group, step, None if number else first)
            for number, step in enumerate(path(group, first, keys, usable))
        ]
        yield " -> ".join([f"change of {_name(leaf)}", *steps])


def _name(node: r.Relation) -> str:
    match node:
        case r.Filter() | r.Project():
            return _name(node.input)
        case r.Scan():
            return node.collection
    return type(node).__name__


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
        case r.Filter() if (what := temporal(node)) is not None:
            return f"every row {'comes' if what.begins else 'goes'} at its turn, found by its time"
        case r.Project() | r.Join(kind=r.JoinKind.INNER) if group_at(node) is not None:
            return "one path for each input that changed; nothing between them is kept"
        case r.Filter() | r.Project() | r.FlatMap() | r.Union():
            return "linear, applied to the changes"
        case r.Aggregate() if is_linear(node):
            return "accumulators by group"
    if keyed.is_known(node):
        by_key = keyed.parts_of(node)[0].key
        if reads_first(node):
            whose = " of the keys that changed" if by_key else ""
            return f"its first rows{whose}, as many as changes can bring into sight"
        if by_key:
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
    return f"arrangement {keeper.name} by {key}"
