"""Why a view costs what it costs: its plan, and per operator the rule and what it keeps.

The text is made of decisions (`noonmark.compute.plan.maintenance`), for people; nothing follows
from it.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Iterator

from noonmark.compute.plan.arrangement import Arrangement, ArrangementSpec, own_specs
from noonmark.compute.plan.keys import keyed_inputs
from noonmark.compute.plan.maintenance import Decision, Lookup, Path, decision
from noonmark.compute.plan.multiway import Keys
from noonmark.compute.plan.operators import Way, operator_of
from noonmark.compute.plan.pushdown import inputs_of
from noonmark.compute.spark.expression import is_native
from noonmark.compute.view.view import View
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import Node, children
from noonmark.sql.ir.scalar import Scalar, may_fail
from noonmark.sql.ir.show import text
from noonmark.sql.ir.temporal import temporal


def explain_view(view: View) -> str:
    """The plan as an indented tree, with the delta rule of each operator and what it keeps."""
    lines = _Lines(view.keys, dict(view.by_spec)).of(view.definition.plan, 0)
    return "\n".join([f"view {view.name}", *lines])


def described(each: Decision) -> str:
    """One decision as a line: the operator, its rule, and what of it is to be known."""
    return f"{operator_of(each.node).title(each.node)}: {_rule(each)}{_notes(each.node)}"


class _Lines:
    def __init__(self, keys: Keys, kept: dict[ArrangementSpec, Arrangement]) -> None:
        self.keys = keys
        self.kept = kept

    def of(self, node: r.Relation, depth: int) -> Iterator[str]:
        """The operator, what it asks for, and what stands below."""
        made = decision(node, self.keys)
        yield f"{'  ' * (depth + 1)}{described(made)}"
        indent = "  " * (depth + 3)
        yield from (f"{indent}{line}" for line in map(path_text, made.paths))
        for spec in own_specs(node, self.keys):
            yield f"{indent}keeps {_kept(self.kept[spec])}"
        for below in inputs_of(node):
            yield from self.of(below, depth + 1)


def path_text(path: Path) -> str:
    """How a change of one input walks to the others."""
    return " -> ".join([f"change of {_name(path.first)}", *map(_lookup, path.lookups)])


def _lookup(lookup: Lookup) -> str:
    """The leaf that a step reaches, and by what."""
    if lookup.step.key:
        by = ", ".join(text(part) for part in lookup.step.key)
    elif lookup.switch is not None:
        by = f"the order of {text(lookup.switch.order[0].scalar)}: what switches"
    else:
        by = "nothing: ALL OF IT" if lookup.reads_all else "nothing: it is one row"
    return f"{_name(lookup.leaf)} by {by}"


def _name(node: r.Relation) -> str:
    return operator_of(node).name(node)


def _rule(each: Decision) -> str:
    """Which delta rule serves an operator, in words."""
    match each.way:
        case Way.TURNS:
            what = temporal(each.node)
            assert what is not None, "a temporal filter"
            return f"every row {'comes' if what.begins else 'goes'} at its turn, found by its time"
        case Way.PATHS:
            return "one path for each input that changed; nothing between them is kept"
        case Way.LINEAR:
            return "linear, applied to the changes"
        case Way.FIRST_ROWS:
            whose = " of the keys that changed" if keyed_inputs(each.node)[0].key else ""
            return f"its first rows{whose}, as many as changes can bring into sight"
        case Way.BY_KEY if each.whole:
            names = ", ".join(map(_name, each.whole))
            return f"{each.way.value}, for which ALL OF {names} is read: it has no such key"
        case Way.BY_KEY:
            return f"{each.way.value}: reads all rows of each"
        case Way.WHOLE:
            return "RECOMPUTED AS A WHOLE at every time of change: it has no key"
    return str(each.way.value)


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


def _kept(arrangement: Arrangement) -> str:
    key = ", ".join(arrangement.key) or "nothing"
    return f"arrangement {arrangement.name} by {key}"
