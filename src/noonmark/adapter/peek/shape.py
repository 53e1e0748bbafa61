"""What a plan needs: leaves, which are rows of collections, and the rest, which is over leaves.

A leaf is a scan with the filter that stands on it. Where the filter says that columns are equal to
values that are known before the read, the leaf has `keys`: its rows are found by look-up.

Law: the plan's answer is the answer of `rest` over the rows of its leaves; a leaf's rows are those
of its collection for which `predicate` is TRUE, reduced to the columns of its scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from noonmark.adapter.peek.mirror import can_index
from noonmark.sql.evaluate import NOW, PARAMETERS, Outer, evaluate
from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.asked import asked, bind
from noonmark.sql.ir.effort import LITTLE, scalar_effort
from noonmark.sql.ir.node import Node, rebuild, walk

#: Look-ups of more keys than this are a scan.
KEYS_MAX = 1_000
#: A value that takes longer is not asked for before the read: that is done on the adapter's loop.
_KNOWN_EFFORT = LITTLE / 10


@dataclass(frozen=True)
class Leaf:
    """The rows of one collection that a plan needs.

    Attributes:
        name: what `Shape.rest` calls it.
        scan: of which collection, and which columns.
        predicate: over the columns of the scan; None for all rows.
        columns: the columns of the scan that are equal to known values, if there are such.
        keys: those values, a tuple for each alternative.
        decided: whether the keys say all that the predicate says.
    """

    name: str
    scan: r.Scan
    predicate: s.Scalar | None = None
    columns: tuple[int, ...] = ()
    keys: tuple[tuple[s.Scalar, ...], ...] = ()
    decided: bool = False

    @property
    def collection(self) -> str:
        """Whose rows they are."""
        return self.scan.collection

    @property
    def test(self) -> s.Scalar | None:
        """What is left to ask of rows that were found by the keys, or of all; None for nothing."""
        return None if self.decided else self.predicate

    def bound(self, values: Sequence[Any], now: int | None) -> Leaf:
        """The leaf with the values of parameters and the time in their places."""
        predicate = self.predicate
        if predicate is not None and not self.decided:
            predicate = bind(predicate, values, now)
        # What a key is needs no plan: its value is known as soon as the parameters are.
        given = {PARAMETERS: tuple(values)}
        if now is not None:
            given[NOW] = (now,)
        keys = tuple([tuple([_value(part, given) for part in key]) for key in self.keys])
        return Leaf(self.name, self.scan, predicate, self.columns, keys, self.decided)


def _value(part: s.Scalar, given: Outer) -> s.Literal:
    return s.Literal(part.type, evaluate(part, (), given))


@dataclass(frozen=True)
class Shape:
    """See the module.

    Attributes:
        leaves: the rows that are needed.
        rest: what is to be computed from them.
        linear: whether `rest` may be asked of its one leaf piece by piece.
        asks: whether `rest` still needs values of parameters, the time, or the session's answers.
        picks: the columns of the one leaf that `rest` gives, when that is all that it does.
    """

    leaves: tuple[Leaf, ...]
    rest: r.Relation
    linear: bool
    asks: bool = False
    picks: tuple[int, ...] | None = None

    def bound(self, values: Sequence[Any], now: int | None) -> Shape:
        """The shape for one execution."""
        leaves = tuple([leaf.bound(values, now) for leaf in self.leaves])
        rest = bind(self.rest, values, now) if self.asks else self.rest
        return Shape(leaves, rest, self.linear, picks=self.picks)


def shape_of(plan: r.Relation) -> Shape:
    """The leaves and the rest of a simplified plan."""
    leaves: dict[r.Relation, Leaf] = {}

    def cut(node: Node) -> Node:
        if isinstance(node, r.Scan) or (
            isinstance(node, r.Filter) and isinstance(node.input, r.Scan)
        ):
            if node not in leaves:
                leaves[node] = _leaf(f"\0{len(leaves)}", node)
            leaf = leaves[node]
            return r.Scan(leaf.name, leaf.scan.columns)
        return rebuild(node, cut) if isinstance(node, r.Relation) else node

    rest = cut(plan)
    assert isinstance(rest, r.Relation)
    linear = len(leaves) == 1 and _is_linear(rest)
    return Shape(tuple(leaves.values()), rest, linear, bool(asked(rest)), _picks(rest))


def _picks(rest: r.Relation) -> tuple[int, ...] | None:
    if isinstance(rest, r.Scan):
        return tuple(range(len(rest.schema)))
    if isinstance(rest, r.Project) and isinstance(rest.input, r.Scan):
        columns = [each.index for each in rest.scalars if isinstance(each, s.ColumnRef)]
        return tuple(columns) if len(columns) == len(rest.scalars) else None
    return None


def _is_linear(node: r.Relation) -> bool:
    match node:
        case r.Scan():
            return True
        case r.Filter() | r.Project() | r.FlatMap():
            return _is_linear(node.input)
        case r.Union():
            return all(map(_is_linear, node.inputs))
    return False


def _leaf(name: str, node: r.Relation) -> Leaf:
    if isinstance(node, r.Scan):
        return Leaf(name, node)
    assert isinstance(node, r.Filter)
    assert isinstance(node.input, r.Scan)
    leaf = Leaf(name, node.input, node.predicate)
    equal = dict(_equalities(node.predicate))
    if equal:
        keys = (tuple(equal.values()),)
        decided = len(conjuncts(node.predicate)) == len(equal)
        return replace(leaf, columns=tuple(equal), keys=keys, decided=decided)
    for part in conjuncts(node.predicate):
        if (found := _alternatives(part)) is not None:
            return replace(leaf, columns=(found[0],), keys=tuple((item,) for item in found[1]))
    return leaf


def conjuncts(predicate: s.Scalar) -> Sequence[s.Scalar]:
    """The parts of a predicate that must all be TRUE."""
    return predicate.parts if isinstance(predicate, s.And) else (predicate,)


def _equalities(predicate: s.Scalar) -> Iterator[tuple[int, s.Scalar]]:
    for part in conjuncts(predicate):
        if isinstance(part, s.Compare) and part.op == "=":
            for column, value in ((part.left, part.right), (part.right, part.left)):
                if _is_key(column) and _is_known(value):
                    assert isinstance(column, s.ColumnRef)
                    yield column.index, value
                    break


def _alternatives(part: s.Scalar) -> tuple[int, tuple[s.Scalar, ...]] | None:
    if (
        isinstance(part, s.InList)
        and _is_key(part.operand)
        and len(part.items) <= KEYS_MAX
        and all(map(_is_known, part.items))
    ):
        assert isinstance(part.operand, s.ColumnRef)
        return part.operand.index, tuple(part.items)
    return None


def _is_key(scalar: s.Scalar) -> bool:
    return isinstance(scalar, s.ColumnRef) and can_index(scalar.type)


def _is_known(scalar: s.Scalar) -> bool:
    """Whether the value does not depend on the row, and asking for it is little and cannot fail."""
    if isinstance(scalar, s.Literal):
        return True
    if scalar_effort(scalar) > _KNOWN_EFFORT or s.may_fail(scalar):
        return False
    return not any(isinstance(node, s.ColumnRef | s.OuterRef) for node in walk(scalar))
